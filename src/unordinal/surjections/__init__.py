"""Surjections: continuous v to classes x, and a probabilistic inverse from x back to v."""
