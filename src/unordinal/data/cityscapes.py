"""The fine label maps of Cityscapes, reduced to 8 categories and a small size (section 6.2 of the paper)."""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated, ClassVar

import numpy as np

from unordinal.config import Shape
from unordinal.data.maps import EVEN, HEIGHT, WIDTH, check_even, nearest, read_indices
from unordinal.data.source import Source
from unordinal.data.spec import DataSpec, Vocabulary
from unordinal.data.splits import Data, cut
from unordinal.data.storage import data_folder, stored_symbols
from unordinal.data.unpacking import check_member, check_unpacked
from unordinal.progress import Progress, silent
from unordinal.settings import PYTHON_ONLY, Flag

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
class CityscapesSource(Source):
    """The label maps of the archive, or of the folder it unpacks to; they are scaled the first time and cached."""

    path: Annotated[str, PYTHON_ONLY] = ""
    """The archive or its folder; default the one in the downloads folder."""
    map_height: Annotated[int, EVEN, Flag("--height")] = HEIGHT
    """Rows of a map."""
    map_width: Annotated[int, EVEN, Flag("--width")] = WIDTH
    """Columns of a map."""
    flips: bool = False
    """Mirror training maps left to right at random."""

    key: ClassVar[str] = "cityscapes"
    usage: ClassVar[str] = "cityscapes[:PATH]"
    description: ClassVar[str] = (
        "the paper's maps of 8 categories, from gtFine_trainvaltest.zip or its folder (scaled to any even size)"
    )
    gives: ClassVar[Shape] = "maps"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_even(self.map_height, self.map_width)

    @property
    def name(self) -> str:
        return f"{self.key}:{self.path}" if self.path else self.key

    def moved(self, move: Callable[[str], str]) -> Source:
        return replace(self, path=move(self.path)) if self.path else self

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:  # noqa: ARG002
        return load_cityscapes(self, progress)


def load_cityscapes(asked: CityscapesSource, progress: Progress) -> Data:
    """Load the label maps; they are scaled the first time and cached."""
    height, width = asked.map_height, asked.map_width
    path = find_archive(asked.path)
    with open_source(path) as source:
        names = {part: source.labels(part) for part in ("train", "val")}
        for part, wanted in (("train", NUM_TRAIN), ("val", NUM_VAL)):
            if len(names[part]) != wanted:
                raise ValueError(
                    f"{path} has {len(names[part]):,} label maps in gtFine/{part}, expected {wanted:,}; "
                    f"is {ARCHIVE} complete?"
                )

        def blocks() -> Iterator[np.ndarray]:
            with progress("Scaling Cityscapes", NUM_TRAIN + NUM_VAL) as advance:
                for name in names["train"] + names["val"]:
                    with source.open(name) as file:
                        yield nearest(label_categories(file, f"{path}: {name}"), height, width)
                    advance(1)

        key = {"cityscapes": str(path), "state": source.state(names["train"] + names["val"])}
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


class FolderSource:
    """The label maps in the folder that the archive unpacks to."""

    def __init__(self, root: Path):
        self.root = root

    def labels(self, part: str) -> list[str]:
        """Return the names of the label maps of a part, train or val."""
        return sorted(str(path.relative_to(self.root)) for path in (self.root / part).glob(f"*/*{SUFFIX}"))

    def open(self, name: str) -> IO[bytes]:
        """Open a label map."""
        return (self.root / name).open("rb")

    def state(self, names: list[str]) -> str:
        """Return a text that changes whenever one of the named files does."""
        states = [(name, (self.root / name).stat()) for name in names]
        lines = "".join(f"{name} {status.st_size} {status.st_mtime_ns}\n" for name, status in states)
        return hashlib.sha256(lines.encode()).hexdigest()


class ZipSource:
    """The label maps in the archive."""

    def __init__(self, path: Path, archive: zipfile.ZipFile):
        self.path, self.archive = path, archive

    def labels(self, part: str) -> list[str]:
        """Return the names of the label maps of a part, train or val."""
        return sorted(n for n in self.archive.namelist() if n.startswith(f"gtFine/{part}/") and n.endswith(SUFFIX))

    def open(self, name: str) -> IO[bytes]:
        """Open a label map."""
        try:
            member = self.archive.getinfo(name)
            check_unpacked(member.file_size, member.compress_size, f"{self.path}: {name}")
            return io.BytesIO(self.archive.read(name))
        except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, NotImplementedError) as error:
            raise ValueError(f"{self.path}: {name} cannot be unpacked: {error}") from error

    def state(self, names: list[str]) -> str:  # noqa: ARG002 (all files are in one archive)
        """Return a text that changes whenever the archive does."""
        status = self.path.stat()
        return f"{status.st_size} {status.st_mtime_ns}"


@contextmanager
def open_source(path: Path) -> Iterator[FolderSource | ZipSource]:
    """Open the archive or its folder to read label maps from."""
    if path.is_dir():
        root = path / "gtFine" if (path / "gtFine").is_dir() else path
        if not (root / "train").is_dir():
            raise ValueError(f"{path} does not contain gtFine/train; expected the folder that {ARCHIVE} unpacks to")
        yield FolderSource(root)
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
        yield ZipSource(path, archive)
