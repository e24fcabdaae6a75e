"""What a run is: data, model, training and optimiser, as frozen dataclasses. The settings of models are recipes'."""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from unordinal.names import check_known

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.model import CategoricalModel

Size = Literal["tiny", "small", "paper"]
Shape = Literal["sequences", "maps"]
Alphabet = Literal["text8", "chars", "bytes"]


@dataclass(frozen=True)
class DataConfig:
    """Which data, and how they are split.

    >>> DataConfig("book.txt", length=128).split is None
    True
    """

    name: str
    """A path, or a data set by name: docs, text8, enwik8, eight-gaussians, streets, cityscapes; text:PATH, array:PATH,
    maps:PATH and fasta:PATH say what a path is to be read as."""
    alphabet: Alphabet | None = None
    """How text becomes classes: text8 is a-z and space, chars is whatever the file holds, bytes is all 256; default
    the first of these that fits."""
    split: str | None = None
    """TRAIN,VAL,TEST as fractions that sum to 1 or as counts; default the data set's own, or 0.9,0.05,0.05."""
    length: int | None = None
    """Symbols per sequence, where the data are one long text."""
    num_classes: int | None = None
    """Number of classes of an array or of maps; default the largest class + 1."""
    letters: str | None = None
    """What the classes of an array, or the letters of a FASTA file, are called, in order: ACGT, say."""
    map_height: int | None = None
    """Rows of a map, where maps are drawn or scaled: streets and cityscapes; default 32."""
    map_width: int | None = None
    """Columns of a map, likewise; default 64."""
    levels: str | None = None
    """The grey levels of PNGs that are classes, in order, separated by commas; default those that the maps have, where
    they are few, else every number is a class."""
    colours: str | None = None
    """The classes of PNGs in colour, one a line: a name, then #rrggbb or three numbers."""
    flips: bool = False
    """Mirror maps left to right at random, in training only; on for the paper's experiments on maps."""


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
    lengths: tuple[int, ...] = ()
    """Cut the sequences of a batch into pieces of one of these lengths, drawn for each step: 32 64 128 256, say. A
    model that is to be used on short texts should see some."""
    mutate: float = 0.0
    """Replace this share of the symbols that are trained on by random ones: for a background model, beside which
    `unordinal bits --against` ranks examples."""
    accumulate: int | None = None
    """Parts into which a batch is cut; their gradients are added up. Default 1 on a GPU, on a CPU what suits the
    network."""
    lr: float = 1e-4
    """Highest learning rate."""
    validate_every: int | None = None
    """Steps between validations; default a tenth of the budget, at most 1000."""
    validate_examples: int = 128
    """Examples of the validation split that are scored, always the same."""
    keep: Literal["best", "last"] = "best"
    """Which weights a run publishes: those of the best validation, of which the later ones where they cannot be told
    apart, or simply the last ones."""
    checkpoint_every: int = 1000
    """Steps between checkpoints; one is also written every five minutes and at every validation."""
    seed: int = 0
    """Seed of weights, batches and noise."""
    compile: bool = False
    """Compile the network with torch.compile."""
    recompute: bool = False
    """Compute the activations of each block of the network again for its gradient: less memory, a third more time."""
    precision: Literal["float32", "bf16"] = "float32"
    """bf16 multiplies matrices in bfloat16, on cuda only."""
    strategy: Literal["ddp", "fsdp"] = "ddp"
    """How several processes train one model: each with all of it (ddp), or each with a part of its weights and of the
    optimiser (fsdp), for models too large for one device; the diffusions, and arm without n-grams."""


@dataclass(frozen=True)
class OptimConfig:
    """The optimiser and the schedule of its learning rate."""

    optimizer: Literal["adam", "adamw", "adamax", "muon"] = "adam"
    """muon orthogonalises the steps of the network's inner matrices and leaves the rest to AdamW."""
    matrix_lr: float = 0.02
    """Highest learning rate of muon's matrices."""
    beta2: float = 0.999
    """Decay of the second moment."""
    weight_decay: float = 0.0
    """Decoupled weight decay (adamw, and muon's other weights)."""
    warmup: int = 0
    """Steps over which the learning rate rises linearly; it multiplies the decays."""
    decay_per_epoch: float = 1.0
    """Factor on the learning rate per pass over the training data."""
    decay_to_zero: bool = False
    """Let the learning rate fall linearly to zero over the budget."""
    clip: float | None = None
    """Largest norm of the gradient."""
    ema: float = 0.999
    """Decay of the moving average of the weights, which is what is scored; 0 for none, as in the paper."""


class ModelSettings(ABC):
    """The settings of a model: a frozen dataclass of plain values, and of such dataclasses, that can build the model.

    docs/extending.md shows one.
    """

    @abstractmethod
    def build(self, spec: "DataSpec") -> "CategoricalModel":
        """A fresh model for data of this shape."""

    def facts(self, model: "CategoricalModel") -> dict[str, Any]:  # noqa: ARG002
        """What a person who trains the built model should be told of it, by name."""
        return {}


OWN = "custom"  # recipe of runs whose model was made in Python


@dataclass(frozen=True)
class OwnModel(ModelSettings):
    """In place of settings, where a run's model was made in Python."""

    made_by: str
    """The class of the model."""

    def build(self, spec: "DataSpec") -> "CategoricalModel":  # noqa: ARG002
        raise ValueError(f"the model, a {self.made_by}, was made in Python; pass it: load(path, model=...)")


