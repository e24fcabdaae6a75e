"""Ragged logits of columns: every function gives what it gives for each column by itself."""

import pytest
import torch
from contracts import chi_square_p_value

from unordinal.columns import Classes
from unordinal.numerics import draw_categorical, sharpened

SIZES = (2, 3, 1, 2, 5)
CLASSES = Classes(SIZES)


def logits_of(num: int = 4) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Ragged logits, and those of each column by itself."""
    each = [torch.randn(num, k, generator=torch.Generator().manual_seed(k + c)) for c, k in enumerate(SIZES)]
    ragged = torch.empty(num, sum(SIZES))
    for column, part in enumerate(each):
        ragged[:, CLASSES.offsets[column] : CLASSES.offsets[column] + SIZES[column]] = part
    return ragged, each


def test_every_column_has_its_own_logits() -> None:
    assert sorted(place for o, k in zip(CLASSES.offsets, SIZES, strict=True) for place in range(o, o + k)) == list(
        range(sum(SIZES))
    )
    ragged, each = logits_of()
    for column, part in enumerate(each):
        assert torch.equal(CLASSES.at(ragged, column), part)
    assert Classes(CLASSES).columns == SIZES
    assert Classes(7).columns == ()
    assert Classes(7).most == 7


def test_reductions_and_maps_are_those_of_each_column() -> None:
    ragged, each = logits_of()
    x = torch.tensor([[k - 1 for k in SIZES]] * 4)
    expected = torch.stack([torch.log_softmax(part, -1)[:, -1] for part in each], dim=1)
    torch.testing.assert_close(CLASSES.log_prob(ragged, x), expected)
    largest, entropy = CLASSES.reduce(lambda part: (part.amax(-1), part.logsumexp(-1)), ragged)
    torch.testing.assert_close(largest, torch.stack([part.amax(-1) for part in each], dim=1))
    torch.testing.assert_close(entropy, torch.stack([part.logsumexp(-1) for part in each], dim=1))
    ratio = torch.rand(4, 1)
    torch.testing.assert_close(
        CLASSES.reduce(lambda part, r: part.sum(-1) * r, ragged, ratio),
        torch.stack([part.sum(-1) for part in each], dim=1) * ratio,
    )
    sharp = CLASSES.map(lambda part: sharpened(part, 0.5, 0.9), ragged)
    for column, part in enumerate(each):
        torch.testing.assert_close(CLASSES.at(sharp, column), sharpened(part, 0.5, 0.9))
    added = CLASSES.add_at(ragged, x, torch.full((4, len(SIZES)), 2.0))
    for column, part in enumerate(each):
        part[:, -1] += 2.0
        torch.testing.assert_close(CLASSES.at(added, column), part)


def test_draws_are_those_of_each_column() -> None:
    ragged, each = logits_of(1)
    generator = torch.Generator().manual_seed(0)
    drawn = CLASSES.draw(ragged.expand(20_000, -1), generator)
    even = CLASSES.uniform((20_000, len(SIZES)), torch.device("cpu"), generator)
    for column, k in enumerate(SIZES):
        for found, p in ((drawn, torch.softmax(each[column][0], -1)), (even, torch.full((k,), 1 / k))):
            counts = torch.bincount(found[:, column], minlength=k).double()
            assert len(counts) == k  # no class that the column lacks
            if k > 1:
                assert chi_square_p_value(counts, p.double()) > 1e-5
    where = torch.rand(20_000, len(SIZES), generator=generator) < 0.5
    assert CLASSES.draw_at(ragged.expand(20_000, -1), where, generator).shape == (int(where.sum()),)
    some = CLASSES.uniform_at(where, generator)
    assert bool((some < torch.tensor(SIZES).expand(20_000, -1)[where]).all())


def test_equal_classes_are_as_before() -> None:
    classes, logits = Classes(3), torch.randn(2, 4, 5, 3)
    x = torch.randint(3, (2, 4, 5))
    torch.testing.assert_close(
        classes.log_prob(logits, x), torch.log_softmax(logits, -1).gather(-1, x.unsqueeze(-1)).squeeze(-1)
    )
    a, b = (torch.Generator().manual_seed(1) for _ in range(2))
    assert torch.equal(classes.draw(logits, a), draw_categorical(logits, b))
    assert torch.equal(classes.uniform((2, 3), torch.device("cpu"), a), torch.randint(3, (2, 3), generator=b))


@pytest.mark.parametrize("num", [1, 0, (0, 2), (1, 1), ()])
def test_too_few_classes_are_refused(num: int | tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at least 2 classes, and each column at least 1"):
        Classes(num)
