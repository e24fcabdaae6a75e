"""Data sets of classes: texts, arrays, FASTA files and maps, split into train, val and test and memory-mapped."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unordinal.config import DataConfig, Shape
from unordinal.data.arrays import array_axes, load_array_file, load_arrays
from unordinal.data.cityscapes import load_cityscapes
from unordinal.data.docs import load_docs
from unordinal.data.download import load_archive
from unordinal.data.fasta import load_fasta
from unordinal.data.guess import guess_format
from unordinal.data.maps import load_maps
from unordinal.data.spec import DataSpec, Vocabulary
from unordinal.data.splits import Data, Split
from unordinal.data.streets import load_streets
from unordinal.data.text import TextFile, load_text
from unordinal.data.toy import load_eight_gaussians
from unordinal.names import unknown
from unordinal.progress import Progress, silent

__all__ = [
    "DATASETS",
    "Data",
    "DataSpec",
    "Split",
    "Vocabulary",
    "check_shape",
    "data_from_array",
    "load_data",
    "located_name",
    "parse_name",
    "portable_name",
    "resolve_name",
    "shape_of",
]


@dataclass(frozen=True)
class Dataset:
    """An entry of DATASETS: how a data set is named, what it contains and how it is loaded."""

    usage: str  # how to write its name, such as text:PATH
    description: str
    load: Callable[[str, DataConfig, Vocabulary | None, Progress], Data]  # takes the part of the name after the colon
    gives: Literal["sequences", "maps", "either"] = "sequences"  # the shape of its examples
    has_split: bool = True  # whether it comes with a split of its own; the user's own files are split as configured
    has_classes: bool = True  # whether it defines its classes; if not, a trained model's number of classes is used
    has_letters: bool = False  # whether `letters` may name its classes
    is_sized: bool = False  # whether its maps are drawn or scaled to `map_height` and `map_width`


DATASETS: dict[str, Dataset] = {
    "docs": Dataset(
        "docs",
        "docstrings of Python's standard library (no download; alphabet text8, chars or bytes)",
        lambda _argument, config, vocabulary, progress: load_docs(config, vocabulary, progress),
    ),
    "text8": Dataset(
        "text8",
        "100 million characters of Wikipedia, a-z and space (downloaded once, 31 MB)",
        lambda _argument, config, vocabulary, progress: load_archive("text8", config, vocabulary, progress),
    ),
    "enwik8": Dataset(
        "enwik8",
        "100 million bytes of Wikipedia (downloaded once, 36 MB)",
        lambda _argument, config, vocabulary, progress: load_archive("enwik8", config, vocabulary, progress),
    ),
    "eight-gaussians": Dataset(
        "eight-gaussians",
        "eight Gaussians on a circle, quantised to 91 x 91 cells, with exact probabilities (generated)",
        lambda _argument, config, _vocabulary, _progress: load_eight_gaussians(config),
    ),
    "text": Dataset(
        "text:PATH",
        "your own text file: plain, .gz, .xz, .bz2 or .zip (alphabet text8, chars or bytes)",
        lambda argument, config, vocabulary, progress: load_text(
            TextFile.of(Path(argument)), config, progress, vocabulary=vocabulary
        ),
        has_split=False,
    ),
    "array": Dataset(
        "array:PATH",
        "your own classes: an .npz or .npy of integers, (N, length), (N, height, width) or one long sequence (N,)",
        lambda argument, config, _vocabulary, progress: load_array_file(Path(argument), config, progress),
        gives="either",
        has_split=False,
        has_classes=False,
        has_letters=True,
    ),
    "fasta": Dataset(
        "fasta:PATH",
        "your own DNA, RNA or protein sequences, one class per letter",
        lambda argument, config, vocabulary, progress: load_fasta(Path(argument), config, vocabulary, progress),
        has_split=False,
        has_letters=True,
    ),
    "streets": Dataset(
        "streets",
        "random street scenes of 8 categories, new ones for every training batch (no download; any even size)",
        lambda _argument, config, _vocabulary, progress: load_streets(config, progress),
        gives="maps",
        is_sized=True,
    ),
    "cityscapes": Dataset(
        "cityscapes[:PATH]",
        "the paper's maps of 8 categories, from gtFine_trainvaltest.zip or its folder (scaled to any even size)",
        lambda argument, config, _vocabulary, progress: load_cityscapes(argument, config, progress),
        gives="maps",
        is_sized=True,
    ),
    "maps": Dataset(
        "maps:PATH",
        "your own maps: an .npz or .npy (N, height, width), or a folder of PNGs of class indices",
        lambda argument, config, _vocabulary, progress: load_maps(Path(argument), config, progress),
        gives="maps",
        has_split=False,
        has_classes=False,
    ),
}


def parse_name(name: str) -> tuple[Dataset, str]:
    """Return the entry of DATASETS that a name refers to, and its path or "".

    The name of a file or folder that exists is accepted as well; its format is recognised from its ending and content.
    """
    key, colon, argument = name.partition(":")
    dataset = DATASETS.get(key)
    if dataset is None and Path(name).expanduser().exists():
        return DATASETS[guess_format(Path(name))], name
    if dataset is None and not colon and (Path(name).suffix or "/" in name):
        raise ValueError(
            f"there is no file {name}; expected a text file, an .npy or .npz, a FASTA file or a folder of PNGs"
        )
    if dataset is None:
        usages = {d.usage: known for known, d in DATASETS.items()}
        raise unknown("data", name, usages, like=usages)
    takes_argument = ":" in dataset.usage
    if takes_argument and not argument and "[" not in dataset.usage:
        raise ValueError(f"data {name!r} lacks a path; expected {dataset.usage}")
    if colon and not takes_argument:
        raise ValueError(f"data {key!r} takes no argument, got {name!r}")
    return dataset, argument


def check_shape(name: str, *, wants_maps: bool, who: str) -> None:
    """Raise a ValueError if the examples of a data set are not of the shape, maps or sequences, that `who` takes."""
    dataset, _ = parse_name(name)
    if wants_maps and dataset.gives == "sequences":
        raise ValueError(f"{who} takes maps, but {name} gives sequences; use streets, cityscapes or maps:PATH")
    if not wants_maps and dataset.gives == "maps":
        raise ValueError(f"{who} takes sequences, but {name} gives maps; use a preset for maps, cityscapes/...")


def resolve_name(name: str) -> str:
    """Return the name with its path made absolute, so that a run finds its data from any working folder."""
    dataset, argument = parse_name(name)
    key = next(key for key, known in DATASETS.items() if known is dataset)
    return f"{key}:{Path(argument).expanduser().resolve()}" if argument else name


def portable_name(name: str, folder: Path) -> str:
    """Return the name with its path made relative to a run's folder, so that the two can be moved together."""
    key, colon, argument = name.partition(":")
    return f"{key}:{Path(os.path.relpath(argument, folder.resolve())).as_posix()}" if colon else name


