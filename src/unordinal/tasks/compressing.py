"""Compress files losslessly with a model's own probabilities, and restore them: the bits of a score made real."""

import copy
import hashlib
import platform
import zlib
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel
from unordinal.settings import PYTHON_ONLY, Range, Request
from unordinal.tasks.archive import DAMAGED, Header, packed, side_packed, side_unpacked, unpacked
from unordinal.tasks.coding import coder_package, read, written
from unordinal.tasks.layouts import Laid, kind_of, laid_out, written_back

CHUNK_SYMBOLS = 16_384  # symbols of a chunk, about
MOST_BYTES = 1 << 28  # of a file


@dataclass(frozen=True)
class Compress(Request):
    """Compress a file losslessly with a model's own probabilities."""

    data: Annotated[Any, PYTHON_ONLY]
    """The contents of the file."""
    name: str = "data"
    """The name of the file, for messages and for `decompress`."""
    calls: Annotated[int | None, Range(1)] = None
    """For a diffusion: network calls for each example; more make smaller files. Default 64."""


@dataclass(frozen=True)
class Decompress(Request):
    """Restore a file that `compress` made."""

    archive: Annotated[Any, PYTHON_ONLY]
    """The contents of the archive."""
    name: str = "the archive"
    """Its name, for messages."""


@dataclass(frozen=True)
class Compressed:
    """A compressed file.

    Args:
        archive: the archive.
        size: the size of the file in bytes.
        bits: the bits of the coded examples under the model.
        coded_bytes: the bytes of the coded examples.
        side_bytes: the bytes of what the model's classes cannot express.
        num_outside: how many symbols, lines or cells that is.
        is_identical: whether the restored file is the same byte for byte; a table is the same cell by cell.
    """

    archive: bytes
    size: int
    bits: float
    coded_bytes: int
    side_bytes: int
    num_outside: int
    is_identical: bool


