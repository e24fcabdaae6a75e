"""Models: everything that has an ELBO, one family per file."""
