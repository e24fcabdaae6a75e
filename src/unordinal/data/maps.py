"""Data sets of maps, 2-d arrays of classes: an .npz or .npy (N, height, width), or a folder of PNGs."""

import struct
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated, ClassVar

import numpy as np

from unordinal.config import Shape
from unordinal.data.arrays import load_arrays, read_arrays
from unordinal.data.labels import SPLITS, Given
from unordinal.data.levels import Colours, Levels
from unordinal.data.source import FileSource, SplitSizes
from unordinal.data.spec import MAX_CHARACTERS, DataSpec
from unordinal.data.splits import Data
from unordinal.data.unpacking import UnpackingError, check_links, check_unpacked
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Advance, Progress, silent
from unordinal.settings import Flag, Range

DAMAGED_PNG = (struct.error, zlib.error, EOFError, IndexError, OverflowError, MemoryError)  # what Pillow lets through
INDEX_MODES = ("P", "L", "1", "I", "I;16")  # modes in Pillow of PNGs whose pixels are single numbers
HEADER_BYTES, DEPTH_BYTE, COLOUR_TYPE_BYTE, GREY = 26, 24, 25, 0  # positions and values in the header of a PNG


@dataclass(frozen=True)
class MapsSource(FileSource):
    """Maps of the user's, which all have the same even height and width."""

    num_classes: Annotated[int | None, Range(2)] = None
    """Number of classes; default the largest class + 1."""
    levels: str | None = None
    """The grey levels of PNGs that are classes, in order, separated by commas; default those that the maps have if they
    are few, otherwise every number is a class."""
    colours: Annotated[str | None, Flag(metavar="FILE")] = None
    """The classes in order, one a line: a name, then #rrggbb or three numbers; or a file of such lines. PNGs in colour
    need it; for an array it names the classes."""
    split: SplitSizes = None
    """TRAIN,VAL,TEST as fractions that sum to 1 or as counts; default 0.9,0.05,0.05."""
    flips: bool = False
    """Mirror maps left to right at random, in training only."""

    key: ClassVar[str] = "maps"
    usage: ClassVar[str] = "maps:PATH"
    description: ClassVar[str] = (
        "your own maps: an .npz or .npy (N, height, width), or a folder of PNGs of class indices"
    )
    gives: ClassVar[Shape] = "maps"

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        path = Path(self.path).expanduser().resolve()
        if path.is_dir():
            return load_folder(path, self, progress)
        if self.levels is not None:
            raise ValueError(f"`levels` is only for folders of PNGs; leave it out with {self.name}")
        if path.suffix.lower() == ".png":
            raise ValueError(f"{path} is a single image; expected an .npz, an .npy or a folder of PNGs")
        arrays, given, notes = read_arrays(path)
        for name, array in arrays.items():
            check_maps(array.shape, f"{path} [{name}]" if name else str(path))
        categories = () if self.colours is None else Colours.of_text(self.colours).categories
        if categories and self.num_classes not in (None, len(categories)):
            raise ValueError(f"`colours` names {len(categories)} classes, but `num_classes` is {self.num_classes}")
        num = len(categories) or None
        data = load_arrays(arrays, self, num_classes=num, given=given, source=path, notes=notes, progress=progress)
        return replace(data, spec=replace(data.spec, categories=categories))


def check_maps(shape: tuple[int, ...], where: str) -> None:
    """Raise a ValueError if a shape is not (N, height, width) with an even height and width."""
    if len(shape) != 3:
        raise ValueError(f"{where} has shape {shape}; expected maps, (N, height, width)")
    if shape[1] % 2 or shape[2] % 2:
        raise ValueError(f"{where}: maps of {shape[1]} x {shape[2]}; expected an even height and width")


