"""Generative models of categorical data: argmax flows, multinomial diffusion and their baselines.

`fit` trains, `score` gives bits per dimension, `load` brings a run back: `run = unordinal.fit("text8/multinomial",
"docs", minutes=2, out="runs/mine")`, then `unordinal.score(run)` and `run.vocabulary.decode(run.model.sample(1)[0])`.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from unordinal.api import Run, fit, load, score
    from unordinal.data import Data, DataSpec, Vocabulary, load_data
    from unordinal.diffusion.process import NoiseProcess
    from unordinal.diffusion.schedules import cosine_schedule
    from unordinal.diffusion.uniform import UniformNoise
    from unordinal.evaluate.likelihood import Score
    from unordinal.flows.bijection import Bijection
    from unordinal.flows.density import ConditionalNormal, Density, Flow, StandardLogistic, StandardNormal
    from unordinal.flows.ready import autoregressive_flow, coupling_flow
    from unordinal.model import CategoricalModel
    from unordinal.models.argmax_flow import ArgmaxFlow
    from unordinal.models.autoregressive import AutoregressiveModel
    from unordinal.models.diffusion import Diffusion
    from unordinal.models.discrete_flow import DiscreteFlow
    from unordinal.models.latent_flow import LatentFlow
    from unordinal.nets.transformer import TimeTransformer
    from unordinal.nets.unet import UNet
    from unordinal.recipes import RECIPES, Plan, Recipe, configured
    from unordinal.surjections.argmax import GumbelArgmax, SoftplusArgmax
    from unordinal.surjections.cartesian import BinaryProduct, CartesianProduct
    from unordinal.surjections.rounding import OneHotRounding
    from unordinal.surjections.surjection import Surjection

# Where each public name lives; imported when first asked for, so that `unordinal --help` does not wait for torch.
_PUBLIC = {
    "fit": "unordinal.api",
    "score": "unordinal.api",
    "Data": "unordinal.data",
    "DataSpec": "unordinal.data",
    "Vocabulary": "unordinal.data",
    "load_data": "unordinal.data",
    "NoiseProcess": "unordinal.diffusion.process",
    "cosine_schedule": "unordinal.diffusion.schedules",
    "UniformNoise": "unordinal.diffusion.uniform",
    "Score": "unordinal.evaluate.likelihood",
    "Bijection": "unordinal.flows.bijection",
    "ConditionalNormal": "unordinal.flows.density",
    "Density": "unordinal.flows.density",
    "Flow": "unordinal.flows.density",
    "StandardLogistic": "unordinal.flows.density",
    "StandardNormal": "unordinal.flows.density",
    "autoregressive_flow": "unordinal.flows.ready",
    "coupling_flow": "unordinal.flows.ready",
    "CategoricalModel": "unordinal.model",
    "ArgmaxFlow": "unordinal.models.argmax_flow",
    "AutoregressiveModel": "unordinal.models.autoregressive",
    "Diffusion": "unordinal.models.diffusion",
    "DiscreteFlow": "unordinal.models.discrete_flow",
    "LatentFlow": "unordinal.models.latent_flow",
    "TimeTransformer": "unordinal.nets.transformer",
    "UNet": "unordinal.nets.unet",
    "RECIPES": "unordinal.recipes",
    "Plan": "unordinal.recipes",
    "Recipe": "unordinal.recipes",
    "configured": "unordinal.recipes",
    "GumbelArgmax": "unordinal.surjections.argmax",
    "SoftplusArgmax": "unordinal.surjections.argmax",
    "BinaryProduct": "unordinal.surjections.cartesian",
    "CartesianProduct": "unordinal.surjections.cartesian",
    "OneHotRounding": "unordinal.surjections.rounding",
    "Surjection": "unordinal.surjections.surjection",
    "Run": "unordinal.api",
    "load": "unordinal.api",
}

__all__ = [
    "RECIPES",
    "ArgmaxFlow",
    "AutoregressiveModel",
    "Bijection",
    "BinaryProduct",
    "CartesianProduct",
    "CategoricalModel",
    "ConditionalNormal",
    "Data",
    "DataSpec",
    "Density",
    "Diffusion",
    "DiscreteFlow",
    "Flow",
    "GumbelArgmax",
    "LatentFlow",
    "NoiseProcess",
    "OneHotRounding",
    "Plan",
    "Recipe",
    "Run",
    "Score",
    "SoftplusArgmax",
    "StandardLogistic",
    "StandardNormal",
    "Surjection",
    "TimeTransformer",
    "UNet",
    "UniformNoise",
    "Vocabulary",
    "autoregressive_flow",
    "configured",
    "cosine_schedule",
    "coupling_flow",
    "fit",
    "load",
    "load_data",
    "score",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_PUBLIC[name]), name)
        return value
    raise AttributeError(f"module 'unordinal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
