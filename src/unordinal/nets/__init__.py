"""Networks: weights without probability."""
