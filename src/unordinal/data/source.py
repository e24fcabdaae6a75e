"""The interface of a source: data by reference, with the settings of their own format."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from unordinal.config import Shape
from unordinal.data.spec import DataSpec, Vocabulary
from unordinal.data.splits import Data
from unordinal.progress import Progress, silent
from unordinal.settings import PYTHON_ONLY, Checked, Flag, Range

Alphabet = Literal["text8", "chars", "bytes"]
Length = Annotated[int | None, Range(1)]
NumClasses = Annotated[int | None, Range(2)]
SplitSizes = Annotated[str | None, Flag("--data-split", "TRAIN,VAL,TEST")]
Side = Annotated[int | None, Range(2), Flag(metavar="N")]
WHOLE = "0,0,1"  # a split that is all test


@dataclass(frozen=True)
class Source(Checked, ABC):
    """Data by reference: what to read, and how.

    A new kind of data is a subclass in a file of its own, and a line in `unordinal.data.DATASETS`. Its fields are the
    settings of its format; the command line and `fit` offer them for data of this kind only.
    """

    key: ClassVar[str]  # its name in DATASETS
    usage: ClassVar[str]  # how to write it, such as text:PATH
    description: ClassVar[str]
    gives: ClassVar[Shape] = "sequences"  # the shape of its examples
    has_split: ClassVar[bool] = True  # whether it comes with a split of its own; users' files are split as configured

    @property
    def name(self) -> str:
        """The name of the data, which `unordinal.data.source_of` turns into this source again."""
        return self.key

    @property
    def label(self) -> str:
        """A short name for results."""
        return self.name

    @property
    def shape(self) -> Shape:
        """Whether the examples are sequences or maps."""
        return self.gives

    @abstractmethod
    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        """Read the data; what takes long is prepared once and cached.

        Args:
            vocabulary: the vocabulary to encode a text with, usually that of a trained model. By default it follows
                from the settings and from the data.
            progress: receives the progress.
        """

    def moved(self, move: Callable[[str], str]) -> "Source":  # noqa: ARG002
        """Return the source with its path changed by a function, if it has one."""
        return self

    def adapted(self, **values: Any) -> "Source":
        """Return the source with those of the given settings that its format has."""
        known = {field.name for field in dataclasses.fields(self)}
        return dataclasses.replace(self, **{name: value for name, value in values.items() if name in known})

    def for_model(self, spec: DataSpec, own: "Source", split: str | None) -> "Source":
        """Return the source with the settings that a trained model's data have, to be scored by this model.

        Args:
            spec: the description of the data that the model was trained on.
            own: their source.
            split: TRAIN,VAL,TEST; None for the split that the data have.
        """
        height, width = spec.event_shape if spec.is_map else (None, None)
        values: dict[str, Any] = {
            "length": None if spec.is_map else spec.event_shape[0],
            "num_classes": spec.num_classes,
        }
        values |= {"map_height": height, "map_width": width, "levels": spec.levels or None, "flips": False}
        values |= {name: getattr(own, name, None) for name in ("letters", "colours")}
        return self.adapted(**values, split=split)


@dataclass(frozen=True)
class FileSource(Source):
    """Data in a file or folder of the user's."""

    path: Annotated[str, PYTHON_ONLY]
    """The file or folder."""

    has_split: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"{self.key}:{self.path}"

    @property
    def label(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]

    def moved(self, move: Callable[[str], str]) -> Source:
        return dataclasses.replace(self, path=move(self.path))
