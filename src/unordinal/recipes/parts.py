"""Build what `settings.py` describes: networks, densities p(v), noise q(u | x) and surjections."""

from collections.abc import Callable
from typing import Any

from torch import nn

from unordinal.columns import Classes
from unordinal.data.spec import DataSpec
from unordinal.flows import ready
from unordinal.flows.bijection import Bijection
from unordinal.flows.density import ConditionalNormal, Density
from unordinal.names import check_positive
from unordinal.nets import context, densenet, recurrent, sequence, transformer, unet
from unordinal.nets import settings as sizes_of
from unordinal.nets.linear import zero_linear
from unordinal.recipes import settings
from unordinal.surjections.argmax import GumbelArgmax, SoftplusArgmax
from unordinal.surjections.cartesian import BinaryProduct, CartesianProduct, num_digits
from unordinal.surjections.rounding import OneHotRounding, OrdinalRounding
from unordinal.surjections.surjection import Surjection


def classes_of(spec: DataSpec) -> Classes:
    """Return the classes of the positions, with the numbers that those of a table stand for."""
    return Classes(spec.classes, spec.numbers)


def denoiser(
    net: sizes_of.DiffusionTransformer | sizes_of.Transformer | sizes_of.UNet, spec: DataSpec, num_input_classes: int
) -> nn.Module:
    """Build the network that predicts the logits of x_0 from noisy classes and time: (B, *D), (B,) -> (B, *D, K)."""
    given: Any = {"num_input_classes": num_input_classes, "labels": spec.label_sizes, **vars(net)}
    if isinstance(net, sizes_of.UNet):
        spec.require_maps(2)
        return unet.UNet(spec.num_classes, **given)
    spec.require_sequences()
    given |= {"pad": spec.num_classes if spec.ends else None, "length": spec.num_places}
    if isinstance(net, sizes_of.Transformer):  # without time
        return sequence.DenoisingTransformer(classes_of(spec), **given)
    return transformer.TimeTransformer(classes_of(spec), **given)


def given_parts(spec: DataSpec) -> Any:
    """Return what a diffusion needs to know of its data besides their classes, as arguments."""
    return {"lengths": spec.lengths, "labels": spec.label_sizes, "has_places": spec.num_places is not None}


def causal_net(net: settings.SequenceNet, in_channels: int, cond_channels: int = 0) -> nn.Module:
    """Build a network whose output at a position depends on the positions before it: (B, L, in) -> (B, L, width)."""
    make: type[nn.Module] = recurrent.CausalLSTM if isinstance(net, sizes_of.LSTM) else sequence.CausalTransformer
    return make(in_channels, cond_channels=cond_channels, **vars(net))


def sequence_net(net: settings.SequenceNet, in_channels: int, out_channels: int) -> nn.Module:
    """Build a network whose output at a position depends on all positions: (B, L, in) -> (B, L, out)."""
    make: type[nn.Module] = recurrent.BiLSTM if isinstance(net, sizes_of.LSTM) else sequence.SequenceTransformer
    return make(in_channels, out_channels, **vars(net))


def map_net(net: sizes_of.DenseNet, in_channels: int, out_channels: int, num_sharp: int = 0) -> nn.Module:
    """Build a convolutional network over maps: (B, H, W, in) -> (B, H, W, out)."""
    return densenet.DenseNet(in_channels, out_channels, num_sharp=num_sharp, **vars(net))


def build_density(
    density: settings.Density, event_shape: tuple[int, ...], front: list[Bijection], cond_channels: int = 0
) -> Density:
    """Build p(v) for v of shape (*D, C); the transformations of `front` are applied to v first.

    With `cond_channels`, p(v | cond) reads a condition (*D, cond_channels); mixtures only.
    """
    sizes = {name: value for name, value in vars(density).items() if name != "net"}
    if isinstance(density, settings.Mixture):
        length, num_channels = event_shape
        net, width = causal_net(density.net, num_channels, cond_channels), density.net.width
        return ready.autoregressive_flow(net, width=width, event_shape=(length, num_channels), front=front, **sizes)
    check_positive("model.density.num_flows", density.num_flows)

    def make_net(read: int, write: int) -> nn.Module:
        if isinstance(density, settings.Levels):
            return map_net(density.net, read, write, read)
        return sequence_net(density.net, read, write)

    return ready.coupling_flow(make_net, event_shape=event_shape, front=front, **sizes)


