"""Maps of classes: an .npz or .npy of (N, height, width), or a folder of PNGs whose pixels are class indices."""

from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from unordinal.config import DataConfig
from unordinal.data.arrays import SPLITS, load_array_file, load_arrays
from unordinal.data.splits import Data, Split
from unordinal.progress import Progress

INDEX_MODES = ("P", "L", "1", "I", "I;16")  # of PNGs whose pixels are single numbers


def load_maps(path: Path, config: DataConfig, progress: Progress) -> Data:
    """Maps of one even size; training ones are mirrored at random unless `flips` is off."""
    path = path.expanduser().resolve()
    for name, value in (("--length", config.length), ("--height", config.map_height), ("--width", config.map_width)):
        if value is not None:
            raise ValueError(f"maps keep the size they have; leave out {name} {value}")
    if path.is_dir():
        data = load_folder(path, config, progress)
    elif path.suffix.lower() == ".png":
        raise ValueError(f"{path} is one picture; expected an .npz, an .npy or a folder of PNGs")
    else:
        data = load_array_file(path, config, progress)
    shape = data.spec.event_shape
    if len(shape) != 2 or data.train.length is not None:
        raise ValueError(f"{path} holds examples of shape {shape}; expected maps, (N, height, width)")
    check_even(shape[0], shape[1], str(path))
    return replace(data, train=Split(data.train.symbols, flips=config.flips))


def load_folder(folder: Path, config: DataConfig, progress: Progress) -> Data:
    """PNGs in order of their names, to be split, or those of train, val and test."""
    has_splits = all((folder / name).is_dir() for name in SPLITS)
    files = {name: sorted((folder / name).glob("*.png")) for name in SPLITS if has_splits} or {
        "": sorted(folder.glob("*.png"))
    }
    empty = [str(folder / name) for name, found in files.items() if not found]
    if empty:
        raise ValueError(f"no PNGs in {empty[0]}; expected label maps there, or in train, val and test below it")
    arrays = {}
    first: Path | None = None
    shape: tuple[int, ...] = ()
    with progress("Reading maps", sum(map(len, files.values()))) as advance:
        for name, found in files.items():
            maps = []
            for file in found:
                pixels = read_indices(file, str(file))
                if config.num_classes is not None and int(pixels.max()) >= config.num_classes:
                    raise ValueError(
                        f"{file} has class {int(pixels.max())}, but num_classes is {config.num_classes}; "
                        "classes run from 0"
                    )
                if first is None:
                    first, shape = file, pixels.shape
                    check_even(shape[0], shape[1], str(file))
                if pixels.shape != shape:
                    height, width = pixels.shape
                    raise ValueError(
                        f"{file} is {height} x {width}, but {first.name} is {shape[0]} x {shape[1]}; "
                        "all maps of a folder must have one size"
                    )
                maps.append(pixels)
                advance(1)
            arrays[name] = np.stack(maps)
    return load_arrays(arrays, config, progress, source=None, where=str(folder))


def read_indices(file: Path | IO[bytes], where: str) -> np.ndarray:
    """The class of every pixel of a PNG: (height, width) uint8; `where` is what a complaint calls it."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            if image.mode not in INDEX_MODES:
                raise ValueError(
                    f"{where} has colours ({image.mode}); expected one class index per pixel: "
                    "a PNG with a palette or of grey levels"
                )
            pixels = np.asarray(image)
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise ValueError(f"{where} is not a PNG that can be read: {error}") from error
    if int(pixels.max()) > 255 or int(pixels.min()) < 0:
        raise ValueError(f"{where} has class {int(pixels.max())}; at most 256 classes are supported")
    return pixels.astype(np.uint8)


def check_even(height: int, width: int, where: str) -> None:
    if height % 2 or width % 2:
        raise ValueError(f"{where}: maps of {height} x {width}; expected an even height and width")


def nearest(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """A map scaled by its nearest pixels, the centres of the new ones: (H, W) -> (height, width)."""
    rows, columns = (
        np.floor((np.arange(new) + 0.5) * old / new).astype(np.int64)
        for old, new in zip(pixels.shape, (height, width), strict=True)
    )
    return pixels[rows[:, None], columns]
