"""The classes of PNGs: which grey level or which colour stands for which class."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

MAX_LEVELS = 256
FEW = 0.5  # numbers are taken for grey levels if fewer than this part of those up to the largest number occur


@dataclass(frozen=True)
class Levels:
    """The grey levels of PNGs in increasing order; the class of a level is its index.

    >>> Levels.of_text("0,85,170,255").classes_of(np.array([[85, 255]]), "x.png").tolist()
    [[1, 3]]
    """

    values: tuple[int, ...]

    @staticmethod
    def of_text(text: str) -> "Levels":
        """Return the levels of a list separated by commas."""
        try:
            values = tuple(int(part) for part in text.split(","))
        except ValueError as error:
            raise ValueError(f"`levels` must be whole numbers separated by commas, got {text!r}") from error
        if list(values) != sorted({v for v in values if 0 <= v < MAX_LEVELS}) or len(values) < 2:
            raise ValueError(
                f"`levels` must be different numbers from 0 to {MAX_LEVELS - 1} in increasing order, got {text!r}"
            )
        return Levels(values)

    @staticmethod
    def found_in(maps: Iterable[np.ndarray]) -> "Levels | None":
        """Return the grey levels of maps if these are few and widely spaced, such as 0, 85, 170 and 255; else None."""
        seen = sorted(set().union(*(np.unique(pixels).tolist() for pixels in maps)))
        return Levels(tuple(seen)) if 2 <= len(seen) < FEW * (seen[-1] + 1) else None

    @property
    def text(self) -> str:
        """The levels separated by commas."""
        return ",".join(map(str, self.values))

    @property
    def categories(self) -> tuple[tuple[str, str], ...]:
        """The name and the colour (#rrggbb) of each class; the colour is its grey level."""
        shades = [min(value, 255) for value in self.values]
        return tuple(
            (f"level {value}", f"#{s:02x}{s:02x}{s:02x}") for value, s in zip(self.values, shades, strict=True)
        )

    def classes_of(self, pixels: np.ndarray, where: str) -> np.ndarray:
        """Return the class of every pixel: (H, W) -> (H, W) uint8; `where` names the image in error messages."""
        values = np.array(self.values)
        place = np.searchsorted(values, pixels).clip(max=len(values) - 1)
        wrong = np.argwhere(values[place] != pixels)
        if len(wrong):
            row, column = wrong[0].tolist()
            raise ValueError(
                f"{where} has the grey level {int(pixels[row, column])} at row {row}, column {column}; "
                f"expected {self.text}"
            )
        return place.astype(np.uint8)


@dataclass(frozen=True)
class Colours:
    """The classes of RGB images, one for each colour."""

    categories: tuple[tuple[str, str], ...]  # the name and the colour (#rrggbb) of each class

    @staticmethod
    def of_text(text: str) -> "Colours":
        """Parse a text with one class per line: a name, then #rrggbb or three numbers from 0 to 255."""
        found = [parse_colour(line, number) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
        colours = [colour for _, colour in found]
        if not 2 <= len(found) <= MAX_LEVELS or len(set(colours)) != len(colours):
            raise ValueError(
                f"`colours` must be 2 to {MAX_LEVELS} lines with different colours, got {len(found)} lines"
            )
        return Colours(tuple(found))

    def classes_of(self, pixels: np.ndarray, where: str) -> np.ndarray:
        """Return the class of every pixel: (H, W, 3) -> (H, W) uint8; `where` names the image in error messages."""
        codes = np.array([int(colour[1:], 16) for _, colour in self.categories])
        wanted = pixels.astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
        order = np.argsort(codes)
        place = order[np.searchsorted(codes[order], wanted).clip(max=len(codes) - 1)]
        wrong = np.argwhere(codes[place] != wanted)
        if len(wrong):
            row, column = wrong[0].tolist()
            raise ValueError(
                f"{where} has the colour #{int(wanted[row, column]):06x} at row {row}, column {column}, "
                f"which is not one of the {len(codes)} colours in `colours`"
            )
        return place.astype(np.uint8)


def parse_colour(line: str, number: int) -> tuple[str, str]:
    """Return the name and the colour in a line such as "road #804080" or "road 128 64 128"."""
    words = line.split()
    if len(words) >= 2 and words[-1].startswith("#") and len(words[-1]) == 7:
        try:
            int(words[-1][1:], 16)
        except ValueError:
            pass
        else:
            return " ".join(words[:-1]), words[-1].lower()
    numbers = [int(word) for word in words[-3:] if word.isdigit() and int(word) < 256]
    if len(words) >= 4 and len(numbers) == 3:
        return " ".join(words[:-3]), "#" + "".join(f"{number:02x}" for number in numbers)
    raise ValueError(f"`colours`, line {number}: expected 'road #804080' or 'road 128 64 128', got {line.strip()!r}")
