"""The settings of a run, as frozen dataclasses; those of its model are in model_config.py."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from unordinal.model_config import MODEL_CONFIGS, ModelConfig

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
