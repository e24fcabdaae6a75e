"""Reproduce the tables and figures of the paper: jobs from the registry, workers that do them, and a report."""
