"""Cartesian products: a class is written as digits in a smaller base, and each digit has its own surjection."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from unordinal.flows.density import Density
from unordinal.numerics import Rng, sum_except_batch
from unordinal.surjections.surjection import Surjection


def num_digits(num_classes: int, base: int) -> int:
    """Return the smallest d with base^d >= num_classes.

    It is computed in integers, since a logarithm in floating point is wrong for 125 in base 5.

    >>> [num_digits(27, base) for base in (2, 3, 6, 27)], num_digits(125, 5)
    ([5, 3, 2, 1], 3)
    """
    if not 2 <= base <= num_classes:
        raise ValueError(f"the base must be between 2 and the number of classes, {num_classes}; got {base}")
    digits = 1
    while base**digits < num_classes:
        digits += 1
    return digits


def to_digits(x: Tensor, base: int, digits: int) -> Tensor:
    """Return the digits of classes, the most significant first: (...) -> (..., d)."""
    place = base ** torch.arange(digits - 1, -1, -1, device=x.device)
    return x.unsqueeze(-1).div(place, rounding_mode="floor") % base


def from_digits(digits: Tensor, base: int) -> Tensor:
    """Return the classes that digits represent: (..., d) -> (...)."""
    place = base ** torch.arange(digits.shape[-1] - 1, -1, -1, device=digits.device)
    return (digits * place).sum(dim=-1)


class CartesianProduct(Surjection):
    """A surjection for classes that are written as digits in base M, with one surjection over M classes per digit.

    It needs fewer channels than a surjection over all K classes (the paper's section on Cartesian products). If a digit
    is invalid, or the digits represent a number of K or more, v represents no class.

    Args:
        num_classes: the number of classes K.
        base: the base M, between 2 and K.
        make: a function that builds the surjection of one digit, given its number of classes M.

    >>> from unordinal.surjections.argmax import GumbelArgmax
    >>> surjection = CartesianProduct(27, 3, lambda base: GumbelArgmax(base, None))
    >>> x = torch.randint(27, (2, 8))
    >>> v, log_q = surjection.lift(x)
    >>> v.shape, surjection.quantize(v).equal(x)
    (torch.Size([2, 8, 9]), True)
    """

    def __init__(self, num_classes: int, base: int, make: Callable[[int], Surjection]):
        digits = num_digits(num_classes, base)
        inner = [make(base) for _ in range(digits)]
        has_invalid = base**digits > num_classes or any(s.has_invalid for s in inner)
        super().__init__(num_classes, sum(s.num_channels for s in inner), has_invalid=has_invalid)
        self.base, self.digits = base, nn.ModuleList(inner)

    def inner(self) -> list[Surjection]:
        """Return the surjections of the digits, the most significant first."""
        return [s for s in self.digits if isinstance(s, Surjection)]

    def lift(self, x: Tensor, context: Tensor | None = None, *, generator: Rng = None) -> tuple[Tensor, Tensor]:
        digits = to_digits(x, self.base, len(self.digits)).unbind(-1)
        lifted = [s.lift(digit, context, generator=generator) for s, digit in zip(self.inner(), digits, strict=True)]
        return torch.cat([v for v, _ in lifted], dim=-1), torch.stack([log_q for _, log_q in lifted]).sum(dim=0)

    def quantize(self, v: Tensor) -> Tensor:
        parts = v.split([s.num_channels for s in self.inner()], dim=-1)
        digits = torch.stack([s.quantize(part) for s, part in zip(self.inner(), parts, strict=True)], dim=-1)
        x = from_digits(digits, self.base)
        is_bad = (digits >= self.base).any(dim=-1)  # an invalid digit would carry over into the next one
        return torch.where(is_bad, self.num_classes, x)


class BinaryProduct(Surjection):
    """A surjection for classes that are written as bits, with one real number per bit whose sign is the bit.

    The inverse is v = (2 b - 1) softplus(u) for bits b and noise u. If the bits represent a number of K or more, v
    represents no class.

    Args:
        num_classes: the number of classes K.
        noise: the density q(u | x) over (*D, C), where C is the number of bits; it may read the context as its
            condition.

    >>> from unordinal.flows.density import StandardNormal
    >>> surjection, x = BinaryProduct(27, StandardNormal((5,))), torch.randint(27, (2, 8))
    >>> v, log_q = surjection.lift(x)
    >>> v.shape, surjection.quantize(v).equal(x)
    (torch.Size([2, 8, 5]), True)
    """

    def __init__(self, num_classes: int, noise: Density):
        bits = num_digits(num_classes, 2)
        super().__init__(num_classes, bits, has_invalid=2**bits > num_classes)
        self.noise = noise

    def lift(self, x: Tensor, context: Tensor | None = None, *, generator: Rng = None) -> tuple[Tensor, Tensor]:
        bits = to_digits(x, 2, self.num_channels)
        u, log_q = self.draw_noise(self.noise, x, context, generator)
        size = -logsigmoid(-u)  # softplus
        size = size.clamp(min=torch.finfo(u.dtype).tiny)  # an underflow to 0 would lose the sign
        return (2 * bits - 1) * size, log_q - sum_except_batch(logsigmoid(u))

    def quantize(self, v: Tensor) -> Tensor:
        return from_digits((v > 0).long(), 2)
