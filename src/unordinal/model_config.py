"""The settings of each kind of model, as frozen dataclasses: part of a run's. This file imports nothing of ours."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class DiffusionConfig:
    """What is diffusion's own, whatever the network."""

    num_steps: int = 1000
    """T, the length of the diffusion."""
    schedule: Literal["cosine"] = "cosine"
    """alpha-bar over time."""
    output: Literal["leave-one-out", "denoiser"] = "leave-one-out"
    """What the network's output means: x_0 given all other places (the paper's) or given this one as well."""
    times: Literal["uniform", "importance", "stratified", "stratified-importance"] = "importance"
    """How t is drawn in training; importance is the paper's q(t) from running estimates of L_t^2."""


@dataclass(frozen=True)
class MultinomialConfig(DiffusionConfig):
    """Multinomial diffusion over sequences with a time-conditioned Transformer."""

    kind: Literal["multinomial"] = "multinomial"
    width: int = 512
    """Channels of the Transformer."""
    num_blocks: int = 12
    """Layers of the Transformer."""
    global_heads: int = 8
    """Attention heads that see the whole sequence."""
    local_heads: int = 8
    """Attention heads that see a window."""
    window: int = 128
    """How far a local head sees to either side."""
    conv: int = 0
    """Width of a depthwise convolution beside attention; 0 for none."""


SurjectionName = Literal[
    "binary", "softplus", "gumbel", "gumbel-threshold", "round-uniform", "round-variational", "ordinal"
]


@dataclass(frozen=True)
class NetConfig:
    """A network over the real channels of a sequence (models/build_nets.py)."""

    net: Annotated[Literal["lstm", "transformer"], tyro.conf.arg(aliases=("--net",))] = "lstm"
    """What reads the sequence; the paper's is an LSTM."""
    width: int = 2048
    """Channels of the network (of each direction, where it has two)."""
    num_layers: int = 2
    """Layers of the network."""
    num_heads: int = 8
    """Attention heads, where the network is a Transformer."""
    conv: int = 0
    """Width of a depthwise convolution beside attention; 0 for none."""
    dropout: float = 0.0
    """Dropout on the network's input."""


@dataclass(frozen=True)
class MixtureConfig(NetConfig):
    """A flow of logistic mixtures over such a network."""

    num_mixtures: int = 27
    """Logistic components of each elementwise map."""
    channel_width: int = 64
    """Hidden units per channel of the network inside a position (autoregressive flows)."""


@dataclass(frozen=True)
class ArgmaxFlowConfig(MixtureConfig):
    """A flow over sequences under a surjection: argmax flows and dequantisation."""

    kind: Literal["argmax-flow"] = "argmax-flow"
    flow: Literal["ar", "coupling"] = "ar"
    """Autoregressive over time and channels, or coupling layers between 1x1 convolutions."""
    surjection: Annotated[SurjectionName, tyro.conf.arg(aliases=("--surjection",))] = "binary"
    """How classes become numbers and back: one real per bit, K-way argmax with one of three inverses, or rounding."""
    base: Annotated[int | None, tyro.conf.arg(aliases=("--base",))] = None
    """Write classes in base M first, M reals per digit (binary becomes softplus); default none."""
    num_flows: int = 8
    """Coupling layers."""
    context_width: int = 128
    """Features of x that the probabilistic inverse sees."""
    context_blocks: int = 1
    """Convolutions over neighbours in those features; 0 lets q(v | x) see one class only."""
    noise_flows: int = 0
    """Conditional coupling layers in the probabilistic inverse's noise; 0 is a diagonal normal, as in the paper."""


@dataclass(frozen=True)
class ArmConfig:
    """An autoregressive Transformer over classes."""

    kind: Literal["arm"] = "arm"
    width: int = 512
    """Channels of the Transformer."""
    num_blocks: int = 64
    """Layers of the Transformer."""
    num_heads: int = 8
    """Attention heads."""
    conv: int = 0
    """Width of a causal depthwise convolution beside attention; 0 for none."""
    dropout: float = 0.0
    """Dropout on the embedding and on what every layer adds."""
    auxiliary: bool = False
    """Train with the auxiliary losses of Al-Rfou et al. (2019): of every layer, and of the class after the next."""
    num_segments: int = 0
    """Cut a sequence into so many segments, each of which sees those before it as a memory (Transformer-XL); 0 sees
    the whole sequence at once."""


@dataclass(frozen=True)
class DiscreteFlowConfig(NetConfig):
    """A flow on the classes themselves, modulo K."""

    kind: Literal["discrete-flow"] = "discrete-flow"
    flow: Annotated[Literal["ar", "bipartite"], tyro.conf.arg(aliases=("--flow",))] = "ar"
    """ar moves every place by what stands before it; bipartite moves every second place by the others."""
    scale: Annotated[bool, tyro.conf.arg(aliases=("--scale",))] = False
    """Besides shifting classes modulo K, divide them by a predicted number that has an inverse modulo K."""
    net: Annotated[Literal["lstm", "transformer"], tyro.conf.arg(aliases=("--net",))] = "transformer"
    """What reads the other places."""
    width: int = 512
    """Channels of the network."""
    num_layers: int = 4
    """Layers of the network."""
    num_flows: int | None = None
    """Flow layers on top of each other, autoregressive ones forwards and backwards in turn; default 1 (ar), 2
    (bipartite)."""
    temperature: float = 0.1
    """Temperature of straight-through gradients: an argmax gets the gradient of a softmax this sharp."""


