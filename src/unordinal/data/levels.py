"""Which numbers and colours of PNGs are which classes."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

MAX_LEVELS = 256
FEW = 0.5  # of the numbers up to the largest: fewer are levels, more are classes as they are


@dataclass(frozen=True)
class Levels:
    """The grey levels of some PNGs, in order: each is a class.

    >>> Levels.of_text("0,85,170,255").classes_of(np.array([[85, 255]]), "x.png").tolist()
    [[1, 3]]
    """

    values: tuple[int, ...]

    @staticmethod
    def of_text(text: str) -> "Levels":
        """The levels that `text` lists, separated by commas."""
        try:
            values = tuple(int(part) for part in text.split(","))
        except ValueError as error:
            raise ValueError(f"`levels` are whole numbers separated by commas, got {text!r}") from error
        if list(values) != sorted({v for v in values if 0 <= v < MAX_LEVELS}) or len(values) < 2:
            raise ValueError(f"`levels` are different numbers from 0 to {MAX_LEVELS - 1} in order, got {text!r}")
        return Levels(values)

    @staticmethod
    def found_in(maps: Iterable[np.ndarray]) -> "Levels | None":
        """The levels of some maps where they are few and far between, 0, 85, 170 and 255 say; else None."""
        seen = sorted(set().union(*(np.unique(pixels).tolist() for pixels in maps)))
        return Levels(tuple(seen)) if 2 <= len(seen) < FEW * (seen[-1] + 1) else None

    @property
    def text(self) -> str:
        return ",".join(map(str, self.values))

    @property
    def categories(self) -> tuple[tuple[str, str], ...]:
        """Name and colour of each class: its grey level."""
        shades = [min(value, 255) for value in self.values]
        return tuple(
            (f"level {value}", f"#{s:02x}{s:02x}{s:02x}") for value, s in zip(self.values, shades, strict=True)
        )

    def classes_of(self, pixels: np.ndarray, where: str) -> np.ndarray:
        """The class of every pixel: (H, W) -> (H, W) uint8; `where` is what a complaint calls the picture."""
        values = np.array(self.values)
        place = np.searchsorted(values, pixels).clip(max=len(values) - 1)
        wrong = np.argwhere(values[place] != pixels)
        if len(wrong):
            row, column = wrong[0].tolist()
            raise ValueError(
                f"{where} has the level {int(pixels[row, column])} at row {row}, column {column}; expected {self.text}"
            )
        return place.astype(np.uint8)


@dataclass(frozen=True)
class Colours:
    """Classes by their colours in RGB pictures."""

    categories: tuple[tuple[str, str], ...]  # name and colour, #rrggbb, of each class

    @staticmethod
    def of_text(text: str) -> "Colours":
        """One class a line: a name, then #rrggbb or three numbers from 0 to 255."""
        found = [colour_of(line, number) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
        colours = [colour for _, colour in found]
        if not 2 <= len(found) <= MAX_LEVELS or len(set(colours)) != len(colours):
            raise ValueError(
                f"`colours` must be 2 to {MAX_LEVELS} lines with different colours, got {len(found)} lines"
            )
        return Colours(tuple(found))

    def classes_of(self, pixels: np.ndarray, where: str) -> np.ndarray:
        """The class of every pixel: (H, W, 3) -> (H, W) uint8."""
        codes = np.array([int(colour[1:], 16) for _, colour in self.categories])
        wanted = pixels.astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
        order = np.argsort(codes)
        place = order[np.searchsorted(codes[order], wanted).clip(max=len(codes) - 1)]
        wrong = np.argwhere(codes[place] != wanted)
        if len(wrong):
            row, column = wrong[0].tolist()
            raise ValueError(
                f"{where} has the colour #{int(wanted[row, column]):06x} at row {row}, column {column}; "
                f"it is none of the {len(codes)} in `colours`"
            )
        return place.astype(np.uint8)


def colour_of(line: str, number: int) -> tuple[str, str]:
    """Name and colour of a line, "road #804080" or "road 128 64 128"."""
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
