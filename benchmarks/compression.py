"""Compare `unordinal compress` with general compressors on one file: size, and bytes per second in both directions.

    pip install zstandard brotli pyppmd
    python benchmarks/compression.py test.txt --run pretrained:english-arm --prime train.txt

General compressors are run plain, and primed with a file of training data: what the file adds to the size of both
together (xz, PPMd), or with the training data as a dictionary (zstd). Every archive is unpacked again and compared.
"""

import json
import lzma
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from arguments import given

from unordinal.api import load
from unordinal.cli.parsing import POSITIONAL
from unordinal.console import progress

XZ = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 27}]
PPMD_ORDER, PPMD_MEMORY = 12, 1 << 28


@dataclass(frozen=True)
class Args:
    file: Annotated[Path, POSITIONAL]
    """The file to compress."""
    run: str
    """The run to compress it with."""
    prime: Path | None = None
    """A file of training data, for the primed compressors."""
    symbols: int | None = None
    """How many symbols the file has, for bits per symbol; default its bytes."""
    calls: int | None = None
    """Network calls of a diffusion."""
    out: Path | None = None
    """Write the figures to this JSON file."""


def main(args: Args) -> None:
    raw = args.file.read_bytes()
    train = args.prime.read_bytes() if args.prime else b""
    rows = []
    for name, pack in {**plain(), **(primed(train) if train else {})}.items():
        began = time.monotonic()
        size = pack(raw)
        rows.append({"compressor": name, "bytes": size, "seconds": time.monotonic() - began})
        tell(rows[-1], args.symbols or len(raw))
    run = load(args.run)
    began = time.monotonic()
    found = run.compress(raw, name=args.file.name, calls=args.calls, progress=progress)
    packed = time.monotonic()
    assert run.decompress(found.archive, progress=progress) == raw
    seconds = {"seconds": packed - began, "unpacking_seconds": time.monotonic() - packed}
    parts = {"model_bytes": found.bits / 8, "coded_bytes": found.coded_bytes, "side_bytes": found.side_bytes}
    rows.append({"compressor": f"unordinal, {args.run}", "bytes": len(found.archive), **seconds, **parts})
    tell(rows[-1], args.symbols or len(raw))
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


def tell(row: dict[str, object], symbols: int) -> None:
    """Print a row."""
    size, seconds = row["bytes"], row["seconds"]
    assert isinstance(size, int)
    assert isinstance(seconds, float)
    print(
        f"{row['compressor']:<40} {size:>10,} bytes  {8 * size / symbols:.4f} bits per symbol  {seconds:.1f} s",
        flush=True,
    )


def plain() -> dict[str, Callable[[bytes], int]]:
    """Return how many bytes general compressors make of a file."""
    import brotli
    import zstandard

    return {
        "xz -9e": lambda raw: len(lzma.compress(raw, format=lzma.FORMAT_XZ, filters=XZ)),
        "zstd -22": lambda raw: len(zstandard.ZstdCompressor(level=22).compress(raw)),
        "brotli 11": lambda raw: len(brotli.compress(raw, quality=11, lgwin=24)),
        "PPMd": ppmd,
    }


def primed(train: bytes) -> dict[str, Callable[[bytes], int]]:
    """Return the same for compressors that have seen training data."""
    import zstandard

    whole = zstandard.ZstdCompressionDict(train, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    settings = zstandard.ZstdCompressionParameters.from_level(22, window_log=27, enable_ldm=True)

    def xz(raw: bytes) -> int:
        together, alone = (len(lzma.compress(data, filters=XZ)) for data in (train + raw, train))
        return together - alone

    def zstd(raw: bytes) -> int:
        return len(zstandard.ZstdCompressor(dict_data=whole, compression_params=settings).compress(raw))

    return {"xz, primed": xz, "zstd, primed": zstd, "PPMd, primed": lambda raw: ppmd(train + raw) - ppmd(train)}


def ppmd(raw: bytes) -> int:
    """Return how many bytes PPMd (variant H) makes of data."""
    import pyppmd

    packed = pyppmd.compress(raw, max_order=PPMD_ORDER, mem_size=PPMD_MEMORY)
    return len(packed)


if __name__ == "__main__":
    main(given(Args, __doc__))
