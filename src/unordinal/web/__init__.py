"""A page to play with, and a JSON API: what `unordinal serve` starts."""
