"""The files of a run: its folder, lock, checkpoints, and the model that its configuration describes."""
