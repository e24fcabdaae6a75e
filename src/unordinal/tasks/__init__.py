"""What a trained model is for. The command line, Python and a server call the same functions."""
