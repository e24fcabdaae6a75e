"""What is passed to a model: classes, columns, ends and places that do not fit are refused in one line."""

from typing import Any

import pytest
import torch

import unordinal
from unordinal.checks import as_classes, check_classes, sample_shape
from unordinal.data.spec import DataSpec
from unordinal.recipes import configured

ROWS = configured("arm").model.build_for(DataSpec("rows", 3, (3,), columns=(2, 3, 2), has_places=True))
LINES = configured("arm").model.build_for(DataSpec("lines", 2, (3,), lengths=((1, 1, 1, 1),)))
LETTERS = unordinal.arm(num_classes=3, length=4)


@pytest.mark.parametrize(
    ("model", "x", "message"),
    [
        (ROWS, [[0, 2, 0], [1, 0, 2]], "x has class 2 in row 1, column 2, which has 2 classes"),
        (ROWS, [[0, 2]], "this model has weights for each of its 3 places, got examples of 2"),
        (LINES, [[0, 2, 1]], "x has symbols after an end, class 2"),
        (LINES, [[0, 1, 1, 0]], "x has 4 positions; this model's examples have at most 3"),
        (LINES, [[0, 3, 3]], "x has class 3, but num_classes=2"),
        (LETTERS, [[0, 1, 3]], "x has class 3, but num_classes=3; was it encoded"),
        (LETTERS, [[0, -1]], "x has class -1, but num_classes=3"),
    ],
)
def test_examples_that_do_not_fit_are_refused(model: Any, x: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        check_classes(model, torch.tensor(x))
    assert "\n" not in str(error.value)


def test_examples_that_fit_are_taken() -> None:
    check_classes(ROWS, torch.tensor([[1, 2, 1]]))
    check_classes(LINES, torch.tensor([[2, 2, 2], [0, 1, 2], [1, 1, 1]]))
    check_classes(LINES, torch.tensor([[0, 1]]))  # shorter than the longest
    check_classes(LETTERS, torch.tensor([[0, 1, 2, 0, 1, 2]]))  # without places, any length


def test_samples_with_places_have_the_shape_of_training() -> None:
    with pytest.raises(ValueError, match="this model has weights for each of its 3 places"):
        sample_shape(ROWS, 2, (4,), {})
    with pytest.raises(ValueError, match=r"a sample cannot have shape \(4,\)"):
        sample_shape(LINES, 2, (4,), {})
    assert sample_shape(LETTERS, 2, (9,), {}) == (9,)
    assert as_classes([[1, 2]], "x").tolist() == [[1, 2]]
