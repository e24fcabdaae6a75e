"""Models: everything that has an ELBO. BUILDERS makes one from its part of a run's configuration."""

from collections.abc import Callable

from unordinal.config import ModelConfig, MultinomialConfig
from unordinal.data.spec import DataSpec
from unordinal.diffusion.schedules import SCHEDULES
from unordinal.model import CategoricalModel
from unordinal.models.build_flow import build_argmax_flow
from unordinal.models.diffusion import MultinomialDiffusion
from unordinal.nets.transformer import TimeTransformer


def build_multinomial(config: MultinomialConfig, spec: DataSpec) -> CategoricalModel:
    if len(spec.event_shape) != 1:
        raise ValueError(
            f"this model's network takes sequences, (N, length) arrays; "
            f"the examples of {spec.name} have shape {spec.event_shape}"
        )
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
}


def build_model(config: ModelConfig, spec: DataSpec) -> CategoricalModel:
    """A fresh model of the configured kind for data of this shape."""
    return BUILDERS[config.kind](config, spec)
