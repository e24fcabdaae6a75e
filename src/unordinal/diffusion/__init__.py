"""Noise processes over classes, their schedules, samplers, and how times are drawn. Nothing here has weights."""