def located_name(name: str, folder: Path) -> str:
    """Undo `portable_name`: return the name with its path made absolute again."""
    key, colon, argument = name.partition(":")
    return f"{key}:{(folder.resolve() / argument).resolve()}" if colon else name


def shape_of(name: str) -> Shape:
    """Return whether the named data set contains sequences or maps; arrays with three axes contain maps."""
    dataset, argument = parse_name(name)
    if dataset.gives != "either":
        return dataset.gives
    return "maps" if array_axes(Path(argument)) == 3 else "sequences"


def load_data(config: DataConfig, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
    """Load a data set by name.

    The first time, texts and files are encoded and stored in the cache folder; later they are read from there.

    Args:
        config: the name of the data set or the path of a file, and how to encode and split it.
        vocabulary: the vocabulary to encode a text or FASTA file with, usually that of a trained model. By default it
            follows from `config` and from the data.
        progress: receives the progress of downloading and preparing the data.

    Returns:
        The data set with its splits.

    Raises:
        ValueError: if the data cannot be read, or if a setting of `config` does not apply to them.

    >>> data = load_data(DataConfig("eight-gaussians"))
    >>> data.spec.num_classes, data.spec.event_shape, len(data.test)
    (91, (2,), 10000)
    """
    if config.length is not None and config.length < 1:
        raise ValueError(f"the sequence length must be at least 1, got {config.length}")
    if config.num_classes is not None and config.num_classes < 2:
        raise ValueError(f"the number of classes must be at least 2, got {config.num_classes}")
    config = replace(config, name=resolve_name(config.name))
    dataset, argument = parse_name(config.name)
    for name, value in (("`map_height`", config.map_height), ("`map_width`", config.map_width)):
        if value is not None and dataset.gives != "maps":
            raise ValueError(
                f"{name} is only for maps that are drawn or scaled; leave out {name} {value} with {config.name}"
            )
    if config.letters is not None and not dataset.has_letters:
        raise ValueError(f"`letters` names the classes of arrays and FASTA files; leave it out with {config.name}")
    has_pictures = dataset is DATASETS["maps"] and Path(argument).is_dir()
    for name, text in (("levels", config.levels), ("colours", config.colours)):
        if text is not None and not has_pictures:
            raise ValueError(f"`{name}` is only for folders of PNGs; leave it out with {config.name}")
    if config.flips and dataset.gives == "sequences":
        raise ValueError(f"`flips` mirrors maps left to right; leave it out with {config.name}, which gives sequences")
    return dataset.load(argument, config, vocabulary, progress)


def data_from_array(array: Any, config: DataConfig | None = None) -> Data:
    """Make a data set from arrays or tensors of integer classes.

    Args:
        array: N examples (N, *D), or one long sequence of N symbols (N,) that is cut into sequences of
            `config.length`; or a dict of three such arrays with the keys train, val and test.
        config: how to split and name the classes; by default 90% train, 5% val and 5% test.

    Returns:
        The data set with its splits.

    >>> data_from_array(np.arange(600).reshape(100, 6) % 3).spec.event_shape
    (6,)
    """
    arrays = dict(array) if isinstance(array, dict) else {"": array}
    if isinstance(array, dict) and set(arrays) != {"train", "val", "test"}:
        raise ValueError(f"expected the keys train, val and test, got {', '.join(map(str, arrays))}")
    arrays = {name: np.asarray(values) for name, values in arrays.items()}
    return load_arrays(arrays, config or DataConfig("array"), silent, source=None)
