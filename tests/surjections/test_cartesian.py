"""Digits of integers, and codes of products that represent no class."""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import nn

from unordinal.flows.density import ConditionalNormal, Density
from unordinal.surjections.argmax import SoftplusArgmax
from unordinal.surjections.cartesian import BinaryProduct, CartesianProduct, from_digits, num_digits, to_digits
from unordinal.surjections.rounding import OneHotRounding

H = 2


def noise(num_channels: int, scale: float = 0.7) -> Density:
    torch.manual_seed(num_channels)
    net = nn.Linear(H, 2 * num_channels)
    net.weight.data *= scale
    return ConditionalNormal(net)


def test_digits() -> None:
    for classes, base in itertools.product((2, 3, 5, 27, 91, 125, 216, 256), (2, 3, 5, 6, 16)):
        if base > classes:
            continue
        digits = num_digits(classes, base)
        assert base**digits >= classes > base ** (digits - 1)
        x = torch.arange(classes)
        written = to_digits(x, base, digits)
        assert int(written.max()) < base
        assert torch.equal(from_digits(written, base), x)
    assert to_digits(torch.tensor(11), 3, 3).tolist() == [1, 0, 2]


def test_codes_that_represent_no_class() -> None:
    product = CartesianProduct(5, 3, lambda m: SoftplusArgmax(m, noise(m)))
    code = torch.tensor([[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]])  # digits 2, 2: class 8 of 5 classes
    assert product.has_invalid
    assert int(product.quantize(code.unsqueeze(0))) == 8
    inner = CartesianProduct(4, 2, lambda m: OneHotRounding(m, noise(m)))
    assert inner.has_invalid
    assert int(inner.quantize(torch.tensor([[[0.5, 0.5, 1.5, 0.5]]]))) == 4
    assert not BinaryProduct(8, noise(3)).has_invalid
    assert BinaryProduct(5, noise(3)).has_invalid
    assert not CartesianProduct(27, 3, lambda m: SoftplusArgmax(m, noise(m))).has_invalid


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: num_digits(27, 1), "between 2 and the number of classes, 27; got 1"),
        (lambda: num_digits(27, 28), "between 2 and the number of classes, 27; got 28"),
        (lambda: BinaryProduct(1, noise(1)), "number of classes, 1; got 2"),
    ],
)
def test_impossible_bases_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
