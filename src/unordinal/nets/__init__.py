"""Neural networks. They compute features, logits or parameters, and know nothing about probabilities."""
