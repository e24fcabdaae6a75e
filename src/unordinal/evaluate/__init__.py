"""Scores: bounds with their standard errors, the count models beside them, reports."""
