"""An argmax flow over sequences from its part of a run's configuration."""

from collections.abc import Callable

from torch import nn

from unordinal.data.spec import DataSpec
from unordinal.flows.actnorm import ActNorm
from unordinal.flows.autoregressive import AutoregressiveMixture
from unordinal.flows.bijection import Bijection, Chain, Inverse
from unordinal.flows.coupling import Coupling, split_of
from unordinal.flows.density import ConditionalNormal, Density, Flow, StandardNormal
from unordinal.flows.elementwise import Affine, LogisticMixture
from unordinal.flows.linear import InvertibleLinear
from unordinal.model_config import ArgmaxFlowConfig, MixtureConfig
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.build_nets import NETS, causal_net, sequence_net
from unordinal.models.build_surjection import (
    SURJECTIONS,
    InverseParts,
    build_surjection,
    check_known,
    has_context,
    used_surjection,
)
from unordinal.nets.channels import ChannelNet
from unordinal.nets.context import ClassContext, Mlp
from unordinal.nets.linear import zero_linear


def build_argmax_flow(config: ArgmaxFlowConfig, spec: DataSpec) -> ArgmaxFlow:
    spec.require_sequences()
    check_known("surjection", config.surjection, tuple(SURJECTIONS))
    check_known("flow", config.flow, tuple(DENSITIES))
    check_known("net", config.net, NETS)
    if config.num_flows < 1:
        raise ValueError(f"num_flows must be at least 1, got {config.num_flows}")
    if config.context_width < 1:
        raise ValueError(f"context_width must be at least 1, got {config.context_width}")
    if config.noise_flows < 0:
        raise ValueError(f"noise_flows must be at least 0, got {config.noise_flows}")

    def noise(num_channels: int, *, mean: float = 0.0, log_scale: float = 0.0) -> Density:
        base = ConditionalNormal(zero_linear(config.context_width, 2 * num_channels), mean=mean, log_scale=log_scale)
        return conditional_flow(base, num_channels, config.noise_flows, config.context_width, make_mlp)

    def make_mlp(num_in: int, num_out: int, _num_fixed: int) -> nn.Module:
        return Mlp(num_in, num_out, width=2 * config.context_width)

    parts = InverseParts(config.context_width, noise)
    surjection = build_surjection(config.surjection, config.base, spec.num_classes, parts)
    context = None
    if has_context(config.surjection):
        context = ClassContext(spec.num_classes, width=config.context_width, num_blocks=config.context_blocks)
    density = DENSITIES[config.flow](config, spec.event_shape[0], surjection.num_channels)
    return ArgmaxFlow(surjection, density, event_shape=spec.event_shape, context=context)


def conditional_flow(
    base: Density,
    num_channels: int,
    num_flows: int,
    context_width: int,
    make_net: Callable[[int, int, int], nn.Module],
) -> Density:
    """q(u | context): `base`, with `num_flows` invertible 1x1s and affine couplings behind it.

    `make_net` gets the channels a coupling's network reads, those it writes, and how many of the former are fixed.
    """
    if num_flows == 0:
        return base
    if num_channels < 2:
        raise ValueError(f"noise flows need at least 2 channels per digit, got {num_channels}; set noise_flows to 0")
    fixed = split_of(num_channels)
    layers: list[Bijection] = []
    for _ in range(num_flows):
        net = make_net(fixed + context_width, Affine.num_parameters * (num_channels - fixed), fixed)
        layers += [InvertibleLinear(num_channels), Coupling(net, Affine(), num_channels=num_channels)]
    return Flow(Inverse(Chain(layers)), base)  # noise -> u is the direction of training, so nothing is inverted there


def front(config: ArgmaxFlowConfig, num_channels: int) -> list[Bijection]:
    """What brings v to zero mean and unit scale before anything else; bits start there by themselves."""
    return [] if used_surjection(config.surjection, config.base) == "binary" else [ActNorm(num_channels)]


def autoregressive(config: ArgmaxFlowConfig, length: int, num_channels: int) -> Density:
    """One autoregressive layer of logistic mixtures: p(v) is a product of mixtures of logistics."""
    return mixture_density(config, length, num_channels, front(config, num_channels))


def mixture_density(config: MixtureConfig, length: int, num_channels: int, layers: list[Bijection]) -> Density:
    """Some layers, then one autoregressive layer of logistic mixtures over a standard logistic."""
    map_ = LogisticMixture(config.num_mixtures)
    net = causal_net(config, num_channels)  # first, since it complains about sizes that cannot be
    head = ChannelNet(config.width, num_channels, map_.num_parameters, width=config.channel_width)
    mixture = AutoregressiveMixture(net, head, map_, event_shape=(length, num_channels))
    return Flow(Chain(layers), mixture) if layers else mixture


def coupling(config: ArgmaxFlowConfig, length: int, num_channels: int) -> Density:
    """`num_flows` times an invertible 1x1 and a mixture coupling, down to a standard normal."""
    map_ = LogisticMixture(config.num_mixtures)
    fixed = split_of(num_channels)
    layers = front(config, num_channels)
    for _ in range(config.num_flows):
        net = sequence_net(config, fixed, (num_channels - fixed) * map_.num_parameters)
        layers += [InvertibleLinear(num_channels), Coupling(net, map_, num_channels=num_channels)]
    return Flow(Chain(layers), StandardNormal((length, num_channels)))


DENSITIES: dict[str, Callable[[ArgmaxFlowConfig, int, int], Density]] = {
    "ar": autoregressive,
    "coupling": coupling,
}
