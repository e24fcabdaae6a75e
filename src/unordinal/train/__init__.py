"""Training: one loop, checkpoints that survive anything, run folders."""
