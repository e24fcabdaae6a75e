"""Prepared files: whole or not there, made once per key, and made anew when damaged."""

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from unordinal.data.storage import data_folder, replacing, stored_symbols


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with replacing(path) as file:
        file.write(b"first")
        assert not path.exists()
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o644

    def halfway() -> None:
        with replacing(path) as file:
            file.write(b"sec")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        halfway()
    assert path.read_bytes() == b"first"
    assert list(path.parent.iterdir()) == [path]  # nothing half-written is left


def test_links_are_followed_and_pipes_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with replacing(tmp_path / "link") as file:
        file.write(b"through")
    assert (tmp_path / "target").read_bytes() == b"through"
    assert (tmp_path / "link").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with replacing(tmp_path / "pipe") as file:
        file.write(b"down the pipe")
    reader.join()
    assert got == [b"down the pipe"]
    assert (tmp_path / "pipe").is_fifo()


class Source:
    """Blocks of numbers that count how often they are asked for."""

    def __init__(self, *blocks: list[int]):
        self.blocks, self.reads = blocks, 0

    def __call__(self) -> Iterator[np.ndarray]:
        self.reads += 1
        for block in self.blocks:
            yield np.array(block, np.uint8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNORDINAL_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    return tmp_path / "prepared"


def test_symbols_are_prepared_once_per_key_and_anew_when_damaged(folder: Path) -> None:
    source = Source([1, 2, 3], [], [4, 5])
    x, notes = stored_symbols({"of": "a"}, source, lambda: {"more": source.reads})
    assert x.tolist() == [1, 2, 3, 4, 5]
    assert isinstance(x, np.memmap)
    assert notes["num_symbols"] == 5
    assert notes["sha256"] == hashlib.sha256(bytes([1, 2, 3, 4, 5])).hexdigest()
    assert notes["more"] == 1
    assert stored_symbols({"of": "a"}, source, dict)[1] == notes
    assert source.reads == 1
    stored_symbols({"of": "b"}, source, dict)
    assert source.reads == 2
    assert len(list(folder.glob("*.bin"))) == 2
    for damage in (lambda path: path.write_bytes(b"\1"), lambda path: path.with_suffix(".json").write_text("{")):
        before = source.reads
        for path in folder.glob("*.bin"):
            damage(path)
        assert stored_symbols({"of": "a"}, source, dict)[0].tolist() == [1, 2, 3, 4, 5]
        assert source.reads == before + 1


def test_what_fails_on_the_way_leaves_nothing_behind(folder: Path) -> None:
    def broken() -> Iterator[np.ndarray]:
        yield np.zeros(3, np.uint8)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        stored_symbols({"of": "broken"}, broken, dict)
    assert not list(folder.iterdir())
    assert stored_symbols({"of": "nothing"}, Source(), dict)[0].tolist() == []


def test_a_folder_that_cannot_be_written_to_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("unordinal.data.storage.tempfile.mkstemp", denied)
    with pytest.raises(
        ValueError, match=f"cannot write prepared data to {folder}: Permission denied; set UNORDINAL_DATA"
    ):
        stored_symbols({"of": "a"}, Source([1]), dict)