@dataclass(frozen=True)
class LatentConfig:
    """Latent flows for sequences (Ziegler and Rush 2019): flow prior, diagonal normal posterior, biLSTM emission."""

    kind: Literal["latent-flow"] = "latent-flow"
    flow: Literal["af-af", "iaf-scf"] = "af-af"
    """Autoregressive in time and channels, or inverse autoregressive in time with split coupling in channels."""
    latent_channels: int = 50
    """Latent numbers per position."""
    num_flows: int = 5
    """Layers of the prior inside a position, one after another."""
    width: int = 500
    """Channels of the LSTMs: of the prior, and of each direction of posterior and emission."""
    num_layers: int = 2
    """Layers of the LSTMs."""
    dropout: float = 0.2
    """Dropout on the input of the prior's LSTM."""
    channel_width: int = 16
    """Hidden units of the network inside a position, per channel (af-af) or per pair of channels (iaf-scf)."""
    kl_flat: float = 2 / 30
    """Part of the budget during which the KL weighs 1e-5; appendix B.4 has 2 of 30 epochs."""
    kl_rise: float = 4 / 30
    """Part of the budget over which that weight then rises linearly to 1."""


@dataclass(frozen=True)
class CategoricalNfConfig(MixtureConfig):
    """Categorical normalizing flows (Lippe and Gavves 2020), on the density model of the autoregressive argmax flow."""

    kind: Literal["categorical-nf"] = "categorical-nf"
    latent_channels: int | None = None
    """Latent numbers per position; default as many as classes have bits, what argmax-ar has."""


@dataclass(frozen=True)
class MapMultinomialConfig(DiffusionConfig):
    """Multinomial diffusion over maps with a time-conditioned U-Net."""

    kind: Literal["map-multinomial"] = "map-multinomial"
    num_steps: int = 4000
    """T, the length of the diffusion."""
    width: int = 64
    """Channels at full resolution; every level below has twice as many."""
    num_levels: int = 4
    """Resolutions, each half of the one above."""
    num_blocks: int = 1
    """Residual blocks of a level on the way down, and on the way up."""
    deep_blocks: int = 4
    """Residual blocks of the lowest level, with attention between them."""
    num_heads: int = 4
    """Attention heads of the lowest level."""


@dataclass(frozen=True)
class MapDensityConfig:
    """A flow over maps and a conditional one: what argmax flows on maps and the VAE share."""

    num_levels: int = 4
    """Levels of p, a squeeze between them: half the rows and columns, four times the channels."""
    num_flows: int = 10
    """Pairs of an invertible 1x1 and a coupling in each level of p."""
    num_mixtures: int = 0
    """Logistic components of a coupling in p; 0 makes it affine, as in the paper."""
    width: int = 512
    """Channels that a DenseNet of p adds."""
    depth: int = 8
    """Convolutions of a DenseNet of p."""
    noise_flows: int = 8
    """Pairs of an invertible 1x1 and an affine coupling in q, one level; 0 is a diagonal normal."""
    noise_width: int = 256
    """Channels that a DenseNet of q adds."""
    noise_depth: int = 4
    """Convolutions of a DenseNet of q."""
    context_width: int = 64
    """Features of x that q sees."""
    context_depth: int = 4
    """Convolutions of the DenseNet that reads them off x."""


@dataclass(frozen=True)
class MapFlowConfig(MapDensityConfig):
    """A flow over maps under a surjection: argmax flows and dequantisation."""

    kind: Literal["map-flow"] = "map-flow"
    surjection: Annotated[SurjectionName, tyro.conf.arg(aliases=("--surjection",))] = "softplus"
    """How classes become numbers and back: K-way argmax with one of three inverses, one real per bit, or rounding."""
    base: Annotated[int | None, tyro.conf.arg(aliases=("--base",))] = None
    """Write classes in base M first, M reals per digit (binary becomes softplus); default none."""


@dataclass(frozen=True)
class MapVaeConfig(MapDensityConfig):
    """A VAE over maps: flow prior, flow posterior, categorical decoder."""

    kind: Literal["map-vae"] = "map-vae"
    latent_channels: int = 8
    """Latent numbers per pixel."""
    decoder_width: int = 256
    """Channels that the decoder's DenseNet adds."""
    decoder_depth: int = 4
    """Convolutions of the decoder."""


ModelConfig = (
    MultinomialConfig
    | ArgmaxFlowConfig
    | ArmConfig
    | DiscreteFlowConfig
    | LatentConfig
    | CategoricalNfConfig
    | MapMultinomialConfig
    | MapFlowConfig
    | MapVaeConfig
)


def takes_maps(model: ModelConfig) -> bool:
    """Whether a model is one of maps, (height, width), and not of sequences."""
    return isinstance(model, MapMultinomialConfig | MapDensityConfig)


MODEL_CONFIGS: dict[str, type[ModelConfig]] = {
    "multinomial": MultinomialConfig,
    "argmax-flow": ArgmaxFlowConfig,
    "arm": ArmConfig,
    "discrete-flow": DiscreteFlowConfig,
    "latent-flow": LatentConfig,
    "categorical-nf": CategoricalNfConfig,
    "map-multinomial": MapMultinomialConfig,
    "map-flow": MapFlowConfig,
    "map-vae": MapVaeConfig,
}
