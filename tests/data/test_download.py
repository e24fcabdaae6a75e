"""Downloads, from a server on this machine."""

import functools
import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unordinal.data import download, load_data
from unordinal.data.download import fetch
from unordinal.progress import Advance, silent


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "site" / "text8.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("text8", "some text " * 1000)
    return path


def test_text8_is_fetched_checked_and_split(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNORDINAL_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "OFFICIAL_SPLIT", "8000,1000,1000")
    steps: list[float] = []

    @contextmanager
    def progress(_what: str, total: float | None) -> Iterator[Advance]:
        assert total
        yield steps.append

    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    with served(archive.parent) as url:
        monkeypatch.setitem(download.ARCHIVES, "text8", (f"{url}/text8.zip", sha256))
        data = load_data("text8", alphabet="text8", progress=progress)
    assert data.spec.split_sizes == (8000, 1000, 1000)
    assert sum(steps) >= archive.stat().st_size
    again = load_data("text8", alphabet="text8")  # the server is gone
    assert again.spec == data.spec


def test_without_a_network_it_says_where_to_put_the_file(tmp_path: Path) -> None:
    target = tmp_path / "downloads" / "text8.zip"
    with pytest.raises(ValueError, match="could not download") as caught:
        fetch("http://127.0.0.1:9/text8.zip", "a" * 64, target, silent)
    assert str(target) in str(caught.value)
    assert "a" * 64 in str(caught.value)


def test_a_file_put_there_by_hand_is_used_or_refused_but_not_replaced(archive: Path) -> None:
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert fetch("http://127.0.0.1:9/x", sha256, archive, silent) == archive
    with pytest.raises(ValueError, match=f"has sha256 {sha256}, expected {'b' * 64}"):
        fetch("http://127.0.0.1:9/x", "b" * 64, archive, silent)
    assert archive.exists()


def test_a_wrong_download_is_refused(archive: Path, tmp_path: Path) -> None:
    with served(archive.parent) as url, pytest.raises(ValueError, match="could not download"):
        fetch(f"{url}/text8.zip", "c" * 64, tmp_path / "got.zip", silent)
    assert not (tmp_path / "got.zip").exists()


def test_a_file_that_is_too_large_is_given_up(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    monkeypatch.setattr(download, "LARGEST_DOWNLOAD", archive.stat().st_size - 1)
    with served(archive.parent) as url, pytest.raises(ValueError, match="could not download"):
        fetch(f"{url}/text8.zip", sha256, tmp_path / "kept" / "text8.zip", silent)
    assert not list((tmp_path / "kept").iterdir())
    monkeypatch.undo()
    with served(archive.parent) as url:
        fetch(f"{url}/text8.zip", sha256, tmp_path / "kept" / "text8.zip", silent)
