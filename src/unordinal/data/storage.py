"""The cache of prepared data, and atomic writes: after a crash a file is either complete or absent."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import platformdirs

from unordinal.data.unpacking import read_json

FORMAT = 2  # increase this when the format of prepared files changes


def data_folder() -> Path:
    """Return the folder of downloads and prepared data: UNORDINAL_DATA, or the cache folder of the platform."""
    chosen = os.environ.get("UNORDINAL_DATA")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("unordinal"))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing that replaces `path` atomically when the block ends without an error.

    Symbolic links are followed. A path that is not a regular file, such as a pipe or a device, is written to directly.
    """
    path = path.resolve()
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            yield file
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # noqa: PTH101 (mkstemp makes it private; a cache may be shared)
        os.replace(temporary, path)  # noqa: PTH105
        sync_folder(path.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Write the entries of `folder` to disk, so that a rename inside it survives a power failure."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def checksum_of(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_whole(path: Path, notes: Path, dtype: type[np.unsignedinteger]) -> bool:
    """Return whether a prepared file exists and has the size that its notes state."""
    try:
        return path.stat().st_size == read_json(notes)["num_symbols"] * np.dtype(dtype).itemsize
    except (OSError, ValueError, KeyError, TypeError):
        return False


def stored_symbols(
    key: dict[str, Any],
    blocks: Callable[[], Iterator[np.ndarray]],
    extra: Callable[[], dict[str, Any]],
    dtype: type[np.unsignedinteger] = np.uint8,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return symbols memory-mapped from a prepared file, which is written first if there is none for `key`.

    Args:
        key: what identifies the symbols; it must be possible to write it as JSON.
        blocks: yields the symbols in blocks, which are written one by one, so that memory use stays constant.
        extra: returns further notes to store with the symbols; called after the last block.
        dtype: the type of the symbols.

    Returns:
        The symbols, and the notes stored with them: `key`, `num_symbols`, `sha256` and what `extra` returned.
    """
    digest = hashlib.sha256(
        json.dumps({**key, "format": FORMAT, "type": np.dtype(dtype).name}, sort_keys=True).encode()
    ).hexdigest()[:32]
    path = data_folder() / "prepared" / f"{digest}.bin"
    notes = path.with_suffix(".json")
    if not is_whole(path, notes, dtype):
        try:
            content, num_symbols = hashlib.sha256(), 0
            with replacing(path) as file:
                for block in blocks():
                    content.update(block.tobytes())
                    num_symbols += block.size
                    file.write(block.tobytes())
            described = {"key": key, "num_symbols": num_symbols, "sha256": content.hexdigest(), **extra()}
            with replacing(notes) as file:
                file.write(json.dumps(described).encode())
        except PermissionError as error:
            raise ValueError(
                f"cannot write prepared data to {path.parent}: {error.strerror}; "
                "set UNORDINAL_DATA to a folder that you can write to"
            ) from error
    described = read_json(notes)
    if described["num_symbols"] == 0:
        return np.zeros(0, dtype), described
    return np.memmap(path, dtype=dtype, mode="r"), described
