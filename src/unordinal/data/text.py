"""Data sets from text files, plain or compressed, which are read in blocks so that they may be larger than memory."""

import bz2
import codecs
import gzip
import lzma
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from unordinal.data.source import Alphabet, FileSource, TextSettings
from unordinal.data.spec import MAX_CHARACTERS, DataSpec
from unordinal.data.splits import DEFAULT_SPLIT, Data, cut, split_sizes
from unordinal.data.storage import stored_symbols
from unordinal.data.tokens import TokenVocabulary, is_tokens
from unordinal.data.unpacking import check_unpacked, checked_archive
from unordinal.data.vocabularies import TEXT8_SYMBOLS, Vocabulary, points_of
from unordinal.progress import Progress, silent

BLOCK_BYTES = 1 << 22
DEFAULT_LENGTH = 256
READ_AHEAD, FEWEST_LINES, LONGEST_LINE = 1 << 16, 50, 200  # what a list of lines is recognised by
NEWLINE = ord("\n")


@dataclass(frozen=True)
class TextFile:
    """A text file, and a key that changes whenever the file does."""

    path: Path
    key: dict[str, Any]

    @staticmethod
    def of(path: Path) -> "TextFile":
        """Return the text file at a path; raise a ValueError if there is none."""
        path = path.expanduser().resolve()
        if not path.exists():
            raise ValueError(f"there is no file {path}; expected a text file, plain or .gz, .xz, .bz2, .zip")
        if path.is_dir():
            raise ValueError(f"{path} is a folder; expected a text file, plain or .gz, .xz, .bz2, .zip")
        status = path.stat()
        return TextFile(path, {"path": str(path), "bytes": status.st_size, "changed": status.st_mtime_ns})

    def blocks(self, progress: Progress, what: str) -> Iterator[bytes]:
        """Yield the uncompressed bytes in blocks; progress counts the bytes read from disk, described by `what`."""
        with self.path.open("rb") as raw, progress(what, self.path.stat().st_size) as advance:
            before, done, packed = 0, 0, self.path.stat().st_size
            try:
                with open_uncompressed(raw, self.path) as text:
                    while block := text.read(BLOCK_BYTES):
                        done += len(block)
                        if text is not raw:
                            check_unpacked(done, packed, self.path)
                        yield block
                        advance(raw.tell() - before)
                        before = raw.tell()
            except (lzma.LZMAError, zlib.error, zipfile.BadZipFile, EOFError, RuntimeError, MemoryError) as error:
                raise ValueError(f"{self.path} is not a whole {self.path.suffix} file: {error}") from error
            except OSError as error:  # gzip and bz2 raise it, without errno, for damaged data
                if error.errno is not None:
                    raise
                raise ValueError(f"{self.path} is not a whole {self.path.suffix} file: {error}") from error


def open_uncompressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    """Return the uncompressed stream of a file, whose compression follows from its ending."""
    match path.suffix.lower():
        case ".gz":
            return gzip.open(raw)  # type: ignore[return-value]
        case ".xz":
            return lzma.open(raw)
        case ".bz2":
            return bz2.open(raw)
        case ".zip":
            archive = checked_archive(zipfile.ZipFile(raw), path.stat().st_size, path)
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) != 1:
                raise ValueError(f"{path} contains {len(names)} files; expected exactly one text file")
            return archive.open(names[0])
    return raw


def decoded(blocks: Iterator[bytes], path: Path) -> Iterator[str]:
    """Yield the text of UTF-8 blocks."""
    decoder, done = codecs.getincrementaldecoder("utf-8")(), 0
    for block in blocks:
        try:
            yield decoder.decode(block)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is not UTF-8 text (byte {done + error.start} or just before); use `alphabet` bytes"
            ) from error
        done += len(block)
    if decoder.getstate()[0]:
        raise ValueError(f"{path} ends inside a UTF-8 character; use `alphabet` bytes")


def code_points(blocks: Iterator[bytes], *, as_bytes: bool, path: Path) -> Iterator[np.ndarray]:
    """Yield the Unicode code points of UTF-8 blocks as uint32, or with `as_bytes` their bytes as uint8."""
    if as_bytes:
        return (np.frombuffer(block, np.uint8) for block in blocks)
    return map(points_of, decoded(blocks, path))


def strip_final_newlines(blocks: Iterator[np.ndarray], dropped: list[int]) -> Iterator[np.ndarray]:
    """Yield the code points without the newlines at the end of the text, whose number is appended to `dropped`."""
    held = np.zeros(0, np.uint32)
    for block in blocks:
        inside = np.flatnonzero(block != NEWLINE)
        if inside.size == 0:
            held = np.concatenate([held, block])
            continue
        end = int(inside[-1]) + 1
        yield np.concatenate([held, block[:end]]) if held.size else block[:end]
        held = block[end:]
    dropped.append(held.size)


