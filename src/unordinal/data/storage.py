"""Where prepared data live, and how a file is written so that a crash leaves either nothing or all of it."""

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

FORMAT = 2  # raise when the meaning of a prepared file changes


def data_folder() -> Path:
    """UNORDINAL_DATA, or the platform's cache folder."""
    chosen = os.environ.get("UNORDINAL_DATA")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("unordinal"))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that appears at `path` only when it is whole: written beside it, fsynced, renamed.

    A link is followed, and what is no regular file (a pipe, a device) is written to as it is.
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
    """Make a rename inside `folder` survive a power cut."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_whole(path: Path, notes: Path, dtype: type[np.unsignedinteger]) -> bool:
    """Whether a prepared file is there and as long as its notes say."""
    try:
        return path.stat().st_size == json.loads(notes.read_text())["num_symbols"] * np.dtype(dtype).itemsize
    except (OSError, ValueError, KeyError, TypeError):
        return False


def stored_symbols(
    key: dict[str, Any],
    blocks: Callable[[], Iterator[np.ndarray]],
    extra: Callable[[], dict[str, Any]],
    dtype: type[np.unsignedinteger] = np.uint8,
) -> tuple[np.ndarray, dict[str, Any]]:
    """The symbols of type `dtype` that `blocks` gives, memory-mapped from a prepared file made once per `key`.

    Returns them and what is noted beside them: `num_symbols`, `sha256`, and whatever `extra` tells once the blocks
    are through. Blocks are written as they come, so memory stays flat whatever the size.
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
                f"cannot write prepared data to {path.parent}: {error.strerror}; set UNORDINAL_DATA to a folder you own"
            ) from error
    described = json.loads(notes.read_text())
    if described["num_symbols"] == 0:
        return np.zeros(0, dtype), described
    return np.memmap(path, dtype=dtype, mode="r"), described
