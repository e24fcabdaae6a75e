"""text8 and enwik8: downloaded once, checked by sha256, kept where a person can also put them by hand."""

import logging
from pathlib import Path
from typing import Any

from unordinal.config import DataConfig
from unordinal.data.spec import Vocabulary
from unordinal.data.splits import Data
from unordinal.data.storage import data_folder
from unordinal.data.text import TextFile, load_text
from unordinal.progress import Progress

OFFICIAL_SPLIT = "90000000,5000000,5000000"
ARCHIVES = {
    "text8": (
        "http://mattmahoney.net/dc/text8.zip",
        "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
    ),
    "enwik8": (
        "http://mattmahoney.net/dc/enwik8.zip",
        "547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc",
    ),
}


def load_archive(name: str, config: DataConfig, vocabulary: Vocabulary | None, progress: Progress) -> Data:
    """The 100 million characters or bytes in their official split."""
    url, sha256 = ARCHIVES[name]
    path = fetched(url, sha256, data_folder() / "downloads" / f"{name}.zip", progress)
    return load_text(TextFile.of(path), config, progress, vocabulary=vocabulary, official_split=OFFICIAL_SPLIT)


def fetched(url: str, sha256: str, path: Path, progress: Progress) -> Path:
    """`path`, downloaded from `url` first where it is missing; a file of another sha256 is refused, not replaced."""
    import pooch

    checked = path.with_name(f"{path.name}.sha256")
    if path.exists():
        stamp = f"{sha256} {path.stat().st_size} {path.stat().st_mtime_ns}"
        if checked.exists() and checked.read_text() == stamp:
            return path
        found = pooch.file_hash(str(path), alg="sha256")
        if found != sha256:
            raise ValueError(f"{path} has sha256 {found}, expected {sha256}; remove it, or put the right file there")
        checked.write_text(stamp)
        return path
    pooch.get_logger().setLevel(logging.ERROR)
    bar = Bar(progress, f"Downloading {path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        downloader = pooch.HTTPDownloader(progressbar=bar, timeout=30)
        pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=path.name, path=path.parent, downloader=downloader)
    except PermissionError as error:
        raise ValueError(f"cannot write to {path.parent}; set UNORDINAL_DATA to a folder you own") from error
    except (OSError, ValueError) as error:  # no network, a broken connection, a wrong hash
        raise ValueError(
            f"could not download {url} ({type(error).__name__}); put the file at {path} yourself; "
            f"its sha256 is {sha256}"
        ) from error
    finally:
        bar.close()
    return path


class Bar:
    """What pooch wants of a progress bar, on top of ours."""

    def __init__(self, progress: Progress, what: str):
        self.progress, self.what, self.total = progress, what, 0
        self._open: Any = None
        self._advance: Any = None

    def update(self, amount: int) -> None:
        if self._open is None:
            self._open = self.progress(self.what, self.total or None)
            self._advance = self._open.__enter__()
        self._advance(amount)

    def reset(self) -> None:
        """pooch calls this before it fills the bar once more to be sure that it ends full; ours is full already."""

    def close(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None
