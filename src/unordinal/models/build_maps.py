"""Flows over maps from their part of a run's configuration: argmax flows and the VAE."""

from torch import nn

from unordinal.data.spec import DataSpec
from unordinal.flows.actnorm import ActNorm
from unordinal.flows.bijection import Bijection, Chain, Inverse
from unordinal.flows.coupling import Coupling, split_of
from unordinal.flows.density import ConditionalNormal, Density, Flow, StandardNormal
from unordinal.flows.elementwise import Affine, ElementwiseMap, LogisticMixture
from unordinal.flows.linear import InvertibleLinear
from unordinal.flows.reshape import Squeeze
from unordinal.model_config import MapDensityConfig, MapFlowConfig, MapVaeConfig
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.build_flow import conditional_flow
from unordinal.models.build_surjection import SURJECTIONS, InverseParts, build_surjection, check_known, has_context
from unordinal.models.latent_flow import LatentFlow
from unordinal.nets.densenet import DenseNet, MapContext
from unordinal.nets.linear import zero_linear


def build_map_flow(config: MapFlowConfig, spec: DataSpec) -> ArgmaxFlow:
    """p(v) is `map_density`, q(v | x) a surjection whose noise is `posterior`."""
    check_sizes(config, spec)
    check_known("surjection", config.surjection, tuple(SURJECTIONS))

    if config.surjection == "ordinal" or (config.surjection == "binary" and spec.num_classes == 2):
        raise ValueError(
            f"surjection {config.surjection} gives one real per pixel for {spec.num_classes} classes, and a coupling "
            "flow needs two; use softplus, gumbel or gumbel-threshold"
        )

    def noise(num_channels: int, *, mean: float = 0.0, log_scale: float = 0.0) -> Density:
        return posterior(config, num_channels, mean=mean, log_scale=log_scale)

    parts = InverseParts(config.context_width, noise)
    surjection = build_surjection(config.surjection, config.base, spec.num_classes, parts)
    density = map_density(config, spec.event_shape, surjection.num_channels)
    context = context_of(config, spec.num_classes) if has_context(config.surjection) else None
    model = ArgmaxFlow(surjection, density, event_shape=spec.event_shape, context=context)
    model.side_multiple = 2 ** (config.num_levels - 1)
    return model


def build_map_vae(config: MapVaeConfig, spec: DataSpec) -> LatentFlow:
    """Prior, posterior and decoder of appendix B.2, of the same parts as the argmax flow."""
    check_sizes(config, spec)
    channels = config.latent_channels
    if channels < 2:
        raise ValueError(f"latent_channels must be at least 2, for couplings to have two sides; got {channels}")
    model = LatentFlow(
        prior=map_density(config, spec.event_shape, channels),
        posterior=posterior(config, channels),
        context=context_of(config, spec.num_classes),
        decoder=DenseNet(channels, spec.num_classes, width=config.decoder_width, depth=config.decoder_depth),
        num_classes=spec.num_classes,
        num_channels=channels,
        event_shape=spec.event_shape,
    )
    model.side_multiple = 2 ** (config.num_levels - 1)
    return model


def check_sizes(config: MapDensityConfig, spec: DataSpec) -> None:
    if min(config.num_levels, config.num_flows, config.context_width) < 1 or config.noise_flows < 0:
        raise ValueError(
            f"expected num_levels, num_flows and context_width >= 1 and noise_flows >= 0; got {config.num_levels}, "
            f"{config.num_flows}, {config.context_width} and {config.noise_flows}"
        )
    try:
        spec.require_maps(2 ** (config.num_levels - 1))
    except ValueError as error:
        raise ValueError(f"{error} (model.num_levels is {config.num_levels})") from error


def map_density(config: MapDensityConfig, event_shape: tuple[int, ...], num_channels: int) -> Density:
    """Levels of 1x1s and couplings with a squeeze between them, down to a standard normal (appendix B.2).

    At the end the squeezes are undone, so that noise has the shape of v, whatever size is sampled.
    """
    map_: ElementwiseMap = LogisticMixture(config.num_mixtures) if config.num_mixtures else Affine()
    layers: list[Bijection] = [ActNorm(num_channels)]
    channels = num_channels
    for level in range(config.num_levels):
        if level:
            layers.append(Squeeze())
            channels *= 4
        fixed = split_of(channels)
        for _ in range(config.num_flows):
            out = map_.num_parameters * (channels - fixed)
            net = DenseNet(fixed, out, width=config.width, depth=config.depth, num_sharp=fixed)
            layers += [InvertibleLinear(channels), Coupling(net, map_, num_channels=channels)]
    layers += [Inverse(Squeeze()) for _ in range(config.num_levels - 1)]
    return Flow(Chain(layers), StandardNormal((*event_shape, num_channels)))


def posterior(config: MapDensityConfig, num_channels: int, *, mean: float = 0.0, log_scale: float = 0.0) -> Density:
    """q(u | context) of one level (appendix B.2)."""

    def make_net(num_in: int, num_out: int, num_fixed: int) -> nn.Module:
        return DenseNet(num_in, num_out, width=config.noise_width, depth=config.noise_depth, num_sharp=num_fixed)

    base = ConditionalNormal(zero_linear(config.context_width, 2 * num_channels), mean=mean, log_scale=log_scale)
    return conditional_flow(base, num_channels, config.noise_flows, config.context_width, make_net)


def context_of(config: MapDensityConfig, num_classes: int) -> MapContext:
    return MapContext(num_classes, width=config.context_width, depth=config.context_depth)
