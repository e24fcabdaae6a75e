"""Data sets from FASTA files: DNA, RNA or protein sequences with one class per letter."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from unordinal.data.arrays import load_arrays
from unordinal.data.labels import Given, read_labels
from unordinal.data.source import LONGEST, FileSource, LabelFile, Length, Source, SplitSizes
from unordinal.data.spec import DataSpec
from unordinal.data.splits import Data
from unordinal.data.text import TextFile
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Progress, silent

ALLOWED = "ABCDEFGHIJKLMNOPQRSTUVWXYZ*-"  # letters, stop codons and gaps, unless `letters` says otherwise
ENDINGS = (".fasta", ".fa", ".fna", ".faa", ".ffn")


@dataclass(frozen=True)
class FastaSource(FileSource):
    """A FASTA file of the user's.

    Every record is an example, of the length that it has. Records of which one is longer than 4,096 letters are joined
    to one long sequence, unless they all have the same length.
    """

    letters: str | None = None
    """The letters, in order: ACGT, say; default all that occur in the file, in alphabetical order."""
    places: bool = True
    """Treat the positions of records of the same length as aligned sites with a meaning of their own."""
    records: Literal["examples", "joined"] | None = None
    """What records that differ in length are: examples of their own, or joined end to end to one long sequence;
    default joined if one has more than 4,096 letters."""
    length: Length = None
    """Symbols per sequence, if the records are joined; default 256."""
    label_file: LabelFile = None
    """A file with the label of each record, one per line, or a table with a column for each label."""
    split: SplitSizes = None
    """TRAIN,VAL,TEST as fractions that sum to 1 or as counts; default 0.9,0.05,0.05."""

    key: ClassVar[str] = "fasta"
    usage: ClassVar[str] = "fasta:PATH"
    description: ClassVar[str] = "your own DNA, RNA or protein sequences, one class per letter"

    def moved(self, move: Callable[[str], str]) -> Source:
        labels = None if self.label_file is None else move(self.label_file)
        return replace(self, path=move(self.path), label_file=labels)

    def for_model(self, spec: DataSpec, own: Source, split: str | None) -> Source:
        return super().for_model(spec, own, split).adapted(records="examples" if spec.ends else "joined")

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        return load_fasta(self, vocabulary.symbols if vocabulary else self.letters, progress)


def load_fasta(asked: FastaSource, letters: str | None, progress: Progress) -> Data:
    """Load a FASTA file; `FastaSource` describes the settings."""
    file = TextFile.of(Path(asked.path))
    records = read_records(file, progress)
    if not records:
        raise ValueError(f"{file.path} contains no records; expected lines that begin with > and sequences below them")
    lowered = sum(sum(letter.islower() for letter in sequence) for _, sequence in records)
    records = [(name, sequence.upper()) for name, sequence in records]
    found = "".join(sorted({letter for _, sequence in records for letter in sequence}))
    letters = letters or "".join(c for c in found if c in ALLOWED)
    for record, sequence in records:
        if not sequence:
            raise ValueError(f"{file.path}: the record {record!r} has no sequence")
        wrong = next((place for place, letter in enumerate(sequence) if letter not in letters), None)
        if wrong is not None:
            raise ValueError(
                f"{file.path}: the record {record!r} has the letter {sequence[wrong]!r} at position {wrong}; "
                f"expected {letters} (`letters` sets them)"
            )
    known = Vocabulary("chars", letters)
    notes = [f"{lowered} lower-case letters read as capitals"] if lowered else []
    lengths, given = np.array([len(sequence) for _, sequence in records]), Given()
    x = known.encode("".join(sequence for _, sequence in records)).numpy()
    is_long = int(lengths.max()) > LONGEST
    is_joined = len(set(lengths)) > 1 and (is_long if asked.records is None else asked.records == "joined")
    if is_joined:
        notes.append(f"{len(records)} sequences of different lengths, joined end to end; letters {letters}")
    else:
        padded = np.zeros((len(records), int(lengths.max())), np.uint8)
        padded[np.arange(padded.shape[1]) < lengths[:, None]] = x
        x, up_to = padded, "up to " if len(set(lengths)) > 1 else ""
        given = Given({"": lengths} if up_to else {})
        notes.append(f"{len(records)} sequences of {up_to}{x.shape[1]} letters, {letters}")
    if asked.label_file is not None:
        if is_joined:
            raise ValueError("records that are joined end to end have no labels; leave out `labels`")
        given.labels[""] = read_labels(Path(asked.label_file), len(records), str(file.path))
    where, wanted = str(file.path), asked if is_joined else replace(asked, length=None)
    given_too: Any = {"given": given, "letters": letters, "notes": tuple(notes), "where": where, "progress": progress}
    data = load_arrays({"": x}, wanted, **given_too)
    if x.ndim > 1:
        data.name_examples([name for name, _ in records])
    return data


def read_records(file: TextFile, progress: Progress) -> list[tuple[str, str]]:
    """Return the name and the sequence of each record."""
    try:
        text = b"".join(file.blocks(progress, "Reading sequences")).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file.path} is not a FASTA file: it is not text (byte {error.start})") from error
    found: list[tuple[str, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        if words.startswith(">"):
            found.append((words[1:].split(maxsplit=1)[0] if words[1:].split() else f"record {len(found) + 1}", []))
        elif words and not words.startswith(";"):
            if not found:
                raise ValueError(f"{file.path} is not a FASTA file: line {number} comes before any line with >")
            found[-1][1].append("".join(words.split()))
    return [(name, "".join(parts)) for name, parts in found]
