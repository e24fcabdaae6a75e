"""The systems that the paper compares with, from their part of a run's configuration."""

from typing import Any

from torch import nn

from unordinal.data.spec import DataSpec
from unordinal.flows.actnorm import ActNorm
from unordinal.flows.autoregressive import ChannelAutoregressive, TimeFlow
from unordinal.flows.bijection import Bijection, Chain, Inverse
from unordinal.flows.coupling import Coupling, split_of
from unordinal.flows.density import ConditionalNormal, Density, Flow, StandardNormal
from unordinal.flows.elementwise import NonlinearSquared
from unordinal.flows.reshape import Reversal
from unordinal.model_config import ArmConfig, CategoricalNfConfig, DiscreteFlowConfig, LatentConfig
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.build_flow import mixture_density
from unordinal.models.build_nets import NETS, causal_net, sequence_net
from unordinal.models.build_surjection import check_known
from unordinal.models.categorical_nf import encoding
from unordinal.models.discrete_flow import AutoregressiveModulo, BipartiteModulo, DiscreteFlow, ModuloLayer
from unordinal.models.latent_flow import KlWarmup, LatentFlow
from unordinal.nets.channels import ChannelNet
from unordinal.nets.classes import ClassTransformer, SegmentTransformer
from unordinal.nets.context import Mlp
from unordinal.nets.recurrent import AroundLSTM, BiLSTM, CausalLSTM


def build_arm(config: ArmConfig, spec: DataSpec) -> AutoregressiveModel:
    """A Transformer over classes; with segments it is a Transformer-XL."""
    spec.require_sequences()
    settings: Any = {
        "width": config.width,
        "num_blocks": config.num_blocks,
        "num_heads": config.num_heads,
        "conv": config.conv,
        "dropout": config.dropout,
    }
    (length,) = spec.event_shape
    if config.num_segments == 0:
        net = ClassTransformer(spec.num_classes, **settings)
    elif config.auxiliary:
        raise ValueError("auxiliary losses are for the Transformer without segments; use one or the other")
    elif not 2 <= config.num_segments <= length:
        raise ValueError(
            f"num_segments must be 0 for none, or between 2 and the length of a sequence, {length}; "
            f"got {config.num_segments}"
        )
    else:
        segment = -(-length // config.num_segments)  # the last segment of a crop sees all others: no more is remembered
        net = SegmentTransformer(spec.num_classes, segment=segment, memory=length - segment, **settings)
    return AutoregressiveModel(net, event_shape=spec.event_shape, auxiliary=config.auxiliary)


def build_discrete_flow(config: DiscreteFlowConfig, spec: DataSpec) -> DiscreteFlow:
    spec.require_sequences()
    check_known("flow", config.flow, ("ar", "bipartite"))
    check_known("net", config.net, NETS)
    is_ar = config.flow == "ar"
    num_flows = (1 if is_ar else 2) if config.num_flows is None else config.num_flows
    if num_flows < 1:
        raise ValueError(f"num_flows must be at least 1, got {num_flows}")
    if num_flows < 2 and not is_ar:
        raise ValueError("one bipartite layer moves only every second place; set --model.num-flows to 2 or more")
    num_classes, layers = spec.num_classes, list[ModuloLayer]()
    for number in range(num_flows):
        if is_ar:
            layer: ModuloLayer = AutoregressiveModulo(
                causal_net(config, num_classes),
                config.width,
                num_classes,
                has_scale=config.scale,
                temperature=config.temperature,
                is_reversed=number % 2 == 1,
            )
        else:
            layer = BipartiteModulo(
                lambda num_in, num_out: sequence_net(config, num_in, num_out),
                num_classes,
                has_scale=config.scale,
                temperature=config.temperature,
                moves_odd=number % 2 == 0,
            )
        layers.append(layer)
    return DiscreteFlow(layers, num_classes=num_classes, event_shape=spec.event_shape)


def build_latent_flow(config: LatentConfig, spec: DataSpec) -> LatentFlow:
    spec.require_sequences()
    check_known("flow", config.flow, ("af-af", "iaf-scf"))
    if config.latent_channels < 2 or config.num_flows < 1:
        raise ValueError(
            f"a latent flow needs latent_channels >= 2 and num_flows >= 1, got {config.latent_channels} and "
            f"{config.num_flows}"
        )
    channels, num_classes = config.latent_channels, spec.num_classes
    lstm: Any = {"width": config.width, "num_layers": config.num_layers}
    return LatentFlow(
        prior=latent_prior(config, spec.event_shape[0]),
        context=nn.Sequential(nn.Embedding(num_classes, config.width), BiLSTM(config.width, 2 * channels, **lstm)),
        posterior=ConditionalNormal(nn.Identity()),
        decoder=AroundLSTM(channels, num_classes, **lstm),
        num_classes=num_classes,
        num_channels=channels,
        event_shape=spec.event_shape,
        warmup=KlWarmup(config.kl_flat, config.kl_rise),
    )


def latent_prior(config: LatentConfig, length: int) -> Density:
    """p(z): one LSTM over time that sets a stack of layers inside each position, autoregressive or couplings."""
    channels, map_ = config.latent_channels, NonlinearSquared()
    net = CausalLSTM(channels, width=config.width, num_layers=config.num_layers, dropout=config.dropout)
    fixed, layers = split_of(channels), list[Bijection]()
    for _ in range(config.num_flows):
        if config.flow == "af-af":
            head = ChannelNet(config.width, channels, map_.num_parameters, width=config.channel_width)
            layers.append(ChannelAutoregressive(head, map_, num_channels=channels))
        else:
            out, hidden = map_.num_parameters * (channels - fixed), config.channel_width * channels
            layers.append(Coupling(Mlp(fixed + config.width, out, width=hidden), map_, num_channels=channels))
        layers.append(Reversal(-1))
    if config.flow == "af-af":
        return Flow(TimeFlow(net, Chain(layers)), StandardNormal((length, channels)))
    return Flow(Inverse(TimeFlow(net, Chain(layers), is_parallel=True)), StandardNormal((length, channels)))


def build_categorical_nf(config: CategoricalNfConfig, spec: DataSpec) -> LatentFlow:
    spec.require_sequences()
    check_known("net", config.net, NETS)
    channels = (spec.num_classes - 1).bit_length() if config.latent_channels is None else config.latent_channels
    if channels < 1:
        raise ValueError(f"latent_channels must be at least 1, got {channels}")
    context, posterior, decoder = encoding(spec.num_classes, channels)
    return LatentFlow(
        prior=mixture_density(config, spec.event_shape[0], channels, [ActNorm(channels)]),
        context=context,
        posterior=posterior,
        decoder=decoder,
        num_classes=spec.num_classes,
        num_channels=channels,
        event_shape=spec.event_shape,
    )
