"""Every example of a space, and chi-square tests with rare examples."""

import numpy as np

from unordinal.evaluate.enumeration import chi_square, every_example


def test_every_example_is_there_once() -> None:
    assert len({tuple(row) for row in every_example(3, 3, ends=True).tolist()}) == 1 + 3 + 9 + 27
    assert every_example((2, 1, 3), None).tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 0], [1, 0, 1], [1, 0, 2]]


def test_rare_examples_are_taken_together() -> None:
    p = np.array([0.5, 0.4998, 0.0001, 0.0001])
    assert chi_square(np.array([500, 500, 0, 0]), p) > 0.9
    assert chi_square(np.array([500, 480, 20, 0]), p) < 1e-4
    assert chi_square(np.array([5, 5]), np.array([1.0, 0.0])) == 0.0
