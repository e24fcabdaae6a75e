"""An argmax flow from its part of a run's configuration."""

from collections.abc import Callable

from torch import nn

from unordinal.config import ArgmaxFlowConfig, SurjectionName
from unordinal.data.spec import DataSpec
from unordinal.flows.actnorm import ActNorm
from unordinal.flows.autoregressive import Autoregressive
from unordinal.flows.bijection import Bijection, Chain, Inverse
from unordinal.flows.coupling import Coupling, split_of
from unordinal.flows.density import ConditionalNormal, Density, Flow, StandardLogistic, StandardNormal
from unordinal.flows.elementwise import Affine, LogisticMixture
from unordinal.flows.linear import InvertibleLinear
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.nets.channels import ChannelNet
from unordinal.nets.context import ClassContext, Mlp
from unordinal.nets.linear import zero_linear
from unordinal.nets.recurrent import BiLSTM, CausalLSTM
from unordinal.nets.sequence import CausalTransformer, SequenceTransformer
from unordinal.surjections.argmax import GumbelArgmax, SoftplusArgmax
from unordinal.surjections.cartesian import BinaryProduct, CartesianProduct, num_digits
from unordinal.surjections.rounding import OneHotRounding, OrdinalRounding
from unordinal.surjections.surjection import Surjection


def build_argmax_flow(config: ArgmaxFlowConfig, spec: DataSpec) -> ArgmaxFlow:
    if len(spec.event_shape) != 1:
        raise ValueError(
            f"this model's network takes sequences, (N, length) arrays; "
            f"the examples of {spec.name} have shape {spec.event_shape}"
        )
    for name, value, known in (
        ("surjection", config.surjection, tuple(SURJECTIONS)),
        ("flow", config.flow, tuple(DENSITIES)),
        ("net", config.net, NETS),
    ):
        if value not in known:
            raise ValueError(f"unknown {name} {value!r}; known: {', '.join(known)}")
    if config.num_flows < 1:
        raise ValueError(f"num_flows must be at least 1, got {config.num_flows}")
    if config.context_width < 1:
        raise ValueError(f"context_width must be at least 1, got {config.context_width}")
    if config.noise_flows < 0:
        raise ValueError(f"noise_flows must be at least 0, got {config.noise_flows}")
    surjection = build_surjection(config, spec.num_classes)
    context = None
    if config.surjection != "round-uniform":  # which has nothing to learn
        context = ClassContext(spec.num_classes, width=config.context_width, num_blocks=config.context_blocks)
    density = DENSITIES[config.flow](config, spec.event_shape[0], surjection.num_channels)
    return ArgmaxFlow(surjection, density, event_shape=spec.event_shape, context=context)


def build_surjection(config: ArgmaxFlowConfig, num_classes: int) -> Surjection:
    """The configured surjection, in a base-M product where one is asked for."""
    make = SURJECTIONS[used_surjection(config)]
    if config.base is None:
        return make(config, num_classes)
    if config.surjection == "ordinal":
        raise ValueError(f"surjection ordinal has one real per class, got base {config.base}; leave --base out")
    num_digits(num_classes, config.base)  # complains about a base that does not fit
    if config.base == num_classes:
        return make(config, num_classes)
    return CartesianProduct(num_classes, config.base, lambda base: make(config, base))


def used_surjection(config: ArgmaxFlowConfig) -> SurjectionName:
    """With a base there are M reals per digit: bits of one real each become softplus thresholds of M."""
    return "softplus" if config.surjection == "binary" and config.base is not None else config.surjection


def learned_noise(config: ArgmaxFlowConfig, num_channels: int, *, mean: float = 0.0, log_scale: float = 0.0) -> Density:
    """q(u | context): a diagonal normal, with coupling layers behind it where asked."""
    head = zero_linear(config.context_width, 2 * num_channels)
    base = ConditionalNormal(head, mean=mean, log_scale=log_scale)
    if config.noise_flows == 0:
        return base
    if num_channels < 2:
        raise ValueError(f"noise flows need at least 2 channels per digit, got {num_channels}; set noise_flows to 0")
    layers: list[Bijection] = []
    for _ in range(config.noise_flows):
        fixed = split_of(num_channels)
        net = Mlp(fixed + config.context_width, 2 * (num_channels - fixed), width=2 * config.context_width)
        layers += [InvertibleLinear(num_channels), Coupling(net, Affine(), num_channels=num_channels)]
    return Flow(Inverse(Chain(layers)), base)


