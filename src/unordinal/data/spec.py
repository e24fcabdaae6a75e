"""What a model must know of its data: classes, shape, vocabulary, and how to show an example."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unordinal.config import Alphabet

TEXT8_SYMBOLS = " abcdefghijklmnopqrstuvwxyz"
MAX_CLASSES = 65_536  # of arrays: classes are stored as uint16 at the most
MAX_CHARACTERS = 256  # of a text, and levels of a PNG: stored as uint8


def smallest_type(num_classes: int) -> type[np.unsignedinteger]:
    """The smallest integer that holds so many classes.

    >>> smallest_type(256).__name__, smallest_type(257).__name__
    ('uint8', 'uint16')
    """
    return np.uint8 if num_classes <= MAX_CHARACTERS else np.uint16


REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Vocabulary:
    """Symbols and their classes 0..K-1.

    >>> Vocabulary.text8().encode("a cat").tolist()
    [1, 0, 3, 1, 20]
    >>> Vocabulary.text8().decode([8, 9])
    'hi'
    """

    kind: Alphabet
    symbols: str  # one character per class; empty for bytes

    @staticmethod
    def text8() -> "Vocabulary":
        return Vocabulary("text8", TEXT8_SYMBOLS)

    @staticmethod
    def bytes() -> "Vocabulary":
        return Vocabulary("bytes", "")

    def __len__(self) -> int:
        return 256 if self.kind == "bytes" else len(self.symbols)

    def __iter__(self) -> Iterator[str]:
        return iter(self.symbols) if self.symbols else (f"0x{i:02x}" for i in range(256))

    def encode(self, text: str) -> Tensor:
        """Classes of a text: (L,) int64."""
        if self.kind == "bytes":
            return torch.from_numpy(np.frombuffer(text.encode(), np.uint8).astype(np.int64))
        return torch.from_numpy(self.encode_points(points_of(text), 0).astype(np.int64))

    def encode_points(self, points: np.ndarray, offset: int) -> np.ndarray:
        """Classes (uint8) of code points; `offset` is the position of the first one, for the error message."""
        if self.kind == "bytes":
            return points.astype(np.uint8)
        known = points_of(self.symbols)
        order = np.argsort(known)
        place = np.searchsorted(known[order], points).clip(max=len(known) - 1)
        classes = order[place]
        wrong = np.flatnonzero(known[classes] != points)
        if wrong.size:
            character = chr(int(points[wrong[0]]))
            allowed = "a-z and space" if self.kind == "text8" else f"the {len(self)} characters of the vocabulary"
            advice = "; use `alphabet` chars or bytes, or clean the text" if self.kind == "text8" else ""
            raise ValueError(
                f"expected {allowed}, got {character!r} at position {offset + int(wrong[0])} "
                f"({wrong.size} such in this part of the text){advice}"
            )
        return classes.astype(np.uint8)

    def decode(self, classes: Tensor | np.ndarray | list[int]) -> str:
        """The text of classes; what is no class or not valid UTF-8 shows as the replacement character."""
        values = [int(c) for c in classes]
        if self.kind == "bytes":
            # a code that is no byte shows like one that is no UTF-8
            return bytes(v if 0 <= v < 256 else 0xFF for v in values).decode("utf-8", errors="replace")
        return "".join(self.symbols[v] if 0 <= v < len(self.symbols) else REPLACEMENT for v in values)


def points_of(text: str) -> np.ndarray:
    """Unicode code points of a text: (L,) uint32."""
    return np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), np.uint32)


@dataclass(frozen=True)
class DataSpec:
    """What a model, a checkpoint and a sample must know of a data set."""

    name: str
    num_classes: int
    event_shape: tuple[int, ...]
    vocabulary: Vocabulary | None = None  # None where classes are bare numbers
    fingerprint: str = ""  # sha256 of the encoded classes
    split_sizes: tuple[int, int, int] = (0, 0, 0)  # symbols of a text, examples of an array
    categories: tuple[tuple[str, str], ...] = ()  # name and colour (#rrggbb) of each class, where it has them
    levels: str = ""  # the grey levels that are classes, where PNGs were read as such

    @property
    def is_map(self) -> bool:
        """Whether examples are maps of pixels, (height, width)."""
        return len(self.event_shape) == 2

    @property
    def unit(self) -> str:
        """What bits are counted per in this data set."""
        if self.vocabulary is None:
            return "bits per pixel" if self.is_map else "bits per dimension"
        return "bits per byte" if self.vocabulary.kind == "bytes" else "bits per character"

    def require_sequences(self) -> None:
        if len(self.event_shape) != 1:
            raise ValueError(
                f"this model's network takes sequences, (N, length) arrays; "
                f"the examples of {self.name} have shape {self.event_shape}"
            )

    def require_maps(self, multiple: int) -> None:
        """Refuse what is no map with sides that are multiples of `multiple`."""
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

    def show(self, example: Tensor) -> str:
        """An example as a person would read it."""
        if self.vocabulary is not None:
            return self.vocabulary.decode(example)
        rows = example.reshape(-1, example.shape[-1]).tolist()
        wide = len(str(self.num_classes - 1)) if self.is_map else 0
        lines = [" ".join((str(v) if v < self.num_classes else REPLACEMENT).rjust(wide) for v in row) for row in rows]
        height = example.shape[-2] if self.is_map and example.dim() == 3 else len(lines)  # a line between maps
        return "\n\n".join("\n".join(lines[i : i + height]) for i in range(0, len(lines), height))

    def to_dict(self) -> dict[str, Any]:
        vocabulary = {"kind": self.vocabulary.kind, "symbols": self.vocabulary.symbols} if self.vocabulary else None
        return {
            "name": self.name,
            "num_classes": self.num_classes,
            "event_shape": list(self.event_shape),
            "vocabulary": vocabulary,
            "fingerprint": self.fingerprint,
            "split_sizes": list(self.split_sizes),
            "levels": self.levels,
            "categories": [list(category) for category in self.categories],
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "DataSpec":
        vocabulary = values["vocabulary"]
        train, val, test = values["split_sizes"]
        return DataSpec(
            name=values["name"],
            num_classes=values["num_classes"],
            event_shape=tuple(values["event_shape"]),
            vocabulary=Vocabulary(vocabulary["kind"], vocabulary["symbols"]) if vocabulary else None,
            fingerprint=values["fingerprint"],
            split_sizes=(train, val, test),
            levels=values.get("levels", ""),
            categories=tuple((name, colour) for name, colour in values.get("categories", ())),
        )
