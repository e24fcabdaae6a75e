"""Flows: bijections with their log-determinants, and densities made of them. Channels last everywhere."""
