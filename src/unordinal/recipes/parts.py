"""What the shared settings describe, built: networks, densities p(v), noise q(u | x) and surjections."""

from collections.abc import Callable
from functools import partial

from torch import nn

from unordinal.data.spec import DataSpec
from unordinal.flows.bijection import Bijection
from unordinal.flows.density import ConditionalNormal
from unordinal.flows.density import Density as BuiltDensity
from unordinal.flows.ready import autoregressive_flow, conditional_flow, coupling_flow
from unordinal.nets.context import ClassContext, Mlp
from unordinal.nets.densenet import DenseNet as DenseNetwork
from unordinal.nets.densenet import MapContext
from unordinal.nets.linear import zero_linear
from unordinal.nets.recurrent import BiLSTM, CausalLSTM
from unordinal.nets.sequence import CausalTransformer, SequenceTransformer
from unordinal.recipes.settings import LSTM, DenseNet, Density, Inverse, Levels, MapInverse, Mixture, SequenceNet
from unordinal.surjections.argmax import GumbelArgmax, SoftplusArgmax
from unordinal.surjections.cartesian import BinaryProduct, CartesianProduct, num_digits
from unordinal.surjections.rounding import OneHotRounding, OrdinalRounding
from unordinal.surjections.surjection import Surjection


def causal_net(net: SequenceNet, in_channels: int) -> nn.Module:
    """Features of each position from those before it: (B, L, in) -> (B, L, width)."""
    make: type[nn.Module] = CausalLSTM if isinstance(net, LSTM) else CausalTransformer
    return make(in_channels, **vars(net))


def sequence_net(net: SequenceNet, in_channels: int, out_channels: int) -> nn.Module:
    """Every position from all of them: (B, L, in) -> (B, L, out)."""
    make: type[nn.Module] = BiLSTM if isinstance(net, LSTM) else SequenceTransformer
    return make(in_channels, out_channels, **vars(net))


def map_net(net: DenseNet, in_channels: int, out_channels: int, num_sharp: int = 0) -> nn.Module:
    """Every pixel from its surroundings: (B, H, W, in) -> (B, H, W, out)."""
    return DenseNetwork(in_channels, out_channels, num_sharp=num_sharp, **vars(net))


def built_density(density: Density, event_shape: tuple[int, ...], front: list[Bijection]) -> BuiltDensity:
    """p(v) of shape (*D, C), behind the layers of `front`."""
    if isinstance(density, Mixture):
        length, num_channels = event_shape
        return autoregressive_flow(
            causal_net(density.net, num_channels),
            width=density.net.width,
            event_shape=(length, num_channels),
            num_mixtures=density.num_mixtures,
            channel_width=density.channel_width,
            front=front,
        )
    if isinstance(density, Levels):
        net = density.net
        make_net, num_levels = (lambda read, write: map_net(net, read, write, read)), density.num_levels
    else:
        make_net, num_levels = partial(sequence_net, density.net), 1
    counts = {"num_flows": density.num_flows, "num_mixtures": density.num_mixtures, "num_levels": num_levels}
    return coupling_flow(make_net, event_shape=event_shape, front=front, **counts)


def side_multiple(density: Density) -> int:
    """What the sides of an example must be multiples of."""
    return 2 ** (density.num_levels - 1) if isinstance(density, Levels) else 1


def require_shape(spec: DataSpec, density: Density) -> None:
    """Refuse data that a density cannot read."""
    if not isinstance(density, Levels):
        return spec.require_sequences()
    check_positive(num_levels=density.num_levels)
    try:
        return spec.require_maps(side_multiple(density))
    except ValueError as error:
        raise ValueError(f"{error} (`model.density.num_levels` is {density.num_levels})") from error


def context_width(inverse: Inverse) -> int:
    return inverse.features.width if isinstance(inverse, MapInverse) else inverse.width


def context_net(inverse: Inverse, num_classes: int) -> nn.Module:
    """Features of x that q sees: (B, *D) -> (B, *D, width)."""
    if isinstance(inverse, MapInverse):
        return MapContext(num_classes, **vars(inverse.features))
    return ClassContext(num_classes, width=inverse.width, num_blocks=inverse.num_blocks)


def noise(inverse: Inverse, num_channels: int, *, mean: float = 0.0, log_scale: float = 0.0) -> BuiltDensity:
    """q(u | x): a normal that begins at `mean` and `log_scale`, then 1x1s and affine couplings."""
    width = context_width(inverse)
    check_positive(width=width)
    if inverse.num_flows < 0 or (inverse.num_flows and num_channels < 2):
        raise ValueError(
            f"`model.inverse.num_flows` must be 0, or more where a digit has at least 2 channels; "
            f"got {inverse.num_flows} for {num_channels}"
        )

    def make_net(read: int, write: int) -> nn.Module:
        if isinstance(inverse, MapInverse):
            return map_net(inverse.net, read + width, write, read)
        return Mlp(read + width, write, width=2 * width)

    base = ConditionalNormal(zero_linear(width, 2 * num_channels), mean=mean, log_scale=log_scale)
    return conditional_flow(base, make_net, num_channels=num_channels, num_flows=inverse.num_flows)


def binary(num_classes: int, q: Inverse) -> Surjection:
    # away from the boundary at first, so that the density model can tell the bits from the first step on
    return BinaryProduct(num_classes, noise(q, num_digits(num_classes, 2), mean=2.0, log_scale=-0.7))


def gumbel(num_classes: int, q: Inverse) -> Surjection:
    return GumbelArgmax(num_classes, zero_linear(context_width(q), num_classes))


def gumbel_threshold(num_classes: int, q: Inverse) -> Surjection:
    return GumbelArgmax(num_classes, zero_linear(context_width(q), num_classes), noise(q, num_classes))


SURJECTIONS: dict[str, Callable[[int, Inverse], Surjection]] = {
    "binary": binary,
    "softplus": lambda num_classes, q: SoftplusArgmax(num_classes, noise(q, num_classes)),
    "gumbel": gumbel,
    "gumbel-threshold": gumbel_threshold,
    "round-uniform": lambda num_classes, _: OneHotRounding(num_classes),
    "round-variational": lambda num_classes, q: OneHotRounding(num_classes, noise(q, num_classes)),
    "ordinal": lambda num_classes, q: OrdinalRounding(num_classes, noise(q, 1)),
}


def built_surjection(name: str, base: int | None, num_classes: int, inverse: Inverse) -> Surjection:
    """The named surjection, in a base-M product where one is asked for."""
    if base is not None and name == "ordinal":
        raise ValueError(f"surjection ordinal has one real per class, got base {base}; leave `base` out")
    if base is None:
        return SURJECTIONS[name](num_classes, inverse)
    num_digits(num_classes, base)  # complains about a base that does not fit
    if base == num_classes:
        return SURJECTIONS[name](num_classes, inverse)
    return CartesianProduct(num_classes, base, lambda digit: SURJECTIONS[name](digit, inverse))


def check_positive(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
