"""The data of a run: its own, found again, or others that its model can score."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unordinal.config import DataConfig, Shape
from unordinal.data import check_shape, data_from_array, load_data, parse_name, resolve_name, shape_of
from unordinal.data.splits import Data
from unordinal.progress import Progress, silent

if TYPE_CHECKING:
    from unordinal.api import Run

WHOLE = "0,0,1"  # a split that is all test


def given_shape(data: Any) -> Shape:
    """Whether data hold sequences or maps, before they are loaded."""
    if isinstance(data, str):
        return shape_of(data)
    if isinstance(data, Data):
        return "maps" if data.spec.is_map else "sequences"
    first: Any = next(iter(data.values()), 0) if isinstance(data, dict) else data
    return "maps" if np.ndim(first) == 3 else "sequences"


def loaded_data(data: Any, config: DataConfig, run: "Run | None" = None, progress: Progress = silent) -> Data:
    """Data from whatever a caller gave: a data set by name, an array, or data that are loaded already."""
    if isinstance(data, Data):
        return data
    if isinstance(data, str):
        return load_data(replace(config, name=data), vocabulary=run.vocabulary if run else None, progress=progress)
    return data_from_array(data, replace(config, name="array"))


def data_of(
    run: "Run", data: Any = None, progress: Progress = silent, *, split: str | None = None, is_whole: bool = False
) -> Data:
    """The data a run was trained on, or others in its classes; refuse what its model cannot score.

    Others are cut by `split`, or with `is_whole` not at all: everything is in their test split.
    """
    if data is None:
        return own_data(run, progress)
    data = os.fspath(data) if isinstance(data, os.PathLike) else data
    config = run.config.data
    by_name = isinstance(data, str)
    name = resolve_name(data) if by_name else "array"
    dataset = parse_name(name)[0] if by_name else None
    if dataset is None or (is_whole and split is None and not dataset.has_split):
        split = WHOLE
    elif split is None and name == config.name:
        split = config.split
    if by_name:
        check_shape(name, wants_maps=run.spec.is_map, who=str(run.folder.path))
        check_format(run, name)
    has_pictures = by_name and Path(parse_name(name)[1]).is_dir()  # whose levels or colours are the run's classes
    height, width = run.spec.event_shape if dataset is not None and dataset.is_sized else (None, None)
    config = replace(
        config,
        split=split,
        length=None if run.spec.is_map else run.spec.event_shape[0],
        letters=config.letters if dataset is not None and dataset.has_letters else None,
        num_classes=None if dataset is not None and dataset.has_classes else run.spec.num_classes,
        map_height=height,
        map_width=width,
        levels=run.spec.levels or None if has_pictures else None,
        colours=config.colours if has_pictures else None,
        flips=False,  # nothing is trained on them
    )
    loaded = loaded_data(name if by_name else data, config, run, progress)
    check_alike(run, loaded, name)
    if split == WHOLE:
        loaded.test.label = Path(parse_name(name)[1]).name or name if by_name else "the array"
    return loaded


TEXTS = ("docs", "text8", "enwik8", "text")  # data sets whose classes are characters
CODES = ("array", "fasta")  # data sets whose classes are numbers, or letters that name them


def check_format(run: "Run", name: str) -> None:
    """Refuse a text for a model of an array or of FASTA sequences, and the other way round."""
    own, other = (known.partition(":")[0] for known in (run.config.data.name, name))
    if own in TEXTS and other in CODES:
        raise ValueError(f"{run.folder.path} is a model of text, but {name} holds numbers or letters of sequences")
    if own in CODES and other in TEXTS:
        raise ValueError(f"{run.folder.path} is a model of {own}:PATH, but {name} is a text")


def own_data(run: "Run", progress: Progress) -> Data:
    """The data a run was trained on, found again."""
    if run.data is not None:
        return run.data
    name = run.config.data.name
    if name == "array":
        raise ValueError(f"{run.folder.path} was trained on an array from Python; give the data to score")
    try:
        loaded = loaded_data(name, run.config.data, run, progress)
    except ValueError as error:
        raise ValueError(f"{error}; or give the data to score with `data`") from error
    if loaded.spec.fingerprint != run.spec.fingerprint:
        raise ValueError(f"{name} has changed since {run.folder.path} was trained on it; give it with `data`")
    return loaded


def check_alike(run: "Run", loaded: Data, name: str) -> None:
    """Refuse data with other classes or another number of axes than a run's own."""
    other = f"{name} is of another data set than {run.folder.path}: "
    if loaded.spec.num_classes != run.spec.num_classes or len(loaded.spec.event_shape) != len(run.spec.event_shape):
        raise ValueError(
            f"{other}it has {loaded.spec.num_classes} classes and "
            f"examples of shape {loaded.spec.event_shape}, not {run.spec.num_classes} and {run.spec.event_shape}"
        )
    names, own_names = ([name for name, _ in spec.categories] for spec in (loaded.spec, run.spec))
    if names and own_names and names != own_names:
        raise ValueError(f"{other}its classes are {', '.join(names)}, not {', '.join(own_names)}")
