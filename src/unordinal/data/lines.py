"""Data sets of lines: every line of a text file, or every text of a column or a list, is an example of its own."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from unordinal.data.arrays import load_arrays
from unordinal.data.labels import Given, checked_number, named_labels, read_labels
from unordinal.data.source import LONGEST, WHOLE, Alphabet, LabelFile, Length, Source, SplitSizes, check_alphabet
from unordinal.data.spec import MAX_CHARACTERS, DataSpec, smallest_type
from unordinal.data.splits import DEFAULT_SPLIT, Data, split_sizes
from unordinal.data.tables import TableSource, is_table
from unordinal.data.text import TextFile, decoded
from unordinal.data.tokens import TokenVocabulary, is_tokens, token_vocabulary
from unordinal.data.vocabularies import TEXT8_SYMBOLS, Vocabulary, points_of
from unordinal.names import check_known, counted
from unordinal.progress import Progress, silent
from unordinal.settings import PYTHON_ONLY, Flag, Seed

LARGEST = 1 << 32  # symbols of all lines, if all were as long as the longest


@dataclass(frozen=True, kw_only=True)
class LineSettings(Source):
    """A base of the sources of lines."""

    alphabet: Alphabet = None
    """How text becomes classes: text8, chars or bytes, default the first of these that fits; bpe:1024 learns 1,024
    byte-pair tokens from the training lines; or a file tokenizer.json."""
    length: Length = None
    """Symbols of the longest line that is accepted; default that of the longest line there is."""
    cut: bool = False
    """Cut longer lines at this length, instead of refusing them."""
    split: SplitSizes = None
    """TRAIN,VAL,TEST as fractions that sum to 1 or as counts of lines; default 0.9,0.05,0.05."""
    shuffle: bool = True
    """Shuffle the lines before they are split."""
    shuffle_seed: Seed = 0
    """Seed of the shuffling."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alphabet(self.alphabet)

    @abstractmethod
    def read(self, progress: Progress) -> tuple[list[str], dict[str, np.ndarray]]:
        """Return the texts, and their labels by name."""

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        return load_lines(*self.read(progress), self, vocabulary)

    def for_model(self, spec: DataSpec, own: Source, split: str | None) -> Source:
        cut = self.cut or getattr(own, "cut", False)
        return replace(self, length=spec.event_shape[0], split=split, cut=cut, shuffle=split != WHOLE and self.shuffle)


@dataclass(frozen=True)
class LinesSource(LineSettings):
    """Texts of different lengths: the lines of a file, the texts of a column of a table, or a list in Python."""

    path: Annotated[str, PYTHON_ONLY] = ""
    """The file."""
    texts: Annotated[Any, PYTHON_ONLY] = None
    """The texts, in Python."""
    given_labels: Annotated[Any, PYTHON_ONLY] = None
    """Labels in Python: (N,) or (N, J) integers or texts, or a dict of such arrays by name."""
    column: str | None = None
    """The column of a table that holds the texts."""
    label_column: Annotated[tuple[str, ...], Flag(metavar="COLUMN")] = ()
    """Columns of the table that hold labels, which are given with the texts."""
    label_file: LabelFile = None
    """A file with the label of each line, one per line, or a table with a column for each label."""

    key: ClassVar[str] = "lines"
    usage: ClassVar[str] = "lines:PATH"
    description: ClassVar[str] = "your own lines, each an example: names, SMILES, log lines; or --column of a table"
    has_split: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.label_column and self.column is None:
            raise ValueError(
                "`label_column` names columns of a table; give `column`, the one that holds the texts, too"
            )

    @property
    def name(self) -> str:
        return f"{self.key}:{self.path}" if self.path else self.key

    @property
    def short_name(self) -> str:
        return Path(self.path).name if self.path else "the texts"

    def moved(self, move: Callable[[str], str]) -> Source:
        labels = None if self.label_file is None else move(self.label_file)
        return replace(self, path=move(self.path) if self.path else "", label_file=labels)

    def for_model(self, spec: DataSpec, own: Source, split: str | None) -> Source:
        source = super().for_model(spec, own, split)
        if not (isinstance(own, LinesSource) and self.path and is_table(Path(self.path))):
            return source
        return source.adapted(column=self.column or own.column, label_column=self.label_column or own.label_column)

    def read(self, progress: Progress) -> tuple[list[str], dict[str, np.ndarray]]:
        labels: dict[str, np.ndarray] = {}
        if self.texts is not None:
            texts = [str(text) for text in self.texts]
        elif not self.path:
            raise ValueError("these data were texts in Python, which are not here any more")
        elif self.column is None and not is_table(Path(self.path)):
            texts = read_lines(TextFile.of(Path(self.path)), progress)
        elif self.column is None:
            raise ValueError(f"{self.path} is a table; name the column that holds the texts with `column`")
        else:
            frame = TableSource(path=self.path, missing=()).read()
            for name in (self.column, *self.label_column):
                check_known("column", name, [str(known) for known in frame.columns])
            texts = frame[self.column].fillna("").astype(str).tolist()
            labels = {name: frame[name].fillna("").astype(str).to_numpy(object) for name in self.label_column}
        if self.label_file is not None:
            labels |= read_labels(Path(self.label_file), len(texts), self.short_name)
        named = self.given_labels if isinstance(self.given_labels, dict) else {"": self.given_labels}
        for name, values in named.items():
            if values is not None:
                found = checked_number(values, texts, f"label_{name}" if name else "labels", "the texts")
                labels |= named_labels(f"label_{name}", found)
        return texts, labels