@dataclass(frozen=True)
class RunConfig:
    """Everything that defines a run; it is saved as config.json in the run's folder.

    >>> from unordinal.recipes import configured
    >>> configured("arm").train.minutes
    2
    """

    preset: str
    """What was asked for: an experiment of the paper (text8/arm) or a model (arm)."""
    recipe: str
    """Its entry in RECIPES, or `custom` where the model was made in Python."""
    size: Size
    data: DataConfig
    model: ModelSettings
    train: TrainConfig = field(default_factory=TrainConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)

    def to_dict(self) -> dict[str, Any]:
        return {f.name: to_plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "RunConfig":
        """The config that `to_dict` described; a ValueError names what does not fit."""
        from unordinal.recipes import RECIPES

        try:
            recipe = from_plain(str, values["recipe"], "recipe")
            if recipe != OWN:
                check_known("recipe", recipe, RECIPES)
            settings: type = OwnModel if recipe == OWN else RECIPES[recipe].settings
            return RunConfig(
                preset=from_plain(str, values["preset"], "preset"),
                recipe=recipe,
                size=from_plain(Size, values["size"], "size"),
                data=from_plain(DataConfig, values["data"], "data"),
                model=from_plain(settings, values["model"], "model"),
                train=from_plain(TrainConfig, values["train"], "train"),
                optim=from_plain(OptimConfig, values["optim"], "optim"),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a run's configuration: {error}") from error


def to_plain(value: Any) -> Any:
    """Nested dataclasses as dicts; each says which class it is, for fields that may hold one of several."""
    if not dataclasses.is_dataclass(value):
        return value
    fields = {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return {"kind": type(value).__name__, **fields}


def from_plain(kind: Any, value: Any, where: str) -> Any:
    """The value of type `kind` that `to_plain` described; `where` is its dotted name, for complaints."""
    choices = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    classes: dict[str, type] = {c.__name__: c for c in choices if dataclasses.is_dataclass(c) and isinstance(c, type)}
    if classes and isinstance(value, dict):
        name = value.get("kind", next(iter(classes)))
        check_known(f"kind of {where}", name, classes)
        hints = get_type_hints(classes[name])
        given = {key: part for key, part in value.items() if key != "kind"}
        return classes[name](**{key: from_plain(hints[key], part, f"{where}.{key}") for key, part in given.items()})
    if value is None and type(None) in choices:
        return None
    for choice in choices:
        if get_origin(choice) is Literal and isinstance(value, str):
            check_known(where, value, get_args(choice))
            return value
        if get_origin(choice) is tuple and isinstance(value, list | tuple):
            return tuple(from_plain(get_args(choice)[0], item, where) for item in value)
        if choice is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(choice, type) and isinstance(value, choice) and not (choice is int and isinstance(value, bool)):
            return value
    raise ValueError(f"{where} cannot be {value!r}")


def paths_of(value: Any, prefix: str = "") -> dict[str, Any]:
    """Every setting below a dataclass by its dotted name, nested dataclasses included."""
    found: dict[str, Any] = {}
    for f in dataclasses.fields(value):
        part = getattr(value, f.name)
        found[f"{prefix}{f.name}"] = part
        if dataclasses.is_dataclass(part):
            found |= paths_of(part, f"{prefix}{f.name}.")
    return found


def with_settings(config: RunConfig, settings: dict[str, Any]) -> RunConfig:
    """A configuration with some settings changed, each by its name or, where several have it, by its dotted name.

    >>> from unordinal.recipes import configured
    >>> with_settings(configured("arm"), {"lr": 0.5, "net.width": 64}).model.net.width
    64
    """
    if {"steps", "minutes", "epochs"} & settings.keys():  # a budget given replaces the recipe's
        config = replace(config, train=replace(config.train, steps=None, minutes=None, epochs=None))
    for name, value in settings.items():
        parts = ("data", "model", "train", "optim")
        known = {f"{part}.{path}" for part in parts for path in paths_of(getattr(config, part))} - {"data.name"}
        fitting = sorted(path for path in known if path == name or path.endswith(f".{name}"))
        if not fitting:
            own = "; a model of your own has no settings here" if config.recipe == OWN else ""
            raise ValueError(f"unknown setting {name!r}{own}; known: {', '.join(sorted(known))}")
        if len(fitting) > 1:
            raise ValueError(f"several settings are called {name!r}: {', '.join(fitting)}; give the whole name")
        config = changed(config, fitting[0].split("."), value)
    return config


def changed(settings: Any, path: list[str], value: Any) -> Any:
    """Nested dataclasses with the one value at `path` changed, checked against its type."""
    name, rest = path[0], path[1:]
    if rest:
        return replace(settings, **{name: changed(getattr(settings, name), rest, value)})
    if dataclasses.is_dataclass(value):
        return replace(settings, **{name: value})
    old, kind = getattr(settings, name), get_type_hints(type(settings))[name]
    if isinstance(value, str) and dataclasses.is_dataclass(old):  # a network, say, by the name of its class
        known = {choice.__name__.lower(): choice for choice in get_args(kind) or (kind,)}
        check_known(name, value, known)
        shared = {f.name for f in dataclasses.fields(known[value])} & vars(old).keys()
        return replace(settings, **{name: known[value](**{key: getattr(old, key) for key in shared})})
    return replace(settings, **{name: from_plain(kind, value, name)})


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