def compress(
    model: CategoricalModel, spec: DataSpec, asked: Compress, *, run: str = "", checksum: str = ""
) -> Compressed:
    """Compress a file, and restore it again to be sure.

    Args:
        model: a model with `visits`.
        spec: the description of its data.
        asked: the request.
        run: what the user called the run, for the header.
        checksum: the checksum of its weights, for the header.
    """
    coder = coding_model(model, asked.calls)
    if len(asked.data) > MOST_BYTES:
        raise ValueError(f"{asked.name} has {len(asked.data):,} bytes; at most {MOST_BYTES:,} are compressed at a time")
    laid = laid_out(asked.data, spec, asked.name)
    side, side_size = side_packed(laid.side)
    restored = written_back(laid, spec)
    if restored != asked.data and laid.kind != "table":
        raise ValueError(f"{asked.name} cannot be restored byte for byte from the classes of {spec.name}")
    step = max(1, CHUNK_SYMBOLS // model.event_shape.numel())
    header = Header(
        kind=laid.kind,
        name=asked.name,
        size=len(restored),
        sha256=hashlib.sha256(restored).hexdigest(),
        run=run,
        model=checksum,
        made_by=versions(),
        facts=laid.facts,
        calls=asked.calls,
        num_rows=len(laid.rows),
        last_size=laid.last_size,
        chunk_rows=step,
        side_size=side_size,
    )
    parts, chunks, bits = [side], [(len(side), zlib.crc32(side))], 0.0
    with asked.progress("Compressing", 2 * len(laid.rows)) as advance:
        for begin in range(0, len(laid.rows), step):
            rows = torch.from_numpy(laid.rows[begin : begin + step].astype(np.int64))
            sizes = sizes_of(header, begin, model)
            data, some = written(coder, rows, sizes, asked.calls)
            advance(len(rows))
            if not torch.equal(marked(read(coder, data, sizes, asked.calls), sizes), marked(rows, sizes)):
                raise RuntimeError("what was compressed could not be read back; please report this")
            advance(len(rows))
            parts.append(data)
            chunks.append((len(data), chunk_checksum(data, rows, sizes)))
            bits += some
    archive = packed(replace(header, chunks=tuple(chunks)), parts)
    coded = sum(map(len, parts[1:]))
    is_identical = restored == asked.data
    return Compressed(archive, len(asked.data), bits, coded, len(side), laid.num_outside, is_identical)


def decompress(model: CategoricalModel, spec: DataSpec, asked: Decompress, *, checksum: str = "") -> bytes:
    """Restore the file of an archive; raise a ValueError if it cannot be restored exactly.

    Args:
        model: the model that it was compressed with.
        spec: the description of its data.
        asked: the request.
        checksum: the checksum of the model's weights.
    """
    header, (side, *parts) = unpacked(asked.archive, asked.name)
    if header.model != checksum or header.kind != kind_of(spec):
        raise ValueError(f"{asked.name} was compressed with another model, {header.run or 'without a name'}; give that")
    if zlib.crc32(side) != header.chunks[0][1]:
        raise ValueError(f"{asked.name}: {DAMAGED}: what the model cannot write is altered")
    coder = coding_model(model, header.calls)
    rows, begin = [], 0
    with asked.progress("Decompressing", header.num_rows) as advance:
        for data, (_, expected) in zip(parts, header.chunks[1:], strict=True):
            sizes = sizes_of(header, begin, model)
            found = read_safely(coder, data, sizes, header, asked.name, begin)
            if chunk_checksum(data, found, sizes) != expected:
                raise ValueError(explained(header, asked.name, begin))
            rows.append(found.numpy().astype(np.uint32))
            begin += len(sizes)
            advance(len(sizes))
    try:
        whole = np.concatenate(rows) if rows else np.zeros((0, *spec.event_shape), np.uint32)
        known = side_unpacked(side, header.side_size)
        restored = written_back(Laid(header.kind, whole, header.last_size, known, facts=header.facts), spec)
    except Exception as error:  # whatever an altered archive causes
        raise ValueError(f"{asked.name}: {DAMAGED}") from error
    if hashlib.sha256(restored).hexdigest() != header.sha256:
        raise ValueError(f"{asked.name}: {DAMAGED}: the restored file has another checksum")
    return restored


def read_safely(coder: CategoricalModel, data: bytes, sizes: Tensor, header: Header, where: str, begin: int) -> Tensor:
    """Read a chunk; whatever goes wrong in a damaged one is a ValueError."""
    try:
        return read(coder, data, sizes, header.calls)
    except Exception as error:
        raise ValueError(explained(header, where, begin)) from error


def explained(header: Header, where: str, begin: int) -> str:
    """Return why a chunk cannot be read: it is damaged, or this machine computes other probabilities."""
    other = [f"{name} {value}" for name, value in header.made_by.items() if versions().get(name) != value]
    if other:
        return f"{where}: the examples from {begin:,} on cannot be read here; it was made with {', '.join(other)}"
    return f"{where}: {DAMAGED}: the examples from {begin:,} on cannot be read"


def coding_model(model: CategoricalModel, calls: int | None) -> CategoricalModel:
    """Return a copy of a model that computes in float64 on the CPU; raise a ValueError if it cannot code."""
    coder_package()
    if model.visits is None or model.has_invalid_codes:
        raise ValueError("compressing needs arm, independent or chow-liu, or absorbing for examples of one length")
    if calls is not None and model.denoiser is None:
        raise ValueError("`calls` is for diffusions; this model visits one position after another; leave it out")
    return copy.deepcopy(model).cpu().double().eval()


def sizes_of(header: Header, begin: int, model: CategoricalModel) -> Tensor:
    """Return how many positions of each row of a chunk are coded."""
    num = min(header.chunk_rows, header.num_rows - begin)
    sizes = torch.full((num,), model.event_shape.numel())
    if begin + num == header.num_rows and num:
        sizes[-1] = min(header.last_size, model.event_shape.numel())
    return sizes


def marked(rows: Tensor, sizes: Tensor) -> Tensor:
    """Return rows (N, L) with -1 where nothing is coded."""
    flat = rows.flatten(1)
    return torch.where(torch.arange(flat.shape[1]) < sizes.unsqueeze(1), flat, -1)


def chunk_checksum(data: bytes, rows: Tensor, sizes: Tensor) -> int:
    """Return a checksum of a chunk and of what is coded in it."""
    return zlib.crc32(marked(rows, sizes).numpy().astype("<i4").tobytes(), zlib.crc32(data))


def versions() -> dict[str, str]:
    """Return what the probabilities may depend on besides the model."""
    from unordinal import __version__

    return {
        "unordinal": __version__,
        "torch": torch.__version__,
        "constriction": metadata.version("constriction"),
        "machine": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "threads": str(torch.get_num_threads()),
    }