def read_lines(file: TextFile, progress: Progress = silent) -> list[str]:
    """Return the lines of a text file; a newline at the end begins no new line."""
    text = "".join(decoded(file.blocks(progress, "Reading the lines"), file.path)).removeprefix("\ufeff")
    if not text:
        raise ValueError(f"{file.path} is empty; expected one example per line")
    return text.removesuffix("\n").removesuffix("\r").replace("\r\n", "\n").split("\n")


def vocabulary_of(texts: Sequence[str], alphabet: str | None) -> Vocabulary:
    """Return the vocabulary of an alphabet; without one, of the first of text8, chars and bytes that fits the texts."""
    if alphabet is not None and is_tokens(alphabet):
        return token_vocabulary(alphabet, texts)
    if alphabet == "text8":
        return Vocabulary.text8()
    seen = "".join(sorted(set().union(*texts)))
    if alphabet == "bytes" or (alphabet is None and len(seen) > MAX_CHARACTERS):
        return Vocabulary.bytes()
    if len(seen) > MAX_CHARACTERS:
        raise ValueError(f"there are more than {MAX_CHARACTERS} different characters; use `alphabet` bytes")
    if alphabet is None and " " in seen and set(seen) <= set(TEXT8_SYMBOLS):
        return Vocabulary.text8()
    return Vocabulary("chars", seen)


def encoded(texts: Sequence[str], vocabulary: Vocabulary, where: str) -> list[np.ndarray]:
    """Return the classes of every text; raise a ValueError that names the line of an unknown character."""
    if isinstance(vocabulary, TokenVocabulary):
        return [vocabulary.encode_text(text) for text in texts]
    if vocabulary.kind == "bytes":
        return [np.frombuffer(text.encode(), np.uint8) for text in texts]
    try:
        classes = vocabulary.encode_points(points_of("".join(texts)), 0)
    except ValueError:
        for number, text in enumerate(texts, start=1):
            try:
                vocabulary.encode_points(points_of(text), 0)
            except ValueError as error:
                raise ValueError(f"{where}, line {number}: {error}") from error
        raise
    return np.split(classes, np.cumsum([len(text) for text in texts])[:-1])


def load_lines(texts: list[str], labels: dict[str, np.ndarray], asked: LineSettings, given: Vocabulary | None) -> Data:
    """Make a data set of texts; `LineSettings` describes the settings."""
    where = getattr(asked, "path", "") or asked.short_name
    if texts and not any(texts):
        raise ValueError(f"{where}: all lines are empty; there is nothing to learn")
    if not texts:
        raise ValueError(f"{where}: there are no lines; expected one example per line")
    order = (
        np.random.default_rng(asked.shuffle_seed).permutation(len(texts)) if asked.shuffle else np.arange(len(texts))
    )
    sizes = split_sizes(DEFAULT_SPLIT if asked.split is None else asked.split, len(texts), "lines")
    vocabulary = given or vocabulary_of([texts[row] for row in order[: sizes[0]]], asked.alphabet)
    if given is None and vocabulary.kind == "chars":  # all characters are known, wherever they occur
        vocabulary = vocabulary_of(texts, asked.alphabet)
    rows = encoded(texts, vocabulary, where)
    lengths = np.array([len(row) for row in rows])
    length = checked_length(lengths, asked, where)
    num_cut = int((lengths > length).sum())
    lengths = lengths.clip(max=length)
    x = np.zeros((len(rows), max(1, length)), smallest_type(len(vocabulary) + 1))
    for number, row in enumerate(rows):
        x[number, : lengths[number]] = row[:length]
    about = Given(
        {"": lengths[order]}, {"": {name: values[order] for name, values in labels.items()}} if labels else {}
    )
    notes = [f"{counted(len(texts), 'line')} of up to {length} symbols, {vocabulary.description}"]
    if num_cut:
        notes.append(f"{counted(num_cut, 'line')} cut at {length} symbols")
    if not lengths.all():
        notes.append(f"{counted(int((lengths == 0).sum()), 'line')} without symbols")
    if isinstance(vocabulary, TokenVocabulary):
        notes.append(f"tokens of {vocabulary.widths[np.concatenate(rows).astype(int)].mean():.2f} characters each")
    asked = replace(asked, length=None)
    data = load_arrays({"": x[order]}, asked, given=about, num_classes=len(vocabulary), notes=tuple(notes), where=where)
    for part in (data.train, data.val, data.test):
        part.widths = vocabulary.widths
    if not asked.shuffle:
        data.name_examples([f"line {number}" for number in range(1, len(texts) + 1)])
    return replace(data, spec=replace(data.spec, vocabulary=vocabulary))


def checked_length(lengths: np.ndarray, asked: LineSettings, where: str) -> int:
    """Return the number of symbols of the longest line; raise a ValueError for a line that is too long."""
    line, most = int(lengths.argmax()), asked.length or LONGEST
    longest = int(lengths[line])
    if longest > most and not (asked.cut and asked.length):
        limit = f"`length` is {most:,}" if asked.length else f"lines of more than {LONGEST:,} need a `length`"
        advice = "give a larger one, or cut longer lines with `cut`"
        raise ValueError(f"{where}: line {line + 1:,} has {longest:,} symbols, but {limit}; {advice}")
    length = max(1, min(longest, most) if asked.length is None or asked.cut else most)
    if len(lengths) * length > LARGEST:
        raise ValueError(
            f"{where}: {len(lengths):,} lines of up to {length:,} symbols are too large; give `length` and `cut`"
        )
    return length
