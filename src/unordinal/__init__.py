"""Generative models of categorical data: argmax flows, multinomial diffusion and their baselines.

`fit` trains a model, `load` reads a trained one, and a run scores and samples:

    run = unordinal.fit("arm", "book.txt", minutes=5, out="runs/book")
    print(run.score())
    print(run.sample(3))
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from unordinal.api import Run, compare, fit, load, score
    from unordinal.config import DataConfig, ModelSettings, OptimConfig, RunConfig, TrainConfig
    from unordinal.data import Data, DataSpec, Vocabulary, load_data
    from unordinal.diffusion.absorbing import AbsorbingNoise, MaskCountNoise
    from unordinal.diffusion.continuous import ContinuousUniformNoise
    from unordinal.diffusion.process import NoiseProcess
    from unordinal.diffusion.samplers import (
        SAMPLERS,
        Ancestral,
        Corrected,
        FirstHitting,
        HighestConfidence,
        LowestEntropy,
        Sampler,
        Spread,
    )
    from unordinal.diffusion.schedules import cosine_schedule
    from unordinal.diffusion.uniform import UniformNoise
    from unordinal.evaluate.compare import Comparison
    from unordinal.evaluate.likelihood import Score
    from unordinal.flows.actnorm import ActNorm
    from unordinal.flows.autoregressive import ChannelAutoregressive, TimeFlow
    from unordinal.flows.bijection import Bijection, Chain, Inverse
    from unordinal.flows.coupling import Coupling
    from unordinal.flows.density import (
        ConditionalLogistic,
        ConditionalNormal,
        Density,
        DiagonalNormal,
        Flow,
        StandardLogistic,
        StandardNormal,
    )
    from unordinal.flows.elementwise import Affine, Elementwise, ElementwiseTransform, LogisticMixture, NonlinearSquared
    from unordinal.flows.linear import InvertibleLinear
    from unordinal.flows.ready import autoregressive_flow, coupling_flow
    from unordinal.flows.reshape import Permutation, Reversal, Squeeze
    from unordinal.flows.spline import RationalQuadraticSpline
    from unordinal.model import Abilities, CategoricalModel, ExactModel, TrainingHooks
    from unordinal.models.argmax_flow import ArgmaxFlow
    from unordinal.models.autoregressive import AutoregressiveModel
    from unordinal.models.diffusion import Diffusion
    from unordinal.models.discrete_flow import DiscreteFlow
    from unordinal.models.latent_flow import LatentFlow
    from unordinal.nets.classes import ClassTransformer
    from unordinal.nets.densenet import DenseNet
    from unordinal.nets.ngrams import NgramEmbedding
    from unordinal.nets.recurrent import BiLSTM, CausalLSTM
    from unordinal.nets.sequence import CausalTransformer, DenoisingTransformer, SequenceTransformer
    from unordinal.nets.transformer import TimeTransformer
    from unordinal.nets.unet import UNet
    from unordinal.recipes import RECIPES, Plan, Recipe, configured
    from unordinal.surjections.argmax import GumbelArgmax, SoftplusArgmax
    from unordinal.surjections.cartesian import BinaryProduct, CartesianProduct
    from unordinal.surjections.rounding import OneHotRounding, OrdinalRounding
    from unordinal.surjections.surjection import Surjection

# The public names of each module, imported when first asked for, so that `unordinal --help` does not wait for torch.
_PUBLIC = {
    "unordinal.api": ("Run", "compare", "fit", "load", "score"),
    "unordinal.config": ("DataConfig", "ModelSettings", "OptimConfig", "RunConfig", "TrainConfig"),
    "unordinal.data": ("Data", "DataSpec", "Vocabulary", "load_data"),
    "unordinal.diffusion.absorbing": ("AbsorbingNoise", "MaskCountNoise"),
    "unordinal.diffusion.continuous": ("ContinuousUniformNoise",),
    "unordinal.diffusion.process": ("NoiseProcess",),
    "unordinal.diffusion.samplers": (
        "SAMPLERS",
        "Ancestral",
        "Corrected",
        "FirstHitting",
        "HighestConfidence",
        "LowestEntropy",
        "Sampler",
        "Spread",
    ),
    "unordinal.diffusion.schedules": ("cosine_schedule",),
    "unordinal.diffusion.uniform": ("UniformNoise",),
    "unordinal.evaluate.compare": ("Comparison",),
    "unordinal.evaluate.likelihood": ("Score",),
    "unordinal.flows.actnorm": ("ActNorm",),
    "unordinal.flows.autoregressive": ("ChannelAutoregressive", "TimeFlow"),
    "unordinal.flows.bijection": ("Bijection", "Chain", "Inverse"),
    "unordinal.flows.coupling": ("Coupling",),
    "unordinal.flows.density": (
        "ConditionalLogistic",
        "ConditionalNormal",
        "Density",
        "DiagonalNormal",
        "Flow",
        "StandardLogistic",
        "StandardNormal",
    ),
    "unordinal.flows.elementwise": (
        "Affine",
        "Elementwise",
        "ElementwiseTransform",
        "LogisticMixture",
        "NonlinearSquared",
    ),
    "unordinal.flows.linear": ("InvertibleLinear",),
    "unordinal.flows.ready": ("autoregressive_flow", "coupling_flow"),
    "unordinal.flows.reshape": ("Permutation", "Reversal", "Squeeze"),
    "unordinal.flows.spline": ("RationalQuadraticSpline",),
    "unordinal.model": ("Abilities", "CategoricalModel", "ExactModel", "TrainingHooks"),
    "unordinal.models.argmax_flow": ("ArgmaxFlow",),
    "unordinal.models.autoregressive": ("AutoregressiveModel",),
    "unordinal.models.diffusion": ("Diffusion",),
    "unordinal.models.discrete_flow": ("DiscreteFlow",),
    "unordinal.models.latent_flow": ("LatentFlow",),
    "unordinal.nets.classes": ("ClassTransformer",),
    "unordinal.nets.densenet": ("DenseNet",),
    "unordinal.nets.ngrams": ("NgramEmbedding",),
    "unordinal.nets.recurrent": ("BiLSTM", "CausalLSTM"),
    "unordinal.nets.sequence": ("CausalTransformer", "DenoisingTransformer", "SequenceTransformer"),
    "unordinal.nets.transformer": ("TimeTransformer",),
    "unordinal.nets.unet": ("UNet",),
    "unordinal.recipes": ("RECIPES", "Plan", "Recipe", "configured"),
    "unordinal.surjections.argmax": ("GumbelArgmax", "SoftplusArgmax"),
    "unordinal.surjections.cartesian": ("BinaryProduct", "CartesianProduct"),
    "unordinal.surjections.rounding": ("OneHotRounding", "OrdinalRounding"),
    "unordinal.surjections.surjection": ("Surjection",),
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [
    "RECIPES",
    "SAMPLERS",
    "Abilities",
    "AbsorbingNoise",
    "ActNorm",
    "Affine",
    "Ancestral",
    "ArgmaxFlow",
    "AutoregressiveModel",
    "BiLSTM",
    "Bijection",
    "BinaryProduct",
    "CartesianProduct",
    "CategoricalModel",
    "CausalLSTM",
    "CausalTransformer",
    "Chain",
    "ChannelAutoregressive",
    "ClassTransformer",
    "Comparison",
    "ConditionalLogistic",
    "ConditionalNormal",
    "ContinuousUniformNoise",
    "Corrected",
    "Coupling",
    "Data",
    "DataConfig",
    "DataSpec",
    "DenoisingTransformer",
    "DenseNet",
    "Density",
    "DiagonalNormal",
    "Diffusion",
    "DiscreteFlow",
    "Elementwise",
    "ElementwiseTransform",
    "ExactModel",
    "FirstHitting",
    "Flow",
    "GumbelArgmax",
    "HighestConfidence",
    "Inverse",
    "InvertibleLinear",
    "LatentFlow",
    "LogisticMixture",
    "LowestEntropy",
    "MaskCountNoise",
    "ModelSettings",
    "NgramEmbedding",
    "NoiseProcess",
    "NonlinearSquared",
    "OneHotRounding",
    "OptimConfig",
    "OrdinalRounding",
    "Permutation",
    "Plan",
    "RationalQuadraticSpline",
    "Recipe",
    "Reversal",
    "Run",
    "RunConfig",
    "Sampler",
    "Score",
    "SequenceTransformer",
    "SoftplusArgmax",
    "Spread",
    "Squeeze",
    "StandardLogistic",
    "StandardNormal",
    "Surjection",
    "TimeFlow",
    "TimeTransformer",
    "TrainConfig",
    "TrainingHooks",
    "UNet",
    "UniformNoise",
    "Vocabulary",
    "autoregressive_flow",
    "compare",
    "configured",
    "cosine_schedule",
    "coupling_flow",
    "fit",
    "load",
    "load_data",
    "score",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value
    raise AttributeError(f"module 'unordinal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
