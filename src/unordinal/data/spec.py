"""The description of a data set that a model needs: classes, shape of an example, vocabulary."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unordinal.config import Shape
from unordinal.data.schema import Column
from unordinal.data.vocabularies import MASK, REPLACEMENT, Vocabulary
from unordinal.names import check_known, unknown

if TYPE_CHECKING:
    from torch import Tensor

MAX_CLASSES = 65_536  # of an array: classes are stored as uint16 or smaller
MAX_CHARACTERS = 256  # different characters of a text, or grey levels of a PNG: stored as uint8


def smallest_type(num_classes: int) -> type[np.unsignedinteger]:
    """Return the smallest unsigned integer type that can store the given number of classes.

    >>> smallest_type(256).__name__, smallest_type(257).__name__
    ('uint8', 'uint16')
    """
    return np.uint8 if num_classes <= MAX_CHARACTERS else np.uint16


@dataclass(frozen=True)
class Label:
    """A label that may be given with each example, and the names of its classes; a missing label is a class more.

    Args:
        name: the name of the label.
        values: the names of its classes.
        counts: how many training examples have each; empty if this is not known.

    >>> Label("kind", ("frog", "toad")).encode("toad")
    1
    """

    name: str
    values: tuple[str, ...]
    counts: tuple[int, ...] = ()

    def log_frequencies(self) -> "Tensor":
        """Return the log of the frequencies of the values in the training data, with one more of each: (V,)."""
        import torch

        smoothed = torch.tensor(self.counts or (0,) * len(self.values), dtype=torch.float64) + 1
        return (smoothed / smoothed.sum()).log()

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Label":
        """Return the label whose fields are `values`."""
        return Label(values["name"], tuple(values["values"]), tuple(values.get("counts", ())))

    def encode(self, value: Any) -> int:
        """Return the class of a value, by name or by number; None is a missing label."""
        if value is None:
            return len(self.values)
        if str(value) not in self.values:
            raise unknown(f"value of the label {self.name}", str(value), self.values)
        return self.values.index(str(value))


@dataclass(frozen=True)
class DataSpec:
    """The description of a data set: all that is needed to build a model for it and to show its samples.

    Args:
        name: the name of the data set.
        num_classes: the number of classes K; the largest of all columns, if they have numbers of classes of their own.
        event_shape: the shape of an example, (length,) for sequences and (height, width) for maps; the longest example,
            if they may end early.
        vocabulary: the symbols of the classes; None if the classes are plain numbers.
        fingerprint: the sha256 of the encoded classes.
        split_sizes: the sizes of train, val and test: symbols of a text, examples of an array.
        categories: the name and the colour (#rrggbb) of each class; empty if they have none.
        levels: the grey levels that are the classes of a folder of PNGs, separated by commas; empty otherwise.
        columns: the number of classes of each column; empty if all positions have `num_classes`.
        has_places: whether positions have a meaning of their own, as columns of a table and aligned sites of DNA do, or
            only neighbours, as in a text.
        lengths: how often each length 0, ..., L occurs in the training data, if examples may end early: one row, or one
            for each class of the first label and one for a missing label. Empty if all have the same length.
        labels: the labels that may be given with an example.
        schema: the columns of a table; empty for other data.

    >>> import torch
    >>> spec = DataSpec("mine", num_classes=27, event_shape=(2,), vocabulary=Vocabulary.text8())
    >>> spec.unit, spec.show(torch.tensor([8, 9]))
    ('bits per character', 'hi')
    """

    name: str
    num_classes: int
    event_shape: tuple[int, ...]
    vocabulary: Vocabulary | None = None
    fingerprint: str = ""
    split_sizes: tuple[int, int, int] = (0, 0, 0)
    categories: tuple[tuple[str, str], ...] = ()
    levels: str = ""
    columns: tuple[int, ...] = ()
    has_places: bool = False
    lengths: tuple[tuple[int, ...], ...] = ()
    labels: tuple[Label, ...] = ()
    schema: tuple[Column, ...] = ()

    @property
    def classes(self) -> int | tuple[int, ...]:
        """The number of classes of all positions, or of each column."""
        return self.columns or self.num_classes

    @property
    def numbers(self) -> tuple[tuple[float, ...] | None, ...]:
        """For each column of a table the numbers that its classes stand for, or None if they have no order."""
        return tuple(column.numbers for column in self.schema)

    @property
    def ends(self) -> bool:
        """Whether examples may end early; the number `num_classes` stands at all positions after an end."""
        return bool(self.lengths)

    @property
    def num_places(self) -> int | None:
        """The number of positions, if each of them is a place with a meaning of its own."""
        return self.event_shape[0] if self.has_places and not self.is_map and not self.ends else None

    @property
    def label_sizes(self) -> tuple[int, ...]:
        """The number of classes of each label."""
        return tuple(len(label.values) for label in self.labels)

    def encode_labels(self, given: Any) -> list[int] | None:
        """Return the classes of labels given by name, or as texts such as "class=frog"; None if none are given.

        >>> spec = DataSpec("mine", 2, (3,), labels=(Label("class", ("frog", "toad")), Label("colour", ("green",))))
        >>> spec.encode_labels({"class": "toad"}), spec.encode_labels(("colour=green",))
        ([1, 1], [2, 0])
        """
        if not given:
            return None
        pairs = given.items() if isinstance(given, dict) else [str(text).partition("=")[::2] for text in given]
        values = {str(name).strip(): value for name, value in pairs}
        if len(values) < len(given):
            raise ValueError(f"`label` names a label twice: {' '.join(map(str, given))}; give each once")
        if not self.labels:
            raise ValueError(f"`label` is for models that were trained with labels; {self.name} has none")
        for name in values:
            check_known("label", name, [label.name for label in self.labels])
        return [label.encode(values.get(label.name)) for label in self.labels]

    def frame(self, x: "Tensor | np.ndarray", seed: int = 0) -> Any:
        """Return rows of classes (N, D) as a DataFrame; values within bins are drawn."""
        import pandas as pd

        rng, rows = np.random.default_rng(seed), np.asarray(x)
        return pd.DataFrame({c.name: c.decode(rows[:, place], rng) for place, c in enumerate(self.schema)})

    @property
    def num_values(self) -> int:
        """How many values of the data the description holds: categories, edges of bins, and names of labels."""
        of_columns = sum(len(c.values) + len(c.merged) + len(c.bins) for c in self.schema)
        return of_columns + sum(len(label.values) for label in self.labels)

    def log_widths(self, x: "Tensor | np.ndarray") -> np.ndarray | None:
        """Return the log of the sizes of the bins that rows of classes (N, D) fall into, (N,); None without bins.

        Subtracted from log P(x), it gives the log-density of the values themselves, which are uniform within bins: per
        unit for floats, per value for whole numbers and dates.
        """
        if not any(column.bins for column in self.schema):
            return None
        rows = np.asarray(x)
        return sum(column.log_widths()[rows[:, place]] for place, column in enumerate(self.schema))

    @property
    def is_map(self) -> bool:
        """Whether examples are maps, 2-d arrays of classes (height, width)."""
        return len(self.event_shape) == 2

    @property
    def shape(self) -> Shape:
        """Whether examples are sequences or maps."""
        return "maps" if self.is_map else "sequences"

    @property
    def unit(self) -> str:
        """The unit of a score on this data set, such as "bits per character"."""
        if self.vocabulary is None:
            return "bits per pixel" if self.is_map else "bits per column" if self.schema else "bits per dimension"
        return "bits per byte" if self.vocabulary.kind == "bytes" else "bits per character"

    @property
    def whole_unit(self) -> str:
        """The unit of the bits of a whole example, where these are of interest; else empty."""
        if self.schema:
            return "bits per row"
        return ("bits per line" if self.vocabulary is not None else "bits per example") if self.ends else ""

    def text_vocabulary(self, what: str, *, takes_tokens: bool = False) -> Vocabulary:
        """Return the alphabet; raise a ValueError, which names the task, if the data are not text of characters."""
        if self.vocabulary is None or self.is_map:
            raise ValueError(f"`{what}` is for text; the classes of {self.name} have no characters")
        if self.vocabulary.kind == "tokens" and not takes_tokens:
            raise ValueError(f"`{what}` needs a model of characters or bytes; this one reads tokens")
        return self.vocabulary

    def require_sequences(self) -> None:
        """Raise a ValueError if the examples are not sequences."""
        if len(self.event_shape) != 1:
            raise ValueError(
                f"this model's network takes sequences, (N, length) arrays; "
                f"the examples of {self.name} have shape {self.event_shape}"
            )

    def require_maps(self, multiple: int) -> None:
        """Raise a ValueError if the examples are not maps with a height and width that are multiples of `multiple`."""
        if not self.is_map:
            raise ValueError(
                f"this model's network takes maps, (N, height, width) arrays; "
                f"the examples of {self.name} have shape {self.event_shape}"
            )
        if any(side % multiple for side in self.event_shape):
            raise ValueError(
                f"this model needs a height and a width that are multiples of {multiple}; "
                f"the maps of {self.name} are {self.event_shape[0]} x {self.event_shape[1]}"
            )

    def show(self, example: "Tensor") -> str:
        """Return an example as text: decoded with the vocabulary if there is one, else the numbers of its classes.

        Nothing after the end of an example is shown.
        """
        if self.ends and example.dim() == 1:
            example = example[example != self.num_classes]
        if self.vocabulary is not None:
            return self.vocabulary.decode(example)
        rows = example.reshape(-1, example.shape[-1]).tolist()
        wide = len(str(self.num_classes - 1)) if self.is_map else 0
        lines = [" ".join((str(v) if v < self.num_classes else REPLACEMENT).rjust(wide) for v in row) for row in rows]
        height = example.shape[-2] if self.is_map and example.dim() == 3 else len(lines)  # an empty line between maps
        return "\n\n".join("\n".join(lines[i : i + height]) for i in range(0, len(lines), height))

    def show_noisy(self, example: "Tensor") -> str:
        """Return a step of a diffusion chain as text, with a dot at each masked position."""
        return self.show(example).replace(REPLACEMENT, MASK)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values that can be written as JSON."""
        return {
            "name": self.name,
            "num_classes": self.num_classes,
            "event_shape": list(self.event_shape),
            "vocabulary": None if self.vocabulary is None else self.vocabulary.to_dict(),
            "fingerprint": self.fingerprint,
            "split_sizes": list(self.split_sizes),
            "levels": self.levels,
            "categories": [list(category) for category in self.categories],
            "columns": list(self.columns),
            "has_places": self.has_places,
            "lengths": [list(row) for row in self.lengths],
            "labels": [asdict(label) for label in self.labels],
            "schema": [asdict(column) for column in self.schema],
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "DataSpec":
        """Return the spec whose `to_dict` is `values`."""
        vocabulary = values["vocabulary"]
        train, val, test = values["split_sizes"]
        return DataSpec(
            name=values["name"],
            num_classes=values["num_classes"],
            event_shape=tuple(values["event_shape"]),
            vocabulary=Vocabulary.from_dict(vocabulary) if vocabulary else None,
            fingerprint=values["fingerprint"],
            split_sizes=(train, val, test),
            levels=values.get("levels", ""),
            categories=tuple((name, colour) for name, colour in values.get("categories", ())),
            columns=tuple(int(k) for k in values.get("columns", ())),
            has_places=values.get("has_places", False),
            lengths=tuple(tuple(int(n) for n in row) for row in values.get("lengths", ())),
            labels=tuple(Label.from_dict(label) for label in values.get("labels", ())),
            schema=tuple(Column.from_dict(column) for column in values.get("schema", ())),
        )
