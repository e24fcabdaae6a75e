"""The fine label maps of Cityscapes, reduced to 8 categories and a small size (section 6.2 of the paper)."""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from unordinal.config import DataConfig
from unordinal.data.maps import check_fixed, map_size, nearest, read_indices
from unordinal.data.spec import DataSpec
from unordinal.data.splits import Data, cut
from unordinal.data.storage import data_folder, stored_symbols
from unordinal.data.unpacking import check_member, check_unpacked
from unordinal.progress import Progress

ARCHIVE = "gtFine_trainvaltest.zip"
SUFFIX = "_gtFine_labelIds.png"
NUM_TRAIN, NUM_VAL = 2975, 500  # numbers of label maps in the archive's train and val
SIZES = (2500, 475, NUM_VAL)  # train and val are the archive's train, sorted by name; test is the archive's val


@dataclass(frozen=True)
class Label:
    """A label of Cityscapes, with its id in label maps and its category."""

    name: str
    id: int
    category: int
    colour: tuple[int, int, int]


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

LABELS = (
    Label("unlabeled", 0, 0, (0, 0, 0)),
    Label("ego vehicle", 1, 0, (0, 0, 0)),
    Label("rectification border", 2, 0, (0, 0, 0)),
    Label("out of roi", 3, 0, (0, 0, 0)),
    Label("static", 4, 0, (0, 0, 0)),
    Label("dynamic", 5, 0, (111, 74, 0)),
    Label("ground", 6, 0, (81, 0, 81)),
    Label("road", 7, 1, (128, 64, 128)),
    Label("sidewalk", 8, 1, (244, 35, 232)),
    Label("parking", 9, 1, (250, 170, 160)),
    Label("rail track", 10, 1, (230, 150, 140)),
    Label("building", 11, 2, (70, 70, 70)),
    Label("wall", 12, 2, (102, 102, 156)),
    Label("fence", 13, 2, (190, 153, 153)),
    Label("guard rail", 14, 2, (180, 165, 180)),
    Label("bridge", 15, 2, (150, 100, 100)),
    Label("tunnel", 16, 2, (150, 120, 90)),
    Label("pole", 17, 3, (153, 153, 153)),
    Label("polegroup", 18, 3, (153, 153, 153)),
    Label("traffic light", 19, 3, (250, 170, 30)),
    Label("traffic sign", 20, 3, (220, 220, 0)),
    Label("vegetation", 21, 4, (107, 142, 35)),
    Label("terrain", 22, 4, (152, 251, 152)),
    Label("sky", 23, 5, (70, 130, 180)),
    Label("person", 24, 6, (220, 20, 60)),
    Label("rider", 25, 6, (255, 0, 0)),
    Label("car", 26, 7, (0, 0, 142)),
    Label("truck", 27, 7, (0, 0, 70)),
    Label("bus", 28, 7, (0, 60, 100)),
    Label("caravan", 29, 7, (0, 0, 90)),
    Label("trailer", 30, 7, (0, 0, 110)),
    Label("train", 31, 7, (0, 80, 100)),
    Label("motorcycle", 32, 7, (0, 0, 230)),
    Label("bicycle", 33, 7, (119, 11, 32)),
    Label("license plate", -1, 7, (0, 0, 142)),  # does not occur in label maps
)
UNKNOWN = 255
CATEGORY_OF = np.full(256, UNKNOWN, np.uint8)
for _label in LABELS:
    if _label.id >= 0:
        CATEGORY_OF[_label.id] = _label.category


def load_cityscapes(argument: str, config: DataConfig, progress: Progress) -> Data:
    """Load the label maps of the archive, or of the folder it unpacks to; they are scaled the first time and cached."""
    check_fixed(config, "cityscapes", len(CATEGORIES))
    height, width = map_size(config)
    path = find_archive(argument)
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
    train, val, test = cut(stored.reshape(-1, height, width), SIZES, None, flips=config.flips)
    spec = DataSpec(config.name, len(CATEGORIES), (height, width), None, described["sha256"], SIZES, CATEGORIES)
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
