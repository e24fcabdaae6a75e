"""Damaged, cut and absurd archives are told from sound ones."""

import json
import struct
import zlib
from dataclasses import replace
from typing import Any

import pytest

from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.recipes import constructors
from unordinal.tasks.archive import MAGIC, MOST_HEADER, packed, side_packed, side_unpacked, unpacked
from unordinal.tasks.compressing import Compress, Decompress, compress, decompress

SMALL: Any = {"net.width": 8, "net.num_blocks": 1, "net.num_heads": 1}
TEXT = DataSpec("text", 27, (16,), Vocabulary.text8())
MODEL = constructors.arm(27, length=16, **SMALL).eval()


def archive() -> bytes:
    return compress(MODEL, TEXT, Compress(b"what a day, what a day"), run="runs/x", checksum="c").archive


def restored(data: bytes) -> bytes:
    return decompress(MODEL, TEXT, Decompress(data), checksum="c")


@pytest.mark.parametrize("place", [0, 9, 12, 15, 60, -1, -5, -20])
def test_a_flipped_bit_is_found(place: int) -> None:
    data = bytearray(archive())
    data[place] ^= 4
    with pytest.raises(ValueError, match=r"damaged|not an archive|another version|another model"):
        restored(bytes(data))


def test_every_cut_is_found() -> None:
    data = archive()
    for size in range(0, len(data), 7):
        with pytest.raises(ValueError, match=r"damaged|not an archive|another version"):
            restored(data[:size])
    with pytest.raises(ValueError, match="which is not what its header says"):
        restored(data + b"more")


@pytest.mark.parametrize(
    "changes",
    [
        {"num_rows": 10**12},
        {"num_rows": -1},
        {"chunk_rows": 0},
        {"chunk_rows": 10**9},
        {"side_size": 1 << 40},
        {"last_size": -3},
        {"size": "many"},
        {"facts": 3},
        {"chunks": [[1 << 60, 0]]},
        {"chunks": "x"},
        {"kind": 5},
        {"extra": 1},
    ],
)
def test_absurd_headers_are_refused_before_memory_is_taken(changes: dict[str, Any]) -> None:
    data = archive()
    start = len(MAGIC) + 8
    (size,) = struct.unpack("<I", data[len(MAGIC) : len(MAGIC) + 4])
    values = json.loads(zlib.decompress(data[start : start + size]))
    text = zlib.compress(json.dumps({**values, **changes}).encode())
    with pytest.raises(ValueError, match="damaged"):
        restored(MAGIC + struct.pack("<II", len(text), zlib.crc32(text)) + text + data[start + size :])


def test_a_header_that_unpacks_to_more_than_it_may_is_refused() -> None:
    text = zlib.compress(b" " * (4 * MOST_HEADER) + b"{}")
    with pytest.raises(ValueError, match="damaged: its header cannot be read"):
        restored(MAGIC + struct.pack("<II", len(text), zlib.crc32(text)) + text)


def test_other_models_and_versions_are_told() -> None:
    data = archive()
    with pytest.raises(ValueError, match="it was compressed with another model, runs/x; give that"):
        decompress(MODEL, TEXT, Decompress(data, name="it"), checksum="d")
    with pytest.raises(ValueError, match="made by another version"):
        restored(MAGIC[:-1] + b"\x07" + data[len(MAGIC) :])
    header, parts = unpacked(data, "it")
    wrong = replace(
        header, made_by={**header.made_by, "torch": "0.1"}, chunks=(header.chunks[0], (header.chunks[1][0], 5))
    )
    with pytest.raises(ValueError, match=r"cannot be read here; it was made with torch 0\.1"):
        restored(packed(wrong, parts))


def test_side_streams_come_back_and_cannot_grow() -> None:
    side = [[1, 2], ["a\ud800", "é"]]
    data, size = side_packed(side)
    assert side_unpacked(data, size) == side
    assert side_packed([]) == (b"", 0)
    with pytest.raises(ValueError, match="damaged"):
        side_unpacked(data, size + 1)