def load_folder(folder: Path, asked: MapsSource, progress: Progress) -> Data:
    """Load PNGs from the subfolders train, val and test, or those of the folder itself, sorted by name and split.

    Where the PNGs lie in subfolders of these, the name of the subfolder is a label of the map, called class.
    """
    has_splits = all((folder / name).is_dir() for name in SPLITS)
    files = {name: pngs_in(folder / name) for name in SPLITS} if has_splits else {"": pngs_in(folder)}
    check_links(folder, [folder / name for name in files] + [file for found in files.values() for file in found])
    for name, found in files.items():
        if not found:
            raise ValueError(
                f"there are no PNGs in {folder / name}; expected maps there, or in its subfolders train, val and test"
            )
    used = {file for found in files.values() for file in found}
    ignored = [file for file in sorted(folder.rglob("*")) if file.is_file() and file not in used]
    notes = [f"ignored {len(ignored)} other files, the first is {ignored[0]}"] if ignored else []
    levels = Levels.of_text(asked.levels) if asked.levels else None
    colours = Colours.of_text(asked.colours) if asked.colours else None
    num_classes = asked.num_classes
    if levels and colours:
        raise ValueError("`levels` are for grey images and `colours` for colour images; give only one of them")
    with progress("Reading maps", len(used)) as advance:
        arrays = {name: read_maps(found, num_classes, colours or levels, advance) for name, found in files.items()}
    if levels is None and colours is None and num_classes is None:
        levels = Levels.found_in(arrays.values())
        if levels is not None:
            arrays = {name: levels.classes_of(maps, str(folder)) for name, maps in arrays.items()}
            notes.append(f"the grey levels {levels.text} are classes 0 to {len(levels.values) - 1}")
    named = colours or levels
    num_classes = num_classes if named is None else len(named.categories)
    labels = {name: [file.parent.name for file in found] for name, found in files.items()}
    is_labelled = all(file.parent != folder / name for name, found in files.items() for file in found)
    given = Given(labels={name: {"class": np.array(found)} for name, found in labels.items()}) if is_labelled else None
    data = load_arrays(arrays, asked, given=given, num_classes=num_classes, where=str(folder), progress=progress)
    names = [str(file.relative_to(folder)) for found in files.values() for file in found]
    data.name_examples(names)
    categories = named.categories if named else ()
    values = levels.values if levels else range(data.spec.num_classes)
    shown = [] if colours else png_palette(next(iter(files.values()))[0])[: max(values) + 1]
    if len(set(shown)) == max(values) + 1:  # the palette of the PNGs gives each class a colour
        names = [name for name, _ in categories] or [str(k) for k in values]
        categories = tuple((name, shown[v]) for name, v in zip(names, values, strict=True))
    data = replace(data, spec=replace(data.spec, categories=categories, levels=levels.text if levels else ""))
    return replace(data, notes=(*data.notes, *notes))


def read_maps(
    files: list[Path], num_classes: int | None, named: Levels | Colours | None, advance: Advance
) -> np.ndarray:
    """Return the classes of PNGs that all have the same size: (N, height, width)."""
    maps: list[np.ndarray] = []
    for file in files:
        with file.open("rb") as stream:
            is_coloured = isinstance(named, Colours)
            pixels = read_pixels(stream, str(file), ("RGB",)) if is_coloured else read_indices(stream, str(file))
        if named is not None:
            pixels = named.classes_of(pixels, str(file))
        if num_classes is not None and int(pixels.max()) >= num_classes:
            raise ValueError(
                f"{file} has class {int(pixels.max())}, but num_classes is {num_classes}; classes run from 0"
            )
        if not maps:
            check_maps((1, *pixels.shape), str(file))
        elif pixels.shape != maps[0].shape:
            (height, width), shape = pixels.shape, maps[0].shape
            raise ValueError(
                f"{file} is {height} x {width}, but {files[0].name} is {shape[0]} x {shape[1]}; "
                "all maps of a folder must have the same size"
            )
        maps.append(pixels)
        advance(1)
    return np.stack(maps)


def read_map(file: Path, spec: DataSpec) -> np.ndarray:
    """Return the classes of one PNG in the form of a run's own maps: (height, width) uint8."""
    named: Levels | Colours | None = Levels.of_text(spec.levels) if spec.levels else None
    with opened_png(file) as stream:
        if named is None and spec.categories and is_colour_png(stream):
            pixels = Colours(spec.categories).classes_of(read_pixels(stream, str(file), ("RGB",)), str(file))
        else:
            pixels = read_indices(stream, str(file))
            pixels = pixels if named is None else named.classes_of(pixels, str(file))
    if int(pixels.max()) >= spec.num_classes:
        raise ValueError(f"{file} has class {int(pixels.max())}, but the run's maps have {spec.num_classes} classes")
    return pixels


