"""Tasks of a trained model, such as drawing samples: functions that the command line and the Python API share."""
