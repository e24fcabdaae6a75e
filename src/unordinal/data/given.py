"""Data that are given in Python: arrays, tensors or lists of classes."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from unordinal.config import Shape
from unordinal.data.arrays import load_arrays
from unordinal.data.labels import SPLITS, is_about, parted
from unordinal.data.source import ArraySettings
from unordinal.data.splits import Data
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Progress, silent
from unordinal.settings import PYTHON_ONLY


@dataclass(frozen=True)
class GivenSource(ArraySettings):
    """Arrays, tensors or lists that were given in Python."""

    arrays: Annotated[Any, PYTHON_ONLY] = None
    """N examples (N, *D), or one long sequence of N symbols (N,); or a dict of train, val and test, or of x, which may
    also have labels, lengths and num_classes (see data/labels.py)."""
    labels: Annotated[Any, PYTHON_ONLY] = None
    """Labels given with the examples: (N,) or (N, J) integers or texts, or a dict of such arrays by name."""
    key: ClassVar[str] = "array"
    usage: ClassVar[str] = "(an array in Python)"
    description: ClassVar[str] = "an array in Python"
    has_split: ClassVar[bool] = False

    @property
    def short_name(self) -> str:
        return "the array"

    @property
    def shape(self) -> Shape:
        arrays = self.arrays if isinstance(self.arrays, dict) else {"x": self.arrays}
        return "maps" if as_array(arrays.get("x", arrays.get("train", 0))).ndim == 3 else "sequences"

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        if self.arrays is None:
            raise ValueError("these data were an array in Python, which is not here any more")
        arrays = dict(self.arrays) if isinstance(self.arrays, dict) else {"x": self.arrays}
        if isinstance(self.arrays, dict) and not ({"x"} <= set(arrays) or set(SPLITS) <= set(arrays)):
            raise ValueError(f"expected the keys train, val and test, got {', '.join(map(str, arrays))}")
        named = self.labels if isinstance(self.labels, dict) else {"": self.labels}
        arrays |= {f"label_{name}": values for name, values in named.items() if values is not None}
        read = {name: np.asarray(v) if is_about(name, arrays) else as_array(v) for name, v in arrays.items()}
        examples, given, ignored = parted(read, "the arrays")
        notes = (f"ignored arrays: {', '.join(ignored)}",) if ignored else ()
        return load_arrays(examples, self, given=given, notes=notes, progress=progress)


def as_array(values: Any) -> np.ndarray:
    """Return what was given in Python as an array; raise a ValueError if it cannot be one."""
    if isinstance(values, str) or (isinstance(values, list) and any(isinstance(part, str) for part in values)):
        raise ValueError("expected an array of integer classes, got text; write it to a file and give its path")
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise ValueError("expected an array of integer classes, got lists of different lengths") from error
