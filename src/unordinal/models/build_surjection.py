"""A surjection by its name, for sequences and for maps alike."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from unordinal.flows.density import Density
from unordinal.model_config import SurjectionName
from unordinal.nets.linear import zero_linear
from unordinal.surjections.argmax import GumbelArgmax, SoftplusArgmax
from unordinal.surjections.cartesian import BinaryProduct, CartesianProduct, num_digits
from unordinal.surjections.rounding import OneHotRounding, OrdinalRounding
from unordinal.surjections.surjection import Surjection


class NoiseBuilder(Protocol):
    """q(u | context) over so many channels; `mean` and `log_scale` are where its normal begins."""

    def __call__(self, num_channels: int, *, mean: float = 0.0, log_scale: float = 0.0) -> Density: ...


@dataclass(frozen=True)
class InverseParts:
    """What a probabilistic inverse is made of."""

    context_width: int
    noise: NoiseBuilder


def build_surjection(name: SurjectionName, base: int | None, num_classes: int, parts: InverseParts) -> Surjection:
    """The named surjection, in a base-M product where one is asked for."""
    make = SURJECTIONS[used_surjection(name, base)]
    if base is None:
        return make(num_classes, parts)
    if name == "ordinal":
        raise ValueError(f"surjection ordinal has one real per class, got base {base}; leave --base out")
    num_digits(num_classes, base)  # complains about a base that does not fit
    if base == num_classes:
        return make(num_classes, parts)
    return CartesianProduct(num_classes, base, lambda digit: make(digit, parts))


def used_surjection(name: SurjectionName, base: int | None) -> SurjectionName:
    """With a base there are M reals per digit: bits of one real each become softplus thresholds of M."""
    return "softplus" if name == "binary" and base is not None else name


def binary(num_classes: int, parts: InverseParts) -> Surjection:
    # away from the boundary at first, so that the density model can tell the bits from the first step on
    return BinaryProduct(num_classes, parts.noise(num_digits(num_classes, 2), mean=2.0, log_scale=-0.7))


def softplus(num_classes: int, parts: InverseParts) -> Surjection:
    return SoftplusArgmax(num_classes, parts.noise(num_classes))


def gumbel(num_classes: int, parts: InverseParts) -> Surjection:
    return GumbelArgmax(num_classes, zero_linear(parts.context_width, num_classes))


def gumbel_threshold(num_classes: int, parts: InverseParts) -> Surjection:
    return GumbelArgmax(num_classes, zero_linear(parts.context_width, num_classes), parts.noise(num_classes))


def round_uniform(num_classes: int, parts: InverseParts) -> Surjection:  # noqa: ARG001
    return OneHotRounding(num_classes)


def round_variational(num_classes: int, parts: InverseParts) -> Surjection:
    return OneHotRounding(num_classes, parts.noise(num_classes))


def ordinal(num_classes: int, parts: InverseParts) -> Surjection:
    return OrdinalRounding(num_classes, parts.noise(1))


SURJECTIONS: dict[SurjectionName, Callable[[int, InverseParts], Surjection]] = {
    "binary": binary,
    "softplus": softplus,
    "gumbel": gumbel,
    "gumbel-threshold": gumbel_threshold,
    "round-uniform": round_uniform,
    "round-variational": round_variational,
    "ordinal": ordinal,
}


def check_known(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"unknown {name} {value!r}; known: {', '.join(known)}")


def has_context(name: SurjectionName) -> bool:
    """Whether q(v | x) has anything to learn; uniform dequantisation has not."""
    return name != "round-uniform"
