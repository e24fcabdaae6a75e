"""The symbols of a text and their classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

TEXT8_SYMBOLS = " abcdefghijklmnopqrstuvwxyz"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MASK = "\N{MIDDLE DOT}"  # what a masked position of a text is shown as


@dataclass(frozen=True)
class Vocabulary:
    """The symbols of a text and their classes 0, ..., K-1; `unordinal.data.tokens` has those of tokens.

    Args:
        kind: the alphabet: text8 (a-z and space), chars (the characters of `symbols`), bytes or tokens.
        symbols: one character per class, in order; empty for bytes and tokens.

    >>> Vocabulary.text8().encode("a cat").tolist()
    [1, 0, 3, 1, 20]
    >>> Vocabulary.text8().decode([8, 9])
    'hi'
    """

    kind: str
    symbols: str

    @staticmethod
    def text8() -> "Vocabulary":
        """Return the 27 symbols space and a-z, with space as class 0."""
        return Vocabulary("text8", TEXT8_SYMBOLS)

    @staticmethod
    def from_dict(values: dict[str, str]) -> "Vocabulary":
        """Return the vocabulary whose `to_dict` is `values`."""
        from unordinal.data.tokens import TokenVocabulary

        if values["kind"] == "tokens":
            return TokenVocabulary.of(values["tokenizer"])
        return Vocabulary(values["kind"], values["symbols"])

    def to_dict(self) -> dict[str, str]:
        """Return the vocabulary as plain values that can be written as JSON."""
        return {"kind": self.kind, "symbols": self.symbols}

    @property
    def pieces(self) -> "list[bytes]":
        """The bytes of UTF-8 that each class stands for."""
        return [symbol.encode() for symbol in self.symbols] if self.symbols else [bytes([k]) for k in range(256)]

    @property
    def widths(self) -> np.ndarray | None:
        """How many characters each class stands for, (K,); None if all stand for one."""
        return None

    @property
    def description(self) -> str:
        """What the classes are, in a few words."""
        if self.kind == "bytes":
            return "bytes, 256 classes"
        return "a-z and space, 27 classes" if self.kind == "text8" else f"its {len(self)} different characters"

    @staticmethod
    def bytes() -> "Vocabulary":
        """Return the vocabulary of the 256 bytes; texts are encoded as UTF-8."""
        return Vocabulary("bytes", "")

    def __len__(self) -> int:
        return 256 if self.kind == "bytes" else len(self.symbols)

    def __iter__(self) -> Iterator[str]:
        return iter(self.symbols) if self.symbols else (f"0x{i:02x}" for i in range(256))

    def encode(self, text: str) -> "Tensor":
        """Return the classes of a text, (L,) int64; raise a ValueError if it has an unknown character."""
        import torch

        if self.kind == "bytes":
            return torch.from_numpy(np.frombuffer(text.encode(), np.uint8).astype(np.int64))
        return torch.from_numpy(self.encode_points(points_of(text), 0).astype(np.int64))

    def encode_points(self, points: np.ndarray, offset: int) -> np.ndarray:
        """Return the classes (uint8) of code points; error messages add `offset` to the position in `points`."""
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
                f"({wrong.size} such characters in this part of the text){advice}"
            )
        return classes.astype(np.uint8)

    def decode(self, classes: "Tensor | np.ndarray | list[int]") -> str:
        """Return the text of classes; invalid classes and invalid UTF-8 become the replacement character."""
        values = [int(c) for c in classes]
        if self.kind == "bytes":
            # 0xFF is never valid UTF-8, so an invalid class becomes the replacement character too
            return bytes(v if 0 <= v < 256 else 0xFF for v in values).decode("utf-8", errors="replace")
        return "".join(self.symbols[v] if 0 <= v < len(self.symbols) else REPLACEMENT for v in values)


def points_of(text: str) -> np.ndarray:
    """Return the Unicode code points of a text: (L,) uint32."""
    return np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), np.uint32)
