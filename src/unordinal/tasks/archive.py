"""The format of compressed files: a header in deflated JSON, a side stream, and coded examples, all with checksums.

Nothing in an archive is executed, and every length is checked against the size of the file before memory is taken.
"""

import json
import lzma
import struct
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any, get_type_hints

from unordinal.config import from_plain

MAGIC = b"unordinal\x02"
MOST_HEADER = 1 << 20  # bytes, unpacked
MOST_CHUNK_ROWS = 65_536
MOST_SIDE = 1 << 30  # bytes of the side stream, unpacked
DAMAGED = "the archive is damaged"


@dataclass(frozen=True)
class Header:
    """What is needed to read an archive.

    Args:
        kind: how the file is laid out in examples: text, lines, table or array.
        name: the name of the file that was compressed.
        size: its size in bytes.
        sha256: the checksum of what `decompress` writes.
        run: the run that it was compressed with, as the user named it.
        model: the checksum of the weights.
        made_by: versions of packages and the kind of CPU.
        facts: what the layout needs besides the examples.
        calls: network calls for each example, for a diffusion.
        num_rows: the number of examples.
        last_size: how many positions of the last example are coded.
        chunk_rows: the number of examples in each chunk but the last.
        side_size: the size of the side stream, unpacked.
        chunks: the bytes and the checksum of each chunk; the side stream is the first.
    """

    kind: str
    name: str
    size: int
    sha256: str
    run: str
    model: str
    made_by: dict[str, str]
    facts: dict[str, Any]
    calls: int | None
    num_rows: int
    last_size: int
    chunk_rows: int
    side_size: int
    chunks: tuple[tuple[int, int], ...] = field(default=())


def packed(header: Header, parts: list[bytes]) -> bytes:
    """Return an archive."""
    text = json.dumps(asdict(header), separators=(",", ":")).encode()
    if len(text) > MOST_HEADER:
        raise ValueError("the file has too many parts for one archive; compress it in pieces")
    text = zlib.compress(text, 9)
    return b"".join([MAGIC, struct.pack("<II", len(text), zlib.crc32(text)), text, *parts])


def unpacked(data: bytes, where: str) -> tuple[Header, list[bytes]]:
    """Return the header and the parts of an archive; raise a ValueError that says what is wrong with it."""
    start = len(MAGIC) + 8
    if data[: len(MAGIC) - 1] != MAGIC[:-1]:
        raise ValueError(f"{where} is not an archive of `unordinal compress`")
    if data[len(MAGIC) - 1 : len(MAGIC)] != MAGIC[-1:]:
        raise ValueError(f"{where} was made by another version of `unordinal compress`; use that version")
    if len(data) < start:
        raise ValueError(f"{where}: {DAMAGED}: it ends in its header")
    size, checksum = struct.unpack("<II", data[len(MAGIC) : start])
    text = data[start : start + size]
    if size > MOST_HEADER or len(text) < size or zlib.crc32(text) != checksum:
        raise ValueError(f"{where}: {DAMAGED}: its header is cut short or altered")
    header = read_header(text, where)
    parts, place = [], start + size
    if place + sum(length for length, _ in header.chunks) != len(data):
        raise ValueError(f"{where}: {DAMAGED}: it has {len(data):,} bytes, which is not what its header says")
    for length, _ in header.chunks:
        parts.append(data[place : place + length])
        place += length
    return header, parts


def read_header(text: bytes, where: str) -> Header:
    """Return a header from deflated JSON, with all its numbers checked."""
    try:
        reader = zlib.decompressobj()
        values = json.loads(reader.decompress(text, MOST_HEADER))
        chunks = tuple((int(length), int(checksum)) for length, checksum in values.pop("chunks"))
        kinds = dict.fromkeys(("facts", "made_by"), checked_dict)
        types = get_type_hints(Header)
        given: Any = {name: kinds.get(name, from_plain)(types[name], value, name) for name, value in values.items()}
        header = Header(**given, chunks=chunks)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error) as error:
        raise ValueError(f"{where}: {DAMAGED}: its header cannot be read") from error
    numbers = (header.size, header.num_rows, header.last_size, header.side_size, *(n for n, _ in chunks))
    expected = 1 + -(-header.num_rows // max(1, header.chunk_rows))
    is_sound = min(numbers) >= 0 and 1 <= header.chunk_rows <= MOST_CHUNK_ROWS and header.side_size <= MOST_SIDE
    if not is_sound or len(chunks) != expected:
        raise ValueError(f"{where}: {DAMAGED}: its header has impossible numbers")
    return header


def checked_dict(_: Any, value: Any, name: str) -> dict[str, Any]:
    """Return a value that must be a dict."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object")
    return value


def side_packed(side: Any) -> tuple[bytes, int]:
    """Return the side stream, plain values, compressed, and its size before; nothing for no values."""
    text = json.dumps(side, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") if side else b""
    if len(text) > MOST_SIDE:
        raise ValueError("the file has too much that the model does not know; train a model on such data")
    return (lzma.compress(text, preset=9 | lzma.PRESET_EXTREME) if text else b""), len(text)


def side_unpacked(data: bytes, size: int) -> Any:
    """Return the values of a side stream of this size."""
    if not data:
        return []
    reader = lzma.LZMADecompressor(memlimit=1 << 30)
    text = reader.decompress(data, max_length=size)
    if len(text) != size:
        raise ValueError(DAMAGED)
    return json.loads(text.decode("utf-8", "surrogatepass"))
