"""Maps of classes: an .npz or .npy of (N, height, width), or a folder of PNGs whose pixels are class indices."""

from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from unordinal.config import DataConfig
from unordinal.data.arrays import SPLITS, load_array_file, load_arrays
from unordinal.data.levels import Colours, Levels
from unordinal.data.spec import MAX_CHARACTERS
from unordinal.data.splits import Data
from unordinal.progress import Advance, Progress

HEIGHT, WIDTH = 32, 64  # where maps are drawn or scaled, unless told otherwise
INDEX_MODES = ("P", "L", "1", "I", "I;16")  # of PNGs whose pixels are single numbers
HEADER_BYTES, DEPTH_BYTE, KIND_BYTE, GREY = 26, 24, 25, 0  # of a PNG's header


def load_maps(path: Path, config: DataConfig, progress: Progress) -> Data:
    """Maps of one even size; training ones are mirrored at random where `flips` asks for it."""
    path = path.expanduser().resolve()
    for name, value in (("length", config.length), ("map_height", config.map_height), ("map_width", config.map_width)):
        if value is not None:
            raise ValueError(f"maps keep the size they have; leave out `{name}` {value}")
    if path.is_dir():
        return load_folder(path, config, progress)
    if path.suffix.lower() == ".png":
        raise ValueError(f"{path} is one picture; expected an .npz, an .npy or a folder of PNGs")
    return load_array_file(path, config, progress, check=check_maps)


def check_maps(shape: tuple[int, ...], where: str) -> None:
    """Refuse an array that is not (N, height, width) with even sides."""
    if len(shape) != 3:
        raise ValueError(f"{where} has shape {shape}; expected maps, (N, height, width)")
    if shape[1] % 2 or shape[2] % 2:
        raise ValueError(f"{where}: maps of {shape[1]} x {shape[2]}; expected an even height and width")


def load_folder(folder: Path, config: DataConfig, progress: Progress) -> Data:
    """PNGs in order of their names, to be split, or those of train, val and test."""
    has_splits = all((folder / name).is_dir() for name in SPLITS)
    files = {name: pngs_in(folder / name) for name in SPLITS} if has_splits else {"": pngs_in(folder)}
    for name, found in files.items():
        if not found:
            raise ValueError(
                f"no PNGs in {folder / name}; expected label maps there, or in train, val and test below it"
            )
    used = {file for found in files.values() for file in found}
    ignored = [file for file in folder.rglob("*") if file.is_file() and file not in used]
    notes = [f"ignored {len(ignored)} other files, the first {ignored[0]}"] if ignored else []
    levels = Levels.of_text(config.levels) if config.levels else None
    colours = Colours.of_text(config.colours) if config.colours else None
    if levels and colours:
        raise ValueError("`levels` are for grey pictures and `colours` for coloured ones; give one of them")
    with progress("Reading maps", len(used)) as advance:
        arrays = {name: read_maps(found, config, colours or levels, advance) for name, found in files.items()}
    if levels is None and colours is None and config.num_classes is None:
        levels = Levels.found_in(arrays.values())
        if levels is not None:
            arrays = {name: levels.classes_of(maps, str(folder)) for name, maps in arrays.items()}
            notes.append(f"the levels {levels.text} are classes 0 to {len(levels.values) - 1}")
    named = colours or levels
    if named is not None:
        config = replace(config, num_classes=len(named.categories))
    data = load_arrays(arrays, config, progress, source=None, where=str(folder))
    names = [str(file.relative_to(folder)) for found in files.values() for file in found]
    for split in (data.train, data.val, data.test):
        split.names, names = names[: len(split)], names[len(split) :]
    categories = named.categories if named else ()
    values = levels.values if levels else range(data.spec.num_classes)
    shown = [] if colours else png_palette(next(iter(files.values()))[0])[: max(values) + 1]
    if len(set(shown)) == max(values) + 1:  # the pictures themselves say how their classes are to be shown
        names = [name for name, _ in categories] or [str(k) for k in values]
        categories = tuple((name, shown[v]) for name, v in zip(names, values, strict=True))
    data = replace(data, spec=replace(data.spec, categories=categories, levels=levels.text if levels else ""))
    return replace(data, notes=(*data.notes, *notes))


