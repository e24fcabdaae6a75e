"""Data sets: text and arrays as classes, split, memory-mapped."""

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
from unordinal.data.guess import guessed_kind
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
    "check_kind",
    "data_from_array",
    "load_data",
    "located_name",
    "parsed_name",
    "portable_name",
    "resolved_name",
    "shape_of",
]


@dataclass(frozen=True)
class Dataset:
    """How a data set is called, what it is, and what loads it: (argument, config, vocabulary, progress) -> Data."""

    usage: str
    description: str
    load: Callable[[str, DataConfig, Vocabulary | None, Progress], Data]
    gives: Literal["sequences", "maps", "either"] = "sequences"
    has_split: bool = True  # of its own; files of one's own are cut as asked for
    has_classes: bool = True  # of its own, or those of a vocabulary; bare numbers take those of a trained model
    has_letters: bool = False  # or may be given some, in place of bare numbers
    is_sized: bool = False  # maps that are drawn or scaled to the size asked for


DATASETS: dict[str, Dataset] = {
    "docs": Dataset(
        "docs",
        "docstrings of Python's standard library (embedded; alphabet text8, chars or bytes)",
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
        "your own text: plain, .gz, .xz, .bz2 or .zip (alphabet text8, chars or bytes)",
        lambda argument, config, vocabulary, progress: load_text(
            TextFile.of(Path(argument)), config, progress, vocabulary=vocabulary
        ),
        has_split=False,
    ),
    "array": Dataset(
        "array:PATH",
        "your own classes: an .npz or .npy of integers, (N, length), (N, height, width) or one long row",
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
        "street scenes of 8 categories, drawn in perspective, new ones for every batch (embedded; of any size)",
        lambda _argument, config, _vocabulary, progress: load_streets(config, progress),
        gives="maps",
        is_sized=True,
    ),
    "cityscapes": Dataset(
        "cityscapes[:PATH]",
        "the paper's maps of 8 categories, from gtFine_trainvaltest.zip or its folder (of any size)",
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


def parsed_name(name: str) -> tuple[Dataset, str]:
    """The entry of DATASETS that a name means, and its file: a path is read as what it is."""
    kind, colon, argument = name.partition(":")
    dataset = DATASETS.get(kind)
    if dataset is None and Path(name).expanduser().exists():
        return DATASETS[guessed_kind(Path(name))], name
    if dataset is None and not colon and (Path(name).suffix or "/" in name):
        raise ValueError(f"no file {name}; expected a text, an .npy or .npz, a FASTA file or a folder of PNGs")
    if dataset is None:
        usages = {d.usage: known for known, d in DATASETS.items()}
        raise unknown("data", name, usages, like=usages)
    takes_argument = ":" in dataset.usage
    if takes_argument and not argument and "[" not in dataset.usage:
        raise ValueError(f"data {name!r} lacks its file; expected {dataset.usage}")
    if colon and not takes_argument:
        raise ValueError(f"data {kind!r} takes no argument, got {name!r}")
    return dataset, argument


def check_kind(name: str, *, wants_maps: bool, who: str) -> None:
    """Refuse a data set by name whose examples are of the other kind than `who` takes."""
    dataset, _ = parsed_name(name)
    if wants_maps and dataset.gives == "sequences":
        raise ValueError(f"{who} takes maps, but {name} gives sequences; use streets, cityscapes or maps:PATH")
    if not wants_maps and dataset.gives == "maps":
        raise ValueError(f"{who} takes sequences, but {name} gives maps; use a preset of maps, cityscapes/...")


def resolved_name(name: str) -> str:
    """The name with its path made absolute, so that a run finds its data from any folder."""
    dataset, argument = parsed_name(name)
    kind = next(key for key, known in DATASETS.items() if known is dataset)
    return f"{kind}:{Path(argument).expanduser().resolve()}" if argument else name


def portable_name(name: str, folder: Path) -> str:
    """The name with its path made relative to a run's folder, so that the run holds no path of this machine."""
    kind, colon, argument = name.partition(":")
    return f"{kind}:{Path(os.path.relpath(argument, folder.resolve())).as_posix()}" if colon else name


def located_name(name: str, folder: Path) -> str:
    """The name that `portable_name` made relative to a run's folder, with its path made absolute again."""
    kind, colon, argument = name.partition(":")
    return f"{kind}:{(folder.resolve() / argument).resolve()}" if colon else name


def shape_of(name: str) -> Shape:
    """Whether a data set by name holds sequences or maps; of an array, by its number of axes."""
    dataset, argument = parsed_name(name)
    if dataset.gives != "either":
        return dataset.gives
    return "maps" if array_axes(Path(argument)) == 3 else "sequences"


def load_data(config: DataConfig, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
    """Prepare (once) and open a data set by name; `vocabulary` is a trained model's, where there is one."""
    if config.length is not None and config.length < 1:
        raise ValueError(f"the sequence length must be at least 1, got {config.length}")
    if config.num_classes is not None and config.num_classes < 2:
        raise ValueError(f"the number of classes must be at least 2, got {config.num_classes}")
    config = replace(config, name=resolved_name(config.name))
    dataset, argument = parsed_name(config.name)
    for name, value in (("`map_height`", config.map_height), ("`map_width`", config.map_width)):
        if value is not None and dataset.gives != "maps":
            raise ValueError(
                f"{name} is for maps that are drawn or scaled; leave out {name} {value} with {config.name}"
            )
    if config.letters is not None and not dataset.has_letters:
        raise ValueError(f"`letters` names the classes of arrays and FASTA files; leave it out with {config.name}")
    has_pictures = dataset is DATASETS["maps"] and Path(argument).is_dir()
    for name, text in (("levels", config.levels), ("colours", config.colours)):
        if text is not None and not has_pictures:
            raise ValueError(f"`{name}` says what the PNGs of a folder mean; leave it out with {config.name}")
    if config.flips and dataset.gives == "sequences":
        raise ValueError(f"`flips` mirrors maps left to right; leave it out with {config.name}, which gives sequences")
    return dataset.load(argument, config, vocabulary, progress)


def data_from_array(array: Any, config: DataConfig | None = None) -> Data:
    """Data from a NumPy array or tensor of classes, (N, *D) examples or (N,) symbols, or a dict of train, val and test.

    >>> data_from_array(np.arange(600).reshape(100, 6) % 3).spec.event_shape
    (6,)
    """
    arrays = dict(array) if isinstance(array, dict) else {"": array}
    if isinstance(array, dict) and set(arrays) != {"train", "val", "test"}:
        raise ValueError(f"expected the keys train, val and test, got {', '.join(map(str, arrays))}")
    arrays = {name: np.asarray(values) for name, values in arrays.items()}
    return load_arrays(arrays, config or DataConfig("array"), silent, source=None)
