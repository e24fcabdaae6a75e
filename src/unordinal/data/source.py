"""The interface of a source: data by reference, with the settings of their own format."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from unordinal.config import Shape
from unordinal.data.spec import DataSpec
from unordinal.data.splits import Data
from unordinal.data.vocabularies import Vocabulary
from unordinal.names import check_known
from unordinal.progress import Progress, silent
from unordinal.settings import PYTHON_ONLY, Checked, Flag, Range

Alphabet = Annotated[str | None, Flag(metavar="text8|chars|bytes|bpe:N|FILE")]
ALPHABETS = ("text8", "chars", "bytes")
Length = Annotated[int | None, Range(1)]
NumClasses = Annotated[int | tuple[int, ...] | None, Range(1)]
SplitSizes = Annotated[str | None, Flag("--data-split", "TRAIN,VAL,TEST")]
LabelFile = Annotated[str | None, Flag("--labels", "LABELS")]
Side = Annotated[int | None, Range(2), Flag(metavar="N")]
LONGEST = 4096  # symbols of an example that ends early, unless a setting says more
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
    def short_name(self) -> str:
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

    def moved(self, move: Callable[[str], str]) -> "Source":
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
            "num_classes": spec.num_classes if spec.is_map else spec.classes,
            "places": spec.has_places,
        }
        values |= {"map_height": height, "map_width": width, "levels": spec.levels or None, "flips": False}
        values |= {name: getattr(own, name, None) for name in ("letters", "colours")}
        return self.adapted(**values, split=split)


def check_alphabet(alphabet: str | None) -> None:
    """Raise a ValueError if there is no such alphabet."""
    from unordinal.data.tokens import NEW_TOKENS, is_tokens, number_of_tokens

    if alphabet is None:
        return
    if alphabet.startswith(NEW_TOKENS):
        number_of_tokens(alphabet)
    elif not is_tokens(alphabet):
        check_known("alphabet", alphabet, (*ALPHABETS, f"{NEW_TOKENS}1024", "tokenizer.json"))


@dataclass(frozen=True, kw_only=True)
class TextSettings(Source):
    """A base of the sources of texts."""

    alphabet: Alphabet = None
    """How text becomes classes: text8 is a-z and space, chars is all characters of the text, bytes is all 256; default
    the first of these that fits. bpe:1024 learns 1,024 byte-pair tokens from the training split; a file tokenizer.json
    holds tokens that were learned before."""
    length: Length = None
    """Symbols per sequence; default 256 characters, or 128 tokens."""
    split: SplitSizes = None
    """TRAIN,VAL,TEST as fractions that sum to 1 or as counts; default that of the data set, or 0.9,0.05,0.05."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alphabet(self.alphabet)


@dataclass(frozen=True, kw_only=True)
class ArraySettings(Source):
    """A base of the sources of arrays."""

    num_classes: NumClasses = None
    """Number of classes, or of each column: 2 5 3, say; default what the file says, or the largest class + 1."""
    letters: str | None = None
    """What the classes are called, in order: ACGT, say."""
    places: bool = True
    """Treat the positions of rows as places with a meaning of their own, such as columns of a table or aligned sites,
    and not as neighbours, as in a text. Has no effect on one long sequence, on maps, and on rows that end early."""
    length: Length = None
    """Symbols per sequence, if the array is one long sequence; default 256."""
    split: SplitSizes = None
    """TRAIN,VAL,TEST as fractions that sum to 1 or as counts; default 0.9,0.05,0.05."""
    flips: bool = False
    """Mirror maps left to right at random, in training only."""


@dataclass(frozen=True, kw_only=True)
class MapSettings(Source):
    """A base of the sources of maps that can have any even size."""

    map_height: Annotated[int, Range(2), Flag("--height")] = 32
    """Rows of a map."""
    map_width: Annotated[int, Range(2), Flag("--width")] = 64
    """Columns of a map."""
    flips: bool = False
    """Mirror training maps left to right at random."""

    gives: ClassVar[Shape] = "maps"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("map_height", "map_width"):
            if getattr(self, name) % 2:
                raise ValueError(f"`{name}` must be even and at least 2, got {getattr(self, name)}")


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
    def short_name(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]

    def moved(self, move: Callable[[str], str]) -> Source:
        return dataclasses.replace(self, path=move(self.path))
