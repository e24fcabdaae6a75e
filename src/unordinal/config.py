"""The settings of a run, as frozen dataclasses. This file imports nothing of ours."""

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import tyro

Size = Literal["tiny", "small", "paper"]
Alphabet = Literal["text8", "chars", "bytes"]


@dataclass(frozen=True)
class DataConfig:
    """Which data, and how they are cut."""

    name: str
    """docs, text8, enwik8, eight-gaussians, streets, cityscapes, text:PATH, array:PATH or maps:PATH."""
    alphabet: Alphabet | None = None
    """How text becomes classes: text8 is a-z and space, chars is whatever the file holds, bytes is all 256."""
    split: str | None = None
    """TRAIN,VAL,TEST as fractions that sum to 1 or as counts; default the data set's own, or 0.9,0.05,0.05."""
    length: int | None = None
    """Symbols per sequence, where the data are one long text."""
    num_classes: int | None = None
    """Number of classes of an array or of maps; default the largest class + 1."""
    map_height: int | None = None
    """Rows of a map, where maps are drawn or scaled: streets and cityscapes; default 32."""
    map_width: int | None = None
    """Columns of a map, likewise; default 64."""
    flips: bool = True
    """Mirror maps left to right at random, in training only."""


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
class ArgmaxFlowConfig:
    """A flow over sequences under a surjection: argmax flows and dequantisation."""

    kind: Literal["argmax-flow"] = "argmax-flow"
    flow: Literal["ar", "coupling"] = "ar"
    """Autoregressive over time and channels, or coupling layers between 1x1 convolutions."""
    surjection: Annotated[SurjectionName, tyro.conf.arg(aliases=("--surjection",))] = "binary"
    """How classes become numbers and back: one real per bit, K-way argmax with one of three inverses, or rounding."""
    base: Annotated[int | None, tyro.conf.arg(aliases=("--base",))] = None
    """Write classes in base M first, M reals per digit (binary becomes softplus); default none."""
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
    num_flows: int = 8
    """Coupling layers."""
    num_mixtures: int = 27
    """Logistic components of each elementwise map."""
    channel_width: int = 64
    """Hidden units per channel of the network inside a position (autoregressive flows)."""
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
    """Dropout on every layer's output."""
    auxiliary: bool = False
    """Train with the auxiliary losses of Al-Rfou et al. (2019): of every layer, and of the class after the next."""
    segment: int = 0
    """Length of a segment (Transformer-XL); 0 sees the whole sequence at once."""
    memory: int = 0
    """Positions of earlier segments that a segment sees."""


@dataclass(frozen=True)
class DiscreteFlowConfig:
    """A flow on the classes themselves, modulo K."""

    kind: Literal["discrete-flow"] = "discrete-flow"
    flow: Annotated[Literal["ar", "bipartite"], tyro.conf.arg(aliases=("--flow",))] = "ar"
    """Every place moved by those before it, or every second one by the others."""
    scale: Annotated[bool, tyro.conf.arg(aliases=("--scale",))] = False
    """Divide by a unit modulo K as well."""
    net: Annotated[Literal["lstm", "transformer"], tyro.conf.arg(aliases=("--net",))] = "transformer"
    """What reads the other places."""
    num_flows: int = 1
    """Layers; autoregressive ones read forwards and backwards in turn."""
    width: int = 512
    """Channels of the network."""
    num_layers: int = 4
    """Layers of the network."""
    num_heads: int = 8
    """Attention heads, where the network is a Transformer."""
    conv: int = 0
    """Width of a depthwise convolution beside attention; 0 for none."""
    dropout: float = 0.0
    """Dropout on the network's input."""
    temperature: float = 0.1
    """Of the softmax whose gradient stands for the argmax's."""


@dataclass(frozen=True)
class LatentConfig:
    """Latent flows for sequences (Ziegler and Rush 2019): flow prior, diagonal normal posterior, biLSTM emission."""

    kind: Literal["latent-flow"] = "latent-flow"
    flow: Literal["af-af", "iaf-scf"] = "af-af"
    """Autoregressive in time and channels, or inverse autoregressive in time with split coupling in channels."""
    latent_channels: int = 50
    """Latent numbers per position."""
    num_flows: int = 5
    """Layers of the prior."""
    width: int = 500
    """Channels of the LSTMs."""
    num_layers: int = 2
    """Layers of the LSTMs."""
    dropout: float = 0.2
    """Dropout on the LSTMs' input."""
    channel_width: int = 100
    """Hidden units of the network inside a position."""
    kl_flat: float = 2.0
    """Passes over the data with a KL weight of 1e-5 (appendix B.4)."""
    kl_rise: float = 4.0
    """Passes over which it then rises linearly to 1."""
    kl_by_budget: bool = False
    """Whether those two are parts of the budget instead."""


