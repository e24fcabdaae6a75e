"""The recipes of trees: for rows of columns, and counted whatever the budget."""

import numpy as np
import pytest

from unordinal.api import fit


def test_trees_take_no_labels() -> None:
    with pytest.raises(ValueError, match="does not take labels"):
        fit("independent", np.eye(40, 2, dtype=int), labels=np.arange(40) % 2, progress=False)


def test_dependent_columns_are_found() -> None:
    x = np.random.default_rng(0).integers(0, 5, 500)
    diagonal = np.stack([x, x], axis=1)
    run = fit("chow-liu", diagonal, progress=False)
    drawn = run.sample(2000)
    assert float((drawn[:, 0] == drawn[:, 1]).double().mean()) > 0.98
    alone = fit("independent", diagonal, progress=False).sample(2000)
    assert float((alone[:, 0] == alone[:, 1]).double().mean()) < 0.3
