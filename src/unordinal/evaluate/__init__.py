"""Evaluation of models: scores with standard errors, comparisons, count models as baselines, plots and reports."""