def read_mask(file: Path) -> np.ndarray:
    """Return which pixels of a PNG are not black: (height, width) booleans."""
    with opened_png(file) as stream:
        modes = ("RGB",) if is_colour_png(stream) else INDEX_MODES
        pixels = read_pixels(stream, str(file), modes)
    return np.asarray(pixels > 0 if pixels.ndim == 2 else (pixels > 0).any(axis=-1))


def opened_png(file: Path) -> IO[bytes]:
    """Open a file, or say in one line why that is not possible."""
    try:
        return file.expanduser().open("rb")
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror}") from error


def is_colour_png(file: IO[bytes]) -> bool:
    """Whether the header of a PNG says that its pixels are colours; the file is left at its beginning."""
    header = file.read(HEADER_BYTES)
    file.seek(0)
    return len(header) == HEADER_BYTES and header[COLOUR_TYPE_BYTE] in (2, 6)


def pngs_in(folder: Path) -> list[Path]:
    """Return the PNG files in a folder, sorted by name; if it has none, those of its subfolders, shuffled."""
    found = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".png")
    if found:
        return found
    inside = sorted(file for part in folder.iterdir() if part.is_dir() for file in part.glob("*.[pP][nN][gG]"))
    return [inside[row] for row in np.random.default_rng(0).permutation(len(inside))]  # every split has every label


def png_palette(file: Path) -> list[str]:
    """Return the colours of the palette of a PNG as #rrggbb; an empty list if it has no palette."""
    from PIL import Image

    with Image.open(file, formats=("PNG",)) as image:
        values = image.getpalette("RGB") if image.mode == "P" else None
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in zip(*[iter(values or [])] * 3, strict=True)]


def read_indices(file: IO[bytes], where: str) -> np.ndarray:
    """Return the grey levels or palette indices of a PNG: (height, width) uint8."""
    header = file.read(HEADER_BYTES)
    file.seek(0)
    pixels = read_pixels(file, where, INDEX_MODES)
    depth = header[DEPTH_BYTE]
    if header[COLOUR_TYPE_BYTE] == GREY and depth in (2, 4):  # Pillow scales these to 0..255
        pixels = pixels // (255 // (2**depth - 1))
    for value in (int(pixels.max()), int(pixels.min())):
        if not 0 <= value < MAX_CHARACTERS:
            raise ValueError(f"{where} has class {value}; expected 0 to {MAX_CHARACTERS - 1}")
    return pixels.astype(np.uint8)


def read_pixels(file: IO[bytes], where: str, modes: tuple[str, ...]) -> np.ndarray:
    """Return the pixels of a PNG that has one of the given modes; `where` names it in error messages."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file, formats=("PNG",)) as image:
            check_unpacked(image.size[0] * image.size[1] * len(image.getbands()), num_bytes_of(file), where)
            if getattr(image, "n_frames", 1) > 1:
                raise ValueError(f"{where} is animated; expected a single image")
            if image.mode in modes:
                return np.asarray(image)
            if "RGB" in modes and image.mode in ("RGBA", "P"):
                return np.asarray(image.convert("RGB"))
            if "RGB" in modes:
                raise ValueError(f"{where} is not a colour image (its mode is {image.mode}); leave out `colours`")
            raise ValueError(
                f"{where} is a colour image (its mode is {image.mode}); expected one class index per pixel: "
                "a PNG with a palette or of grey levels; or set `colours` to say which colour is which class"
            )
    except UnpackingError:
        raise
    except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError, *DAMAGED_PNG) as error:
        raise ValueError(f"{where} cannot be read as a PNG: {error}") from error


def num_bytes_of(file: IO[bytes]) -> int:
    """Return the size of an open file, which is left where it was."""
    here = file.tell()
    size = file.seek(0, 2)
    file.seek(here)
    return size


def nearest(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Scale a map by nearest-neighbour interpolation, aligned at pixel centres: (H, W) -> (height, width)."""
    rows, columns = (
        np.floor((np.arange(new) + 0.5) * old / new).astype(np.int64)
        for old, new in zip(pixels.shape, (height, width), strict=True)
    )
    return pixels[rows[:, None], columns]
