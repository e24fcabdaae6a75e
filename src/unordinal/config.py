"""What a run is: data, model, training and optimiser, as frozen dataclasses. Recipes have the settings of models."""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from unordinal.names import check_known
from unordinal.settings import PYTHON_ONLY, Checked, Flag, Range, Seed, settings_of

if TYPE_CHECKING:
    from unordinal.data.source import Source
    from unordinal.data.spec import DataSpec
    from unordinal.model import CategoricalModel

Size = Literal["tiny", "small", "paper"]
Shape = Literal["sequences", "maps"]


@dataclass(frozen=True)
class TrainConfig(Checked):
    """Budget, batches, and how often a run is validated and saved."""

    steps: Annotated[int | None, Range(1), Flag(metavar="STEPS")] = None
    """Budget in optimiser steps."""
    minutes: Annotated[float | None, Range(above=0), Flag(metavar="MINUTES")] = None
    """Budget in minutes of training and validation, without the set-up; with steps, the limit of a budget in steps."""
    epochs: Annotated[float | None, Range(above=0), Flag(metavar="EPOCHS")] = None
    """Budget in passes over the training data, if neither steps nor minutes are given."""
    batch_size: Annotated[int, Range(1)] = 32
    """Examples per optimiser step."""
    lengths: tuple[int, ...] = ()
    """Cut the sequences of a batch into pieces of one of these lengths, drawn for each step: 32 64 128 256, say. A
    model that is to be used on short texts should see some."""
    mutate: Annotated[float, Range(0, below=1)] = 0.0
    """Replace this share of the training symbols by random ones: for a background model that `unordinal bits --against`
    subtracts. Validation, which chooses the best weights, is of unchanged symbols."""
    drop_labels: Annotated[float, Range(0, below=1)] = 0.1
    """Share of the examples whose labels are dropped in training, so that the model also knows its data without labels,
    which guidance needs. If there are several labels, the same share of each becomes missing."""
    freeze: Annotated[tuple[str, ...], Flag(metavar="NAME")] = ()
    """Parts of the model whose weights stay as they are, by the beginnings of their names: net.embed net.blocks.0."""
    accumulate: Annotated[int | None, Range(1)] = None
    """Parts into which a batch is cut; their gradients are added up. Default 1 on a GPU, on a CPU what suits the
    network."""
    lr: Annotated[float, Range(above=0)] = 1e-4
    """Highest learning rate."""
    validate_every: Annotated[int | None, Range(1)] = None
    """Steps between validations; default a tenth of the budget, at most 1000."""
    validate_examples: Annotated[int, Range(1)] = 128
    """Examples of the validation split that are scored, always the same."""
    keep: Literal["best", "last"] = "best"
    """Which weights a run keeps: those with the best validation score (ties go to the later step), or the last ones."""
    patience: Annotated[int | None, Range(1)] = None
    """Stop after this many validations in a row that are 0.5 % or more worse than the best one; default never, 3 for
    rows."""
    checkpoint_every: Annotated[int, Range(1)] = 1000
    """Steps between checkpoints; one is also written every five minutes and at every validation."""
    seed: Seed = 0
    """Seed of weights, batches and noise."""
    compile: bool = False
    """Compile the network with torch.compile."""
    recompute: bool = False
    """Compute the activations of each block of the network again for its gradient: less memory, a third more time."""
    precision: Literal["float32", "bf16"] = "float32"
    """bf16 multiplies matrices in bfloat16, on cuda only."""
    strategy: Literal["replicate", "fsdp"] = "replicate"
    """How several processes train one model: each with all of its weights (replicate), or each with a part of them and
    of the optimiser (fsdp), for models too large for one device; the diffusions, and arm without n-grams."""

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = 1 if self.accumulate is None else self.accumulate
        if self.batch_size % parts:
            raise ValueError(f"`batch_size` {self.batch_size} must be a positive multiple of `accumulate` {parts}")


@dataclass(frozen=True)
class OptimConfig(Checked):
    """The optimiser and the schedule of its learning rate."""

    optimizer: Literal["adam", "adamw", "adamax", "muon"] = "adam"
    """muon orthogonalises the steps of the network's inner matrices and leaves the rest to AdamW."""
    matrix_lr: Annotated[float, Range(above=0)] = 0.02
    """Highest learning rate of muon's matrices."""
    beta2: Annotated[float, Range(0, below=1)] = 0.999
    """Decay of the second moment."""
    weight_decay: Annotated[float, Range(0)] = 0.0
    """Decoupled weight decay (adamw, and muon's other weights)."""
    warmup: Annotated[int, Range(0)] = 0
    """Steps over which the learning rate rises linearly; it multiplies the decays."""
    decay_per_epoch: Annotated[float, Range(above=0, high=1)] = 1.0
    """Factor on the learning rate per pass over the training data."""
    decay_to_zero: bool = False
    """Let the learning rate fall linearly to zero over the budget."""
    clip: Annotated[float | None, Range(above=0)] = None
    """Largest norm of the gradient."""
    ema: Annotated[float, Range(0, below=1)] = 0.999
    """Decay of the moving average of the weights, which is what is scored; 0 for none, as in the paper."""


