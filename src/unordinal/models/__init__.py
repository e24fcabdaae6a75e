"""Models: everything that has an ELBO. BUILDERS makes one from its part of a run's configuration."""

from collections.abc import Callable

from unordinal.config import ModelConfig, MultinomialConfig
from unordinal.data.spec import DataSpec
from unordinal.diffusion.schedules import SCHEDULES
from unordinal.model import CategoricalModel
from unordinal.models.build_flow import build_argmax_flow
from unordinal.models.build_maps import build_map_flow, build_map_multinomial, build_map_vae
from unordinal.models.diffusion import MultinomialDiffusion
from unordinal.nets.transformer import TimeTransformer


def build_multinomial(config: MultinomialConfig, spec: DataSpec) -> CategoricalModel:
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
    return MultinomialDiffusion(
        net,
        num_classes=spec.num_classes,
        event_shape=spec.event_shape,
        num_steps=config.num_steps,
        log_alpha=SCHEDULES[config.schedule](config.num_steps),
        output=config.output,
        times=config.times,
    )


BUILDERS: dict[str, Callable[..., CategoricalModel]] = {
    "multinomial": build_multinomial,
    "argmax-flow": build_argmax_flow,
    "map-multinomial": build_map_multinomial,
    "map-flow": build_map_flow,
    "map-vae": build_map_vae,
}


def build_model(config: ModelConfig, spec: DataSpec) -> CategoricalModel:
    """A fresh model of the configured kind for data of this shape."""
    return BUILDERS[config.kind](config, spec)
