"""Normalizing flows: bijections with their log-determinants, and densities built from them. Channels come last."""
