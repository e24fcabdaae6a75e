"""Models: everything that has an ELBO. BUILDERS makes one from its part of a run's configuration."""

from collections.abc import Callable

from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel
from unordinal.model_config import ModelConfig
from unordinal.models.build_diffusion import build_map_multinomial, build_multinomial
from unordinal.models.build_flow import build_argmax_flow
from unordinal.models.build_maps import build_map_flow, build_map_vae
from unordinal.models.build_others import build_arm, build_categorical_nf, build_discrete_flow, build_latent_flow

BUILDERS: dict[str, Callable[..., CategoricalModel]] = {
    "multinomial": build_multinomial,
    "argmax-flow": build_argmax_flow,
    "arm": build_arm,
    "discrete-flow": build_discrete_flow,
    "latent-flow": build_latent_flow,
    "categorical-nf": build_categorical_nf,
    "map-multinomial": build_map_multinomial,
    "map-flow": build_map_flow,
    "map-vae": build_map_vae,
}


def build_model(config: ModelConfig, spec: DataSpec) -> CategoricalModel:
    """A fresh model of the configured kind for data of this shape."""
    return BUILDERS[config.kind](config, spec)
