"""The fine label maps of Cityscapes, reduced to 8 categories and a small size (section 6.2 of the paper)."""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated, ClassVar

import numpy as np

from unordinal.data.maps import nearest, read_indices
from unordinal.data.source import MapSettings, Source
from unordinal.data.spec import DataSpec
from unordinal.data.splits import Data, cut
from unordinal.data.storage import data_folder, stored_symbols
from unordinal.data.unpacking import check_member, check_unpacked
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Progress, silent
from unordinal.settings import PYTHON_ONLY

ARCHIVE = "gtFine_trainvaltest.zip"
SUFFIX = "_gtFine_labelIds.png"
NUM_TRAIN, NUM_VAL = 2975, 500  # numbers of label maps in the archive's train and val
SIZES = (2500, 475, NUM_VAL)  # train and val are the archive's train, sorted by name; test is the archive's val


CATEGORIES = (
    ("void", "#000000"),
    ("flat", "#804080"),
    ("construction", "#464646"),
    ("object", "#dcdc00"),
    ("nature", "#6b8e23"),
    ("sky", "#4682b4"),
    ("human", "#dc143c"),
    ("vehicle", "#00008e"),
)

# The category of each label, by its id from 0 to 33, as the data set's authors define them.
CATEGORY_OF_ID = (
    *(0, 0, 0, 0, 0, 0, 0),  # unlabeled, ego vehicle, rectification border, out of roi, static, dynamic, ground
    *(1, 1, 1, 1),  # road, sidewalk, parking, rail track
    *(2, 2, 2, 2, 2, 2),  # building, wall, fence, guard rail, bridge, tunnel
    *(3, 3, 3, 3),  # pole, polegroup, traffic light, traffic sign
    *(4, 4, 5, 6, 6),  # vegetation, terrain, sky, person, rider
    *(7, 7, 7, 7, 7, 7, 7, 7),  # car, truck, bus, caravan, trailer, train, motorcycle, bicycle
)
UNKNOWN = 255
CATEGORY_OF = np.full(256, UNKNOWN, np.uint8)
CATEGORY_OF[: len(CATEGORY_OF_ID)] = CATEGORY_OF_ID


@dataclass(frozen=True)
class CityscapesSource(MapSettings):
    """The label maps of the archive, or of the folder it unpacks to; they are scaled the first time and cached."""

    path: Annotated[str, PYTHON_ONLY] = ""
    """The archive or its folder; default the one in the downloads folder."""
    key: ClassVar[str] = "cityscapes"
    usage: ClassVar[str] = "cityscapes[:PATH]"
    description: ClassVar[str] = (
        "the paper's maps of 8 categories, from gtFine_trainvaltest.zip or its folder (scaled to any even size)"
    )

    @property
    def name(self) -> str:
        return f"{self.key}:{self.path}" if self.path else self.key

    def moved(self, move: Callable[[str], str]) -> Source:
        return replace(self, path=move(self.path)) if self.path else self

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        return load_cityscapes(self, progress)


def load_cityscapes(asked: CityscapesSource, progress: Progress) -> Data:
    """Load the label maps; they are scaled the first time and cached."""
    height, width = asked.map_height, asked.map_width
    path = find_archive(asked.path)
    with opened(path) as root:
        maps = []
        for part, wanted in (("train", NUM_TRAIN), ("val", NUM_VAL)):
            cities = (root / part).iterdir() if (root / part).is_dir() else ()
            found = [file for city in cities if city.is_dir() for file in city.iterdir() if file.name.endswith(SUFFIX)]
            if len(found) != wanted:
                has = f"{path} has {len(found):,} label maps in gtFine/{part}"
                raise ValueError(f"{has}, expected {wanted:,}; is {ARCHIVE} complete?")
            maps += sorted(found, key=str)

        def blocks() -> Iterator[np.ndarray]:
            with progress("Scaling Cityscapes", NUM_TRAIN + NUM_VAL) as advance:
                for file in maps:
                    yield nearest(label_categories(io.BytesIO(content(file)), str(file)), height, width)
                    advance(1)

        key = {"cityscapes": str(path), "state": state_of(path, maps)}
        stored, described = stored_symbols({**key, "height": height, "width": width}, blocks, dict)
    train, val, test = cut(stored.reshape(-1, height, width), SIZES, None, flips=asked.flips)
    spec = DataSpec(asked.name, len(CATEGORIES), (height, width), None, described["sha256"], SIZES, CATEGORIES)
    return Data(spec, train, val, test)


def label_categories(file: IO[bytes], where: str) -> np.ndarray:
    """Return the category of every pixel of a label map, (H, W) uint8; `where` names it in error messages."""
    ids = read_indices(file, where)
    categories = CATEGORY_OF[ids]
    if (categories == UNKNOWN).any():
        wrong = int(ids[categories == UNKNOWN][0])
        raise ValueError(f"{where} has label id {wrong}, which Cityscapes does not define; expected 0 to 33")
    return categories


def find_archive(argument: str) -> Path:
    """Return the path of the archive or its folder: `argument` if there is one, else that in the downloads folder."""
    if argument:
        path = Path(argument).expanduser().resolve()
        if not path.exists():
            raise ValueError(f"there is no file or folder {path}; expected {ARCHIVE} or the folder it unpacks to")
        return path
    for path in (data_folder() / "downloads" / ARCHIVE, data_folder() / "downloads" / "gtFine"):
        if path.exists():
            return path
    raise ValueError(
        f"Cityscapes cannot be downloaded without an account: get {ARCHIVE} (241 MB) at "
        "https://www.cityscapes-dataset.com/downloads/ (free for research under the terms of "
        f"https://www.cityscapes-dataset.com/license/), put it at {data_folder() / 'downloads' / ARCHIVE} or set "
        "`data` to cityscapes:PATH; the similar `data` streets needs no download"
    )


LabelFile = Path | zipfile.Path


def content(file: LabelFile) -> bytes:
    """Return the bytes of a label map, in the archive or in its folder."""
    try:
        if isinstance(file, zipfile.Path):
            member = file.root.getinfo(file.at)
            check_unpacked(member.file_size, member.compress_size, file)
        return file.read_bytes()
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, NotImplementedError) as error:
        raise ValueError(f"{file} cannot be unpacked: {error}") from error


def state_of(path: Path, maps: Sequence[LabelFile]) -> str:
    """Return a text that changes whenever the archive, or one of the files of its folder, does."""
    files = [file for file in maps if isinstance(file, Path)] or [path]
    states = [(file, file.stat()) for file in files]
    lines = "".join(f"{file} {status.st_size} {status.st_mtime_ns}\n" for file, status in states)
    return hashlib.sha256(lines.encode()).hexdigest()


@contextmanager
def opened(path: Path) -> Iterator[LabelFile]:
    """Open the archive or its folder, and give the folder gtFine in it."""
    if path.is_dir():
        root = path / "gtFine" if (path / "gtFine").is_dir() else path
        if not (root / "train").is_dir():
            raise ValueError(f"{path} does not contain gtFine/train; expected the folder that {ARCHIVE} unpacks to")
        yield root
        return
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise ValueError(f"{path} cannot be read as a zip archive: {error}") from error
    with archive:
        for name in archive.namelist():
            check_member(name, path)
        if not any(name.startswith("gtFine/") for name in archive.namelist()):
            raise ValueError(f"{path} does not contain gtFine; expected {ARCHIVE}")
        yield zipfile.Path(archive, "gtFine/")
