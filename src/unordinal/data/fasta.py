"""Data sets from FASTA files: DNA, RNA or protein sequences with one class per letter."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from unordinal.data.arrays import load_arrays
from unordinal.data.source import FileSource, Length, SplitSizes
from unordinal.data.splits import Data
from unordinal.data.text import TextFile
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Progress, silent

ALLOWED = "ABCDEFGHIJKLMNOPQRSTUVWXYZ*-"  # letters, stop codons and gaps, unless `letters` says otherwise
ENDINGS = (".fasta", ".fa", ".fna", ".faa", ".ffn")


@dataclass(frozen=True)
class FastaSource(FileSource):
    """A FASTA file of the user's.

    If all records have the same length, each is an example; otherwise they are joined to one long sequence.
    """

    letters: str | None = None
    """The letters, in order: ACGT, say; default all that occur in the file, in alphabetical order."""
    places: bool = True
    """Treat the positions of records of the same length as aligned sites with a meaning of their own."""
    length: Length = None
    """Symbols per sequence, if the records have different lengths; default 256."""
    split: SplitSizes = None
    """TRAIN,VAL,TEST as fractions that sum to 1 or as counts; default 0.9,0.05,0.05."""

    key: ClassVar[str] = "fasta"
    usage: ClassVar[str] = "fasta:PATH"
    description: ClassVar[str] = "your own DNA, RNA or protein sequences, one class per letter"

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
    if len({len(sequence) for _, sequence in records}) == 1:
        array = np.stack([known.encode(sequence).numpy() for _, sequence in records])
        notes.append(f"{len(records)} sequences of {array.shape[1]} letters, {letters}")
    else:
        array = known.encode("".join(sequence for _, sequence in records)).numpy()
        notes.append(f"{len(records)} sequences of different lengths, joined end to end; letters {letters}")
    where = str(file.path)
    data = load_arrays({"": array}, asked, letters=letters, notes=tuple(notes), where=where, progress=progress)
    if array.ndim > 1:
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
