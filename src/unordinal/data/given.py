"""Data that are given in Python: arrays, tensors or lists of classes."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from unordinal.config import Shape
from unordinal.data.arrays import SPLITS, load_arrays
from unordinal.data.source import ArraySettings
from unordinal.data.spec import Vocabulary
from unordinal.data.splits import Data
from unordinal.progress import Progress, silent
from unordinal.settings import PYTHON_ONLY


@dataclass(frozen=True)
class GivenSource(ArraySettings):
    """Arrays, tensors or lists that were given in Python."""

    arrays: Annotated[Any, PYTHON_ONLY] = None
    """N examples (N, *D), or one long sequence of N symbols (N,); or a dict of train, val and test."""
    key: ClassVar[str] = "array"
    usage: ClassVar[str] = "(an array in Python)"
    description: ClassVar[str] = "an array in Python"
    has_split: ClassVar[bool] = False

    @property
    def short_name(self) -> str:
        return "the array"

    @property
    def shape(self) -> Shape:
        first = next(iter(self.arrays.values()), 0) if isinstance(self.arrays, dict) else self.arrays
        return "maps" if as_array(first).ndim == 3 else "sequences"

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        if self.arrays is None:
            raise ValueError("these data were an array in Python, which is not here any more")
        arrays = dict(self.arrays) if isinstance(self.arrays, dict) else {"": self.arrays}
        if isinstance(self.arrays, dict) and set(arrays) != set(SPLITS):
            raise ValueError(f"expected the keys train, val and test, got {', '.join(map(str, arrays))}")
        arrays = {name: as_array(values) for name, values in arrays.items()}
        return load_arrays(arrays, self, progress=progress)


def as_array(values: Any) -> np.ndarray:
    """Return what was given in Python as an array; raise a ValueError if it cannot be one."""
    if isinstance(values, str) or (isinstance(values, list) and any(isinstance(part, str) for part in values)):
        raise ValueError("expected an array of integer classes, got text; write it to a file and give its path")
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise ValueError("expected an array of integer classes, got lists of different lengths") from error
