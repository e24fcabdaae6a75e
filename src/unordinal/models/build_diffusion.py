"""Multinomial diffusion from its part of a run's configuration, over sequences and over maps."""

from torch import nn

from unordinal.data.spec import DataSpec
from unordinal.diffusion.schedules import SCHEDULES
from unordinal.model_config import DiffusionConfig, MapMultinomialConfig, MultinomialConfig
from unordinal.models.diffusion import MultinomialDiffusion
from unordinal.nets.transformer import TimeTransformer
from unordinal.nets.unet import UNet


def build_multinomial(config: MultinomialConfig, spec: DataSpec) -> MultinomialDiffusion:
    spec.require_sequences()
    net = TimeTransformer(
        spec.num_classes,
        width=config.width,
        num_blocks=config.num_blocks,
        global_heads=config.global_heads,
        local_heads=config.local_heads,
        window=config.window,
        conv=config.conv,
    )
    return diffusion_of(net, config, spec)


def build_map_multinomial(config: MapMultinomialConfig, spec: DataSpec) -> MultinomialDiffusion:
    spec.require_maps(2)
    net = UNet(
        spec.num_classes,
        width=config.width,
        num_levels=config.num_levels,
        num_blocks=config.num_blocks,
        deep_blocks=config.deep_blocks,
        num_heads=config.num_heads,
    )
    return diffusion_of(net, config, spec)


def diffusion_of(net: nn.Module, config: DiffusionConfig, spec: DataSpec) -> MultinomialDiffusion:
    return MultinomialDiffusion(
        net,
        num_classes=spec.num_classes,
        event_shape=spec.event_shape,
        num_steps=config.num_steps,
        log_alpha=SCHEDULES[config.schedule](config.num_steps),
        output=config.output,
        times=config.times,
    )
