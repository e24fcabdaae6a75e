"""Surjections from continuous v to classes x, with probabilistic inverses q(v | x) from classes to v."""
