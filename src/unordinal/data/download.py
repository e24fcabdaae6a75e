"""The texts text8 and enwik8, which are downloaded once, or placed by hand, and checked by sha256."""

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from unordinal.data.source import Alphabet, Length, TextSettings
from unordinal.data.splits import Data
from unordinal.data.storage import data_folder
from unordinal.data.text import TextFile, load_text
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Progress, silent

LARGEST_DOWNLOAD = 64 << 20  # bytes; the archives below have 31 and 36 million
OFFICIAL_SPLIT = "90000000,5000000,5000000"
ARCHIVES = {
    "text8": (
        "https://mattmahoney.net/dc/text8.zip",
        "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
    ),
    "enwik8": (
        "https://mattmahoney.net/dc/enwik8.zip",
        "547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc",
    ),
}


@dataclass(frozen=True)
class Text8Source(TextSettings):
    """The first 100 million characters of a cleaned Wikipedia."""

    alphabet: Alphabet = "text8"
    """How text becomes classes: a-z and space (text8), or bytes."""

    key: ClassVar[str] = "text8"
    usage: ClassVar[str] = "text8"
    description: ClassVar[str] = "100 million characters of Wikipedia, a-z and space (downloaded once, 31 MB)"

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        url, sha256 = ARCHIVES[self.key]
        path = fetch(url, sha256, data_folder() / "downloads" / f"{self.key}.zip", progress)
        file, split = TextFile.of(path), OFFICIAL_SPLIT
        return load_text(file, self, vocabulary=vocabulary, progress=progress, official_split=split)


@dataclass(frozen=True)
class Enwik8Source(Text8Source):
    """The first 100 million bytes of Wikipedia."""

    alphabet: Alphabet = "bytes"
    """How text becomes classes: bytes, or chars if there are few enough."""
    length: Length = 320
    """Symbols per sequence."""

    key: ClassVar[str] = "enwik8"
    usage: ClassVar[str] = "enwik8"
    description: ClassVar[str] = "100 million bytes of Wikipedia (downloaded once, 36 MB)"


def fetch(url: str, sha256: str, path: Path, progress: Progress) -> Path:
    """Download `url` to `path` unless that exists, and return `path`; raise a ValueError if its sha256 is wrong."""
    import pooch

    check_address(url)
    checked = path.with_name(f"{path.name}.sha256")
    if path.exists():
        stamp = f"{sha256} {path.stat().st_size} {path.stat().st_mtime_ns}"
        if checked.exists() and checked.read_text() == stamp:
            return path
        found = pooch.file_hash(str(path), alg="sha256")
        if found != sha256:
            raise ValueError(
                f"{path} has sha256 {found}, expected {sha256}; remove the file or replace it by the right one"
            )
        checked.write_text(stamp)
        return path
    pooch.get_logger().setLevel(logging.ERROR)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        downloader = partial(download, progress=progress)
        pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=path.name, path=path.parent, downloader=downloader)
    except PermissionError as error:
        raise ValueError(
            f"cannot write to {path.parent}; set UNORDINAL_DATA to a folder that you can write to"
        ) from error
    except (OSError, ValueError) as error:  # no network, a broken connection, a wrong hash
        raise ValueError(
            f"could not download {url} ({type(error).__name__}); put the file at {path} yourself; "
            f"its sha256 is {sha256}"
        ) from error
    return path


def check_address(url: str) -> None:
    """Raise a ValueError if an address is not https; servers on this machine may do without."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError(f"downloads are over https only, got {url}")


def download(url: str, path: str, _pooch: object, progress: Progress) -> None:
    """Download a file to a path, and give up when it is larger than any file that is downloaded here."""
    import requests

    with requests.get(url, stream=True, timeout=30) as response:
        check_address(response.url)  # where redirections have led
        response.raise_for_status()
        total, done = int(response.headers.get("content-length", 0)), 0
        with Path(path).open("wb") as file, progress(f"Downloading {urlsplit(url).path[1:]}", total or None) as advance:
            for block in response.iter_content(1 << 16):
                done += len(block)
                if max(done, total) > LARGEST_DOWNLOAD:
                    raise ValueError(f"it is larger than {LARGEST_DOWNLOAD:,} bytes")
                file.write(block)
                advance(len(block))