class ModelSettings(ABC):
    """The settings of a model: a frozen dataclass of plain values, and of such dataclasses, that can build the model.

    docs/extending.md shows one.
    """

    handles: ClassVar[tuple[str, ...]] = ()
    """What the model takes besides plain arrays: columns of classes of their own, ends, labels."""

    @abstractmethod
    def build(self, spec: "DataSpec") -> "CategoricalModel":
        """Build a model with new random weights for data of this description."""

    def build_for(self, spec: "DataSpec") -> "CategoricalModel":
        """Build a model for data of this description; raise a ValueError that names what the model does not take."""
        what = {"columns": bool(spec.columns), "ends": spec.ends, "labels": bool(spec.labels)}
        refused = [name for name, is_there in what.items() if is_there and name not in self.takes()]
        if refused:
            meaning = {"columns": "columns with numbers of classes of their own", "ends": "examples that end early"}
            found = " and ".join(meaning.get(name, name) for name in refused)
            raise ValueError(f"this model does not take {found}; use arm, absorbing, uniform or multinomial")
        return self.build(spec)

    def takes(self) -> tuple[str, ...]:
        """Return what the model takes besides plain arrays, with these settings."""
        return self.handles

    def for_more_classes(self, num_classes: int) -> "ModelSettings":
        """Return the settings of a model that starts from one of fewer input classes, all special ones included."""
        return self

    def facts(self, model: "CategoricalModel") -> dict[str, Any]:
        """Return facts about the built model to report when it is trained, by name."""
        return {}


BUDGET = ("steps", "minutes", "epochs")
OWN = "custom"  # recipe of runs whose model was made in Python


@dataclass(frozen=True)
class OwnModel(ModelSettings):
    """Stands for the settings of a model that was made in Python."""

    made_by: str
    """The class of the model."""

    def build(self, spec: "DataSpec") -> "CategoricalModel":
        raise ValueError(f"the model, a {self.made_by}, was made in Python; pass it: load(path, model=...)")


@dataclass(frozen=True)
class Ancestor:
    """The run whose weights another run started from."""

    reference: str
    """What the user called it: a folder, or such as pretrained:text8-arm."""
    sha256: str
    """The checksum of its weights."""


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
    data: "Source"
    model: ModelSettings
    train: TrainConfig = field(default_factory=TrainConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    init: Ancestor | None = None
    """The run that it started from."""

    def to_dict(self) -> dict[str, Any]:
        return {f.name: to_plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "RunConfig":
        """Return the config that `to_dict` described; raise a ValueError that names what does not fit."""
        from unordinal.data import DATASETS
        from unordinal.data.given import GivenSource
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
                data=from_plain(Union[*DATASETS.values(), GivenSource], values["data"], "data"),
                model=from_plain(settings, values["model"], "model"),
                train=from_plain(TrainConfig, values["train"], "train"),
                optim=from_plain(OptimConfig, values["optim"], "optim"),
                init=from_plain(Ancestor | None, values.get("init"), "init"),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a run's configuration: {error}") from error


def to_plain(value: Any) -> Any:
    """Return nested dataclasses as dicts; each says which class it is, for fields that may hold one of several."""
    if not dataclasses.is_dataclass(value):
        return value if isinstance(value, str | int | float | bool | list | tuple | NoneType) else None
    hints = get_type_hints(type(value)) if isinstance(value, Checked) else {}
    kept = [f.name for f in dataclasses.fields(value) if hints.get(f.name) is not Any]  # arrays are not saved
    fields = {name: to_plain(getattr(value, name)) for name in kept}
    return {"kind": type(value).__name__, **fields}


def from_plain(kind: Any, value: Any, where: str) -> Any:
    """Return the value of type `kind` that `to_plain` described; `where` is its dotted name, for error messages."""
    choices = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    classes: dict[str, type] = {c.__name__: c for c in choices if dataclasses.is_dataclass(c) and isinstance(c, type)}
    if classes and isinstance(value, dict):
        name = value.get("kind", next(iter(classes)))
        check_known(f"kind of {where}", name, classes)
        hints = get_type_hints(classes[name])
        given = {key: part for key, part in value.items() if key != "kind"}
        for key in given:
            check_known(f"setting of {where}", key, hints)
        return classes[name](**{key: from_plain(hints[key], part, f"{where}.{key}") for key, part in given.items()})
    if Any in choices or (value is None and type(None) in choices):
        return value
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
    """Return every setting below a dataclass by its dotted name, nested dataclasses included."""
    found: dict[str, Any] = {}
    kind: Any = type(value)
    for f in dataclasses.fields(value):
        if isinstance(value, Checked) and PYTHON_ONLY in settings_of(kind)[f.name].marks:
            continue
        part = getattr(value, f.name)
        found[f"{prefix}{f.name}"] = part
        if dataclasses.is_dataclass(part):
            found |= paths_of(part, f"{prefix}{f.name}.")
    return found


def differences(old: RunConfig, new: RunConfig, *, ignore: tuple[str, ...] = ()) -> list[str]:
    """Return the settings in which two runs differ, as `part.name: old -> new`."""
    pairs = flatten(old.to_dict(), new.to_dict())
    return [f"{part}: {was} -> {now}" for part, was, now in pairs if was != now and part not in ignore]


def flatten(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[tuple[str, Any, Any]]:
    """Return pairs of values of two nested dicts by dotted name, with None if one lacks the name."""
    pairs: list[tuple[str, Any, Any]] = []
    for key in [*old, *(k for k in new if k not in old)]:
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            pairs += flatten(before, after, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", before, after))
    return pairs