def binary(config: ArgmaxFlowConfig, num_classes: int) -> Surjection:
    # away from the boundary at first, so that the density model can tell the bits from the first step on
    noise = learned_noise(config, num_digits(num_classes, 2), mean=2.0, log_scale=-0.7)
    return BinaryProduct(num_classes, noise)


def softplus(config: ArgmaxFlowConfig, num_classes: int) -> Surjection:
    return SoftplusArgmax(num_classes, learned_noise(config, num_classes))


def gumbel(config: ArgmaxFlowConfig, num_classes: int) -> Surjection:
    return GumbelArgmax(num_classes, zero_linear(config.context_width, num_classes))


def gumbel_threshold(config: ArgmaxFlowConfig, num_classes: int) -> Surjection:
    phi = zero_linear(config.context_width, num_classes)
    return GumbelArgmax(num_classes, phi, learned_noise(config, num_classes))


def round_uniform(config: ArgmaxFlowConfig, num_classes: int) -> Surjection:  # noqa: ARG001
    return OneHotRounding(num_classes)


def round_variational(config: ArgmaxFlowConfig, num_classes: int) -> Surjection:
    return OneHotRounding(num_classes, learned_noise(config, num_classes))


def ordinal(config: ArgmaxFlowConfig, num_classes: int) -> Surjection:
    return OrdinalRounding(num_classes, learned_noise(config, 1))


SURJECTIONS: dict[SurjectionName, Callable[[ArgmaxFlowConfig, int], Surjection]] = {
    "binary": binary,
    "softplus": softplus,
    "gumbel": gumbel,
    "gumbel-threshold": gumbel_threshold,
    "round-uniform": round_uniform,
    "round-variational": round_variational,
    "ordinal": ordinal,
}


def front(config: ArgmaxFlowConfig, num_channels: int) -> list[Bijection]:
    """What brings v to zero mean and unit scale before anything else; bits start there by themselves."""
    return [] if used_surjection(config) == "binary" else [ActNorm(num_channels)]


def autoregressive(config: ArgmaxFlowConfig, length: int, num_channels: int) -> Density:
    """One autoregressive layer of logistic mixtures: p(v) is a product of mixtures of logistics."""
    map_ = LogisticMixture(config.num_mixtures)
    net: nn.Module
    if config.net == "lstm":
        net = CausalLSTM(num_channels, width=config.width, num_layers=config.num_layers, dropout=config.dropout)
    else:
        net = CausalTransformer(
            num_channels,
            width=config.width,
            num_blocks=config.num_layers,
            num_heads=config.num_heads,
            conv=config.conv,
            dropout=config.dropout,
        )
    head = ChannelNet(config.width, num_channels, map_.num_parameters, width=config.channel_width)
    layers = [*front(config, num_channels), Autoregressive(net, head, map_, num_channels=num_channels)]
    return Flow(Chain(layers), StandardLogistic((length, num_channels)))


def coupling(config: ArgmaxFlowConfig, length: int, num_channels: int) -> Density:
    """`num_flows` times an invertible 1x1 and a mixture coupling, down to a standard normal."""
    map_ = LogisticMixture(config.num_mixtures)
    fixed = split_of(num_channels)
    layers = front(config, num_channels)
    for _ in range(config.num_flows):
        out = (num_channels - fixed) * map_.num_parameters
        net: nn.Module
        if config.net == "lstm":
            net = BiLSTM(fixed, out, width=config.width, num_layers=config.num_layers, dropout=config.dropout)
        else:
            net = SequenceTransformer(
                fixed,
                out,
                width=config.width,
                num_blocks=config.num_layers,
                num_heads=config.num_heads,
                conv=config.conv,
                dropout=config.dropout,
            )
        layers += [InvertibleLinear(num_channels), Coupling(net, map_, num_channels=num_channels)]
    return Flow(Chain(layers), StandardNormal((length, num_channels)))


NETS = ("lstm", "transformer")
DENSITIES: dict[str, Callable[[ArgmaxFlowConfig, int, int], Density]] = {
    "ar": autoregressive,
    "coupling": coupling,
}