def side_multiple(density: settings.Density) -> int:
    """Return the number that the height and width of an example must be multiples of."""
    return 2 ** (density.num_levels - 1) if isinstance(density, settings.Levels) else 1


def require_shape(spec: DataSpec, density: settings.Density) -> None:
    """Raise a ValueError if the density cannot be built for data of this shape."""
    if not isinstance(density, settings.Levels):
        return spec.require_sequences()
    check_positive("model.density.num_levels", density.num_levels)
    try:
        return spec.require_maps(side_multiple(density))
    except ValueError as error:
        raise ValueError(f"{error} (`model.density.num_levels` is {density.num_levels})") from error


def context_width(inverse: settings.Inverse) -> int:
    """Return the number of features of x that q(u | x) is conditioned on."""
    return inverse.features.width if isinstance(inverse, settings.MapInverse) else inverse.width


def context_net(inverse: settings.Inverse, num_classes: int) -> nn.Module:
    """Build the network that computes the features of x for q(u | x): (B, *D) -> (B, *D, width)."""
    if isinstance(inverse, settings.MapInverse):
        return densenet.MapContext(num_classes, **vars(inverse.features))
    return context.ClassContext(num_classes, width=inverse.width, num_blocks=inverse.num_blocks)


def noise(inverse: settings.Inverse, num_channels: int, *, mean: float = 0.0, log_scale: float = 0.0) -> Density:
    """Build q(u | x): a normal that starts with `mean` and `log_scale`, then 1x1 convolutions and affine couplings."""
    width = context_width(inverse)
    check_positive(f"model.inverse.{'features.' * isinstance(inverse, settings.MapInverse)}width", width)
    if inverse.num_flows < 0 or (inverse.num_flows and num_channels < 2):
        got = f"got {inverse.num_flows} for {num_channels}"
        raise ValueError(f"`model.inverse.num_flows` must be 0, or more where a digit has at least 2 channels; {got}")

    def make_net(read: int, write: int) -> nn.Module:
        if isinstance(inverse, settings.MapInverse):
            return map_net(inverse.net, read + width, write, read)
        return context.Mlp(read + width, write, width=2 * width)

    base = ConditionalNormal(zero_linear(width, 2 * num_channels), mean=mean, log_scale=log_scale)
    return ready.conditional_flow(base, make_net, num_channels=num_channels, num_flows=inverse.num_flows)


# Functions that build each surjection from the number of classes K and the settings of q. The noise of bits starts away
# from 0, where two bits meet, so that the density can distinguish them from the first step on.
SURJECTIONS: dict[str, Callable[[int, settings.Inverse], Surjection]] = {
    "binary": lambda k, q: BinaryProduct(k, noise(q, num_digits(k, 2), mean=2.0, log_scale=-0.7)),
    "softplus": lambda k, q: SoftplusArgmax(k, noise(q, k)),
    "gumbel": lambda k, q: GumbelArgmax(k, zero_linear(context_width(q), k)),
    "gumbel-threshold": lambda k, q: GumbelArgmax(k, zero_linear(context_width(q), k), noise(q, k)),
    "round-uniform": lambda k, _: OneHotRounding(k),
    "round-variational": lambda k, q: OneHotRounding(k, noise(q, k)),
    "ordinal": lambda k, q: OrdinalRounding(k, noise(q, 1)),
}


def build_surjection(name: str, base: int | None, num_classes: int, inverse: settings.Inverse) -> Surjection:
    """Build the named surjection for classes, or with a base for each digit of the classes in that base."""
    if base is not None and name == "ordinal":
        raise ValueError(f"surjection ordinal has one real number per class, got base {base}; leave `base` out")
    if base in (None, num_classes):
        return SURJECTIONS[name](num_classes, inverse)
    num_digits(num_classes, base)  # raises an error for a base that does not fit
    return CartesianProduct(num_classes, base, lambda digit: SURJECTIONS[name](digit, inverse))
