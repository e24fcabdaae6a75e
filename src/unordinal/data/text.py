"""Text as a stream of classes: any file, compressed or not, read block by block so that its size does not matter."""

import bz2
import codecs
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from unordinal.config import DataConfig
from unordinal.data.spec import MAX_CLASSES, DataSpec, Vocabulary, points_of
from unordinal.data.splits import DEFAULT_SPLIT, Data, cut, split_sizes
from unordinal.data.storage import stored_symbols
from unordinal.progress import Progress

BLOCK_BYTES = 1 << 22
DEFAULT_LENGTH = 256


@dataclass(frozen=True)
class TextFile:
    """A file on disk whose text is wanted, and what identifies that text."""

    path: Path
    key: dict[str, Any]

    @staticmethod
    def of(path: Path) -> "TextFile":
        path = path.expanduser().resolve()
        if not path.exists():
            raise ValueError(f"no file {path}; expected a text, plain or .gz, .xz, .bz2, .zip")
        if path.is_dir():
            raise ValueError(f"{path} is a folder; expected a text, plain or .gz, .xz, .bz2, .zip")
        status = path.stat()
        return TextFile(path, {"path": str(path), "bytes": status.st_size, "changed": status.st_mtime_ns})

    def blocks(self, progress: Progress, what: str) -> Iterator[bytes]:
        """The uncompressed bytes, a few megabytes at a time; progress counts bytes of the file on disk."""
        with self.path.open("rb") as raw, progress(what, self.path.stat().st_size) as advance:
            before = 0
            try:
                with opened(raw, self.path) as text:
                    while block := text.read(BLOCK_BYTES):
                        yield block
                        advance(raw.tell() - before)
                        before = raw.tell()
            except (lzma.LZMAError, zlib.error, zipfile.BadZipFile, EOFError, RuntimeError) as error:
                raise ValueError(f"{self.path} is not a whole {self.path.suffix} file: {error}") from error
            except OSError as error:  # gzip and bz2 say so for bad data
                if error.errno is not None:
                    raise
                raise ValueError(f"{self.path} is not a whole {self.path.suffix} file: {error}") from error


def opened(raw: IO[bytes], path: Path) -> IO[bytes]:
    """The uncompressed stream, by the file's ending."""
    match path.suffix.lower():
        case ".gz":
            return gzip.open(raw)  # type: ignore[return-value]
        case ".xz":
            return lzma.open(raw)
        case ".bz2":
            return bz2.open(raw)
        case ".zip":
            archive = zipfile.ZipFile(raw)
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) != 1:
                raise ValueError(f"{path} holds {len(names)} files; expected exactly one text")
            return archive.open(names[0])
    return raw


def points(blocks: Iterator[bytes], *, as_bytes: bool, path: Path) -> Iterator[np.ndarray]:
    """Code points of UTF-8 blocks, or their bytes: arrays of uint32 or uint8."""
    if as_bytes:
        yield from (np.frombuffer(block, np.uint8) for block in blocks)
        return
    decoder, done = codecs.getincrementaldecoder("utf-8")(), 0
    for block in blocks:
        try:
            yield points_of(decoder.decode(block))
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is not UTF-8 text (byte {done + error.start} or just before); use `alphabet` bytes"
            ) from error
        done += len(block)
    if decoder.getstate()[0]:
        raise ValueError(f"{path} ends inside a UTF-8 character; use `alphabet` bytes")


def vocabulary_of(file: TextFile, alphabet: str, progress: Progress) -> Vocabulary:
    """The alphabet asked for; `chars` are the distinct characters of the file, in code point order."""
    if alphabet == "text8":
        return Vocabulary.text8()
    if alphabet == "bytes":
        return Vocabulary.bytes()
    seen: set[int] = set()
    blocks = file.blocks(progress, "Finding the characters")
    for block in points(blocks, as_bytes=False, path=file.path):
        seen.update(np.unique(block).tolist())
        if len(seen) > MAX_CLASSES:
            raise ValueError(
                f"{file.path} has more than {MAX_CLASSES} different characters; use `alphabet` bytes (256 classes)"
            )
    return Vocabulary("chars", "".join(chr(p) for p in sorted(seen)))


def load_text(
    file: TextFile,
    config: DataConfig,
    progress: Progress,
    *,
    vocabulary: Vocabulary | None = None,
    official_split: str | None = None,
) -> Data:
    """Encode a text (once) and cut it into train, val and test.

    `vocabulary` is a trained model's, where there is one; otherwise it follows from `config.alphabet`.
    """
    if file.path.stat().st_size == 0:
        raise ValueError(f"{file.path} is empty")
    alphabet = vocabulary.kind if vocabulary else (config.alphabet or "chars")
    given = vocabulary
    found: list[Vocabulary] = []

    def encoded() -> Iterator[np.ndarray]:
        vocabulary = given or vocabulary_of(file, alphabet, progress)
        found.append(vocabulary)
        position = 0
        try:
            for block in points(
                file.blocks(progress, "Preparing the text"), as_bytes=alphabet == "bytes", path=file.path
            ):
                yield vocabulary.encode_points(block, position)
                position += len(block)
        except ValueError as error:
            raise ValueError(f"{file.path}: {error}" if str(file.path) not in str(error) else str(error)) from error

    key = {**file.key, "alphabet": alphabet, "symbols": given.symbols if given else None}
    symbols, notes = stored_symbols(key, encoded, lambda: {"symbols": found[0].symbols})
    if len(symbols) == 0:
        raise ValueError(f"{file.path} holds no text")
    length = config.length or DEFAULT_LENGTH
    if len(symbols) < length:
        raise ValueError(f"{file.path} has {len(symbols)} symbols, shorter than one sequence of {length}")
    sizes = split_sizes(
        official_split or DEFAULT_SPLIT if config.split is None else config.split, len(symbols), "symbols"
    )
    train, val, test = cut(symbols, sizes, length)
    vocabulary = Vocabulary(alphabet, notes["symbols"])
    if config.num_classes not in (None, len(vocabulary)):
        raise ValueError(f"{file.path} has {len(vocabulary)} symbols; `num_classes` {config.num_classes} is for arrays")
    unused = len(symbols) - sum(sizes)
    return Data(
        spec=DataSpec(config.name, len(vocabulary), (length,), vocabulary, notes["sha256"], sizes),
        train=train,
        val=val,
        test=test,
        notes=(f"{unused} symbols after the test split are not used",) if unused else (),
    )