def read_maps(files: list[Path], config: DataConfig, named: Levels | Colours | None, advance: Advance) -> np.ndarray:
    """The classes of some PNGs of one size: (N, height, width)."""
    maps: list[np.ndarray] = []
    for file in files:
        with file.open("rb") as stream:
            is_coloured = isinstance(named, Colours)
            pixels = read_pixels(stream, str(file), ("RGB",)) if is_coloured else read_indices(stream, str(file))
        if named is not None:
            pixels = named.classes_of(pixels, str(file))
        if config.num_classes is not None and int(pixels.max()) >= config.num_classes:
            raise ValueError(
                f"{file} has class {int(pixels.max())}, but num_classes is {config.num_classes}; classes run from 0"
            )
        if not maps:
            check_maps((1, *pixels.shape), str(file))
        elif pixels.shape != maps[0].shape:
            (height, width), shape = pixels.shape, maps[0].shape
            raise ValueError(
                f"{file} is {height} x {width}, but {files[0].name} is {shape[0]} x {shape[1]}; "
                "all maps of a folder must have one size"
            )
        maps.append(pixels)
        advance(1)
    return np.stack(maps)


def pngs_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() == ".png")


def png_palette(file: Path) -> list[str]:
    """The colours of a PNG's palette, as #rrggbb; none where it has no palette."""
    from PIL import Image

    with Image.open(file, formats=("PNG",)) as image:
        values = image.getpalette("RGB") if image.mode == "P" else None
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in zip(*[iter(values or [])] * 3, strict=True)]


def read_indices(file: IO[bytes], where: str) -> np.ndarray:
    """The number of every pixel of a grey PNG or one with a palette: (height, width) uint8."""
    header = file.read(HEADER_BYTES)
    file.seek(0)
    pixels = read_pixels(file, where, INDEX_MODES).astype(np.int64)
    depth = header[DEPTH_BYTE]
    if header[KIND_BYTE] == GREY and depth in (2, 4):  # which Pillow stretches to 0..255
        pixels //= 255 // (2**depth - 1)
    for value in (int(pixels.max()), int(pixels.min())):
        if not 0 <= value < MAX_CHARACTERS:
            raise ValueError(f"{where} has class {value}; expected 0 to {MAX_CHARACTERS - 1}")
    return pixels.astype(np.uint8)


def read_pixels(file: IO[bytes], where: str, modes: tuple[str, ...]) -> np.ndarray:
    """The pixels of a PNG of one of some modes; `where` is what a complaint calls it."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file, formats=("PNG",)) as image:
            if getattr(image, "n_frames", 1) > 1:
                raise ValueError(f"{where} is animated; expected one picture")
            if image.mode in modes:
                return np.asarray(image)
            if "RGB" in modes and image.mode in ("RGBA", "P"):
                return np.asarray(image.convert("RGB"))
            if "RGB" in modes:
                raise ValueError(f"{where} is not in colour ({image.mode}); leave out `colours`")
            raise ValueError(
                f"{where} has colours ({image.mode}); expected one class index per pixel: "
                "a PNG with a palette or of grey levels, or `colours` that say which is which class"
            )
    except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{where} is not a PNG that can be read: {error}") from error


def nearest(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """A map scaled by its nearest pixels, the centres of the new ones: (H, W) -> (height, width)."""
    rows, columns = (
        np.floor((np.arange(new) + 0.5) * old / new).astype(np.int64)
        for old, new in zip(pixels.shape, (height, width), strict=True)
    )
    return pixels[rows[:, None], columns]


def check_own(config: DataConfig, what: str, num_classes: int) -> None:
    """Refuse to cut or to count anew what has a split, a shape and classes of its own."""
    for name, value in (("`split`", config.split), ("`length`", config.length)):
        if value is not None:
            raise ValueError(f"{what} have a split and a shape of their own; leave out {name} {value}")
    if config.num_classes not in (None, num_classes):
        raise ValueError(f"{what} have {num_classes} classes; leave out `num_classes` {config.num_classes}")


def sides(config: DataConfig) -> tuple[int, int]:
    """Height and width of maps that are drawn or scaled."""
    height = HEIGHT if config.map_height is None else config.map_height
    width = WIDTH if config.map_width is None else config.map_width
    for name, side in (("`map_height`", height), ("`map_width`", width)):
        if side < 2 or side % 2:
            raise ValueError(f"{name} must be even and at least 2, got {side}")
    return height, width