def vocabulary_of(file: TextFile, alphabet: Alphabet, progress: Progress) -> Vocabulary:
    """Return the vocabulary of an alphabet; without one, of the first of text8, chars and bytes that fits the file.

    Newlines at the end of the file are not part of the vocabulary, unless `alphabet` is chars. The characters are
    sorted by code point.
    """
    if alphabet == "text8":
        return Vocabulary.text8()
    if alphabet == "bytes":
        return Vocabulary.bytes()
    is_seen, num_seen = np.zeros(sys.maxunicode + 1, bool), 0
    found = code_points(file.blocks(progress, "Finding the characters"), as_bytes=False, path=file.path)
    for block in found if alphabet == "chars" else strip_final_newlines(found, []):
        is_seen[block] = True
        num_seen = int(is_seen.sum())
        if num_seen > MAX_CHARACTERS and alphabet is None:
            return Vocabulary.bytes()
        if num_seen > MAX_CHARACTERS:
            raise ValueError(
                f"{file.path} has more than {MAX_CHARACTERS} different characters; use `alphabet` bytes (256 classes)"
            )
    seen = "".join(chr(point) for point in np.flatnonzero(is_seen))  # sorted by code point
    if alphabet is None and set(seen) <= set(TEXT8_SYMBOLS):
        return Vocabulary.text8()
    return Vocabulary("chars", seen)


def looks_like_lines(file: TextFile) -> bool:
    """Return whether a text looks like a list: many short lines, few of which end like a sentence or a verse."""
    start = next(file.blocks(silent, "Reading"), b"")[:READ_AHEAD].decode("utf-8", errors="replace")
    lines = start.split("\n")[:-1]
    if len(lines) < FEWEST_LINES or max(map(len, lines)) > LONGEST_LINE:
        return False
    ends = sum(line.rstrip().endswith((".", ",", ";", ":", "!", "?", "-")) or not line.strip() for line in lines)
    return ends < len(lines) / 20


@dataclass(frozen=True)
class TextSource(FileSource, TextSettings):
    """A text file of the user's."""

    key: ClassVar[str] = "text"
    usage: ClassVar[str] = "text:PATH"
    description: ClassVar[str] = "your own text file: plain, .gz, .xz, .bz2 or .zip (alphabet text8, chars or bytes)"

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        return load_text(TextFile.of(Path(self.path)), self, vocabulary=vocabulary, progress=progress)


def load_text(
    file: TextFile,
    asked: TextSettings,
    *,
    vocabulary: Vocabulary | None = None,
    progress: Progress = silent,
    official_split: str = DEFAULT_SPLIT,
) -> Data:
    """Load a text: encode it the first time, and cut it into train, val and test.

    Newlines at the end of the text are dropped if the vocabulary has no newline, which is said in the notes.

    Args:
        file: the text file.
        asked: the settings.
        vocabulary: the vocabulary of a trained model; by default it follows from the alphabet or from the text.
        progress: receives the progress of encoding.
        official_split: the split to use if there is no other.

    Returns:
        The data set with its splits.
    """
    if file.path.stat().st_size == 0:
        raise ValueError(f"{file.path} is empty")
    given, alphabet, length = vocabulary, asked.alphabet, asked.length or DEFAULT_LENGTH
    if isinstance(given, TokenVocabulary) or (given is None and is_tokens(alphabet)):
        from unordinal.data.tokenized import load_tokens

        return load_tokens(file, asked, given, official_split, progress)
    found: list[Vocabulary] = []
    dropped: list[int] = []

    def encoded() -> Iterator[np.ndarray]:
        vocabulary = given or vocabulary_of(file, alphabet, progress)
        found.append(vocabulary)
        blocks = code_points(
            file.blocks(progress, "Preparing the text"), as_bytes=vocabulary.kind == "bytes", path=file.path
        )
        if vocabulary.symbols and "\n" not in vocabulary.symbols:
            blocks = strip_final_newlines(blocks, dropped)
        position = 0
        try:
            for block in blocks:
                yield vocabulary.encode_points(block, position)
                position += len(block)
        except ValueError as error:
            raise ValueError(f"{file.path}: {error}" if str(file.path) not in str(error) else str(error)) from error

    def described() -> dict[str, Any]:
        return {"kind": found[0].kind, "symbols": found[0].symbols, "dropped": sum(dropped)}

    key = {**file.key, "alphabet": alphabet, "symbols": given.symbols if given else None}
    key["kind"] = given.kind if given else None
    symbols, stored = stored_symbols(key, encoded, described)
    if len(symbols) == 0:
        raise ValueError(f"{file.path} contains no text")
    if len(symbols) < length:
        raise ValueError(f"{file.path} has {len(symbols)} symbols, shorter than one sequence of {length}")
    sizes = split_sizes(official_split if asked.split is None else asked.split, len(symbols), "symbols")
    train, val, test = cut(symbols, sizes, length)
    vocabulary = Vocabulary(stored["kind"], stored["symbols"])
    unused = len(symbols) - sum(sizes)
    notes = [f"{unused} symbols after the test split are not used"] if unused else []
    if given is None and isinstance(asked, FileSource) and looks_like_lines(file):
        notes.append("its lines are short and no sentences; --lines takes each of them as an example of its own")
    if given is None and alphabet is None:
        notes.insert(0, f"read as text, alphabet {vocabulary.description}")
    if stored["dropped"]:
        notes.append(f"{stored['dropped']} newline{'s' if stored['dropped'] > 1 else ''} at the end dropped")
    return Data(
        spec=DataSpec(asked.name, len(vocabulary), (length,), vocabulary, stored["sha256"], sizes),
        train=train,
        val=val,
        test=test,
        notes=tuple(notes),
    )
