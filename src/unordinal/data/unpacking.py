"""Limits for files from elsewhere: how much they unpack to, how deep their JSON is, where their links lead."""

import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

UNPACKED = 1 << 30  # bytes that compressed data may unpack to
FREE = 16 << 20  # bytes that may be unpacked whatever the size of the file is
RATIO = 100  # beyond that, how many times its size a file may unpack to
LARGEST_JSON = 64 << 20  # bytes
DEEPEST_JSON = 100

_allowed: int | None = None


class UnpackingError(ValueError):
    """A file unpacks to more than is allowed, or out of its folder."""


def allow_unpacking(num_bytes: int | None) -> None:
    """Let compressed data unpack to as many bytes, however small their files are; None brings the defaults back."""
    global _allowed  # noqa: PLW0603
    if num_bytes is not None and num_bytes < 1:
        raise ValueError(f"`max_bytes` must be at least 1, got {num_bytes}")
    _allowed = num_bytes


def check_unpacked(num_bytes: int, packed: int, where: object) -> None:
    """Raise an UnpackingError if a file of `packed` bytes unpacks to `num_bytes`, and that is more than is allowed."""
    most = min(UNPACKED, max(FREE, RATIO * packed)) if _allowed is None else _allowed
    if num_bytes > most:
        raise UnpackingError(
            f"{where} has {packed:,} bytes and unpacks to {num_bytes:,} or more, beyond the limit of {most:,}; "
            "if you trust it, raise the limit with `max_bytes`"
        )


def check_member(name: str, where: object) -> None:
    """Raise an UnpackingError if the name of a file in an archive leads out of the folder it would be unpacked to."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name:
        raise UnpackingError(f"{where} contains {name!r}, a name that leads out of the archive")


def checked_archive(archive: zipfile.ZipFile, packed: int, where: object) -> zipfile.ZipFile:
    """Return an archive whose names and sizes are harmless; raise an UnpackingError otherwise."""
    for member in archive.infolist():
        check_member(member.filename, where)
    check_unpacked(sum(member.file_size for member in archive.infolist()), packed, where)
    return archive


def check_links(folder: Path, paths: list[Path]) -> None:
    """Raise an UnpackingError if one of the paths in a folder is a link that leads out of it."""
    root = folder.resolve()
    for path in paths:
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise UnpackingError(f"{path} is a link that leads out of {folder}; put the file itself there")


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; raise a ValueError if it is no JSON, or too long, or nested too deeply."""
    size = path.stat().st_size
    if size > LARGEST_JSON:
        raise ValueError(f"{path} has {size:,} bytes; expected at most {LARGEST_JSON:,}")
    return parse_json(path.read_text())


def parse_json(text: str) -> Any:
    """Return what a JSON text holds; raise a ValueError if it is no JSON, or nested too deeply."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"it is nested more than {DEEPEST_JSON} levels deep") from error
    if depth(value) > DEEPEST_JSON:
        raise ValueError(f"it is nested more than {DEEPEST_JSON} levels deep")
    return value


def depth(value: Any) -> int:
    """Return how many levels of lists and objects a value has.

    >>> depth({"a": [1, {"b": 2}]})
    3
    """
    level, found = [value], 0
    while level := [part for part in level if isinstance(part, dict | list)]:
        found += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return found