@dataclass(frozen=True)
class CategoricalNfConfig:
    """Categorical normalizing flows (Lippe and Gavves 2020), on the density model of the autoregressive argmax flow."""

    kind: Literal["categorical-nf"] = "categorical-nf"
    latent_channels: int = 5
    """Latent numbers per position."""
    net: Annotated[Literal["lstm", "transformer"], tyro.conf.arg(aliases=("--net",))] = "lstm"
    """What reads the sequence."""
    width: int = 2048
    """Channels of the network."""
    num_layers: int = 2
    """Layers of the network."""
    num_heads: int = 8
    """Attention heads, where the network is a Transformer."""
    conv: int = 0
    """Width of a depthwise convolution beside attention; 0 for none."""
    dropout: float = 0.0
    """Dropout on the network's input."""
    num_mixtures: int = 27
    """Logistic components of each elementwise map."""
    channel_width: int = 64
    """Hidden units per channel of the network inside a position."""


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


@dataclass(frozen=True)
class TrainConfig:
    """Budget, batches, and what is written when."""

    steps: int | None = None
    """Budget in optimiser steps."""
    minutes: float | None = None
    """Budget in minutes of training and validation, set-up not counted."""
    epochs: float | None = None
    """Budget in passes over the training data; used where neither steps nor minutes are given."""
    batch_size: int = 32
    """Sequences per optimiser step."""
    accumulate: int | None = None
    """Parts a batch is cut into, the step being the whole one; default 1 on a GPU, on a CPU enough for the cache."""
    lr: float = 1e-4
    """Highest learning rate."""
    validate_every: int | None = None
    """Steps between validations; default a tenth of the budget, at most 1000."""
    validate_examples: int = 128
    """Examples of the validation split that are scored, always the same."""
    checkpoint_every: int = 1000
    """Steps between checkpoints; one is also written every five minutes and at every validation."""
    seed: int = 0
    """Seed of weights, batches and noise."""
    compile: bool = False
    """Compile the network with torch.compile."""


@dataclass(frozen=True)
class OptimConfig:
    """The optimiser and how its learning rate moves."""

    optimizer: Literal["adam", "adamw", "adamax", "muon"] = "adam"
    """muon orthogonalises the steps of the network's inner matrices and leaves the rest to AdamW."""
    matrix_lr: float = 0.02
    """Highest learning rate of muon's matrices."""
    beta2: float = 0.999
    """Decay of the second moment."""
    weight_decay: float = 0.0
    """Decoupled weight decay (adamw, and muon's other weights)."""
    warmup: int = 0
    """Steps over which the learning rate rises linearly; multiplies the decays below."""
    decay_per_epoch: float = 1.0
    """Factor on the learning rate per pass over the training data."""
    decay_to_zero: bool = False
    """Let the learning rate fall linearly to zero over the budget."""
    clip: float | None = None
    """Largest norm of the gradient."""
    ema: float = 0.999
    """Decay of the moving average of the weights, which is what is scored; 0 for none, as in the paper."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that makes a run what it is; saved as its config.json."""

    preset: str
    size: Size
    data: DataConfig
    model: ModelConfig
    train: TrainConfig = field(default_factory=TrainConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "RunConfig":
        """The config that `to_dict` described; a ValueError names what does not fit."""
        try:
            model_type = MODEL_CONFIGS[values["model"]["kind"]]
            return RunConfig(
                preset=values["preset"],
                size=values["size"],
                data=DataConfig(**values["data"]),
                model=model_type(**values["model"]),
                train=TrainConfig(**values["train"]),
                optim=OptimConfig(**values["optim"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a run's configuration: {error}") from error


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


def differences(old: RunConfig, new: RunConfig, *, ignore: tuple[str, ...] = ()) -> list[str]:
    """The settings in which two runs differ, as `part.name: old -> new`."""
    found = []
    for part, before, after in flatten(old.to_dict(), new.to_dict()):
        if before != after and part not in ignore:
            found.append(f"{part}: {before} -> {after}")
    return found


def flatten(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[tuple[str, Any, Any]]:
    """Pairs of values of two nested dicts by dotted name, None where one lacks the name."""
    pairs: list[tuple[str, Any, Any]] = []
    for key in [*old, *(k for k in new if k not in old)]:
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            pairs += flatten(before, after, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", before, after))
    return pairs
