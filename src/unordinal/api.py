"""Training and scoring from Python, in one call each."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unordinal.config import OWN, DataConfig, OwnModel, RunConfig, Shape, with_settings
from unordinal.data import check_kind, data_from_array, load_data, parsed_name, resolved_name, shape_of
from unordinal.data.splits import Data
from unordinal.evaluate.likelihood import Score, score_split
from unordinal.model import CategoricalModel
from unordinal.progress import Progress, silent
from unordinal.recipes import configured, shape_wanted
from unordinal.train.log import Reporter
from unordinal.train.run import Run, RunFolder, load
from unordinal.train.start import train_run

WHOLE = "0,0,1"  # a split that is all test


def fit(
    model: str | CategoricalModel,
    data: Any,
    *,
    out: str | os.PathLike[str],
    size: str = "tiny",
    resume: bool = False,
    device: str = "cpu",
    reporter: Reporter | None = None,
    **settings: Any,
) -> Run:
    """Train a model by name, an experiment of the paper, or a model of your own; return it with its best weights.

    `data` is a NumPy array or tensor of classes, (N, *D) or one long (N,); a dict of them with train, val and test; a
    `Data`; or a data set by name. `settings` are those of the data, the model, training and the optimiser: steps,
    minutes, batch_size, lr, seed, ema, ...; a setting that several parts have is given by its dotted name, as in
    `**{"net.width": 64}`.
    """
    own = model if isinstance(model, CategoricalModel) else None
    name = OWN if own is not None else str(model)
    if own is not None:
        base = RunConfig(OWN, OWN, "tiny", DataConfig(""), OwnModel(type(own).__name__))
    else:
        wanted = shape_wanted(name)
        if isinstance(data, str) and wanted is not None:
            check_kind(data, wants_maps=wanted == "maps", who=name)
        base = configured(name, size, wanted or given_shape(data))
    config = with_settings(base, settings)
    loaded = loaded_data(data, config.data)
    config = replace(config, data=replace(config.data, name=loaded.spec.name))
    with torch.random.fork_rng():
        result = train_run(
            config, loaded, RunFolder(Path(out)), resume=resume, model=own, device=device, reporter=reporter
        )
        if result.interrupted_by == signal.SIGINT:  # all is saved; now the signal may do what it does
            raise KeyboardInterrupt
        if result.interrupted_by is not None:
            signal.raise_signal(result.interrupted_by)
        run = load(out, device=device, model=own)
    return replace(run, data=loaded)


def given_shape(data: Any) -> Shape:
    """Whether data hold sequences or maps, before they are loaded."""
    if isinstance(data, str):
        return shape_of(data)
    if isinstance(data, Data):
        return "maps" if data.spec.is_map else "sequences"
    first: Any = next(iter(data.values()), 0) if isinstance(data, dict) else data
    return "maps" if np.ndim(first) == 3 else "sequences"


def score(
    run: Run, data: Any = None, *, split: str | None = None, progress: Progress = silent, **settings: Any
) -> Score:
    """Bits per dimension of a run on its own data, or on `data`; `settings` are those of `score_split`.

    Of its own data, and of a `Data`, a run's test split is scored unless another is asked for. `data` may also be a
    data set by name or an array: all of it is scored, unless it has a split of its own or one is asked for.
    """
    loaded = data if isinstance(data, Data) else data_of(run, data, progress, is_whole=split is None)
    name = "test" if split is None else split
    return score_split(
        run.model, loaded.split(name), split_name=name, unit=run.spec.unit, progress=progress, **settings
    )


def loaded_data(data: Any, config: DataConfig, run: Run | None = None, progress: Progress = silent) -> Data:
    """Data from whatever a caller gave: a data set by name, an array, or data that are loaded already."""
    if isinstance(data, Data):
        return data
    if isinstance(data, str):
        return load_data(replace(config, name=data), vocabulary=run.vocabulary if run else None, progress=progress)
    return data_from_array(data, replace(config, name="array"))


def data_of(
    run: Run, data: Any = None, progress: Progress = silent, *, split: str | None = None, is_whole: bool = False
) -> Data:
    """The data a run was trained on, or others in its classes; refuse what its model cannot score.

    Others are cut by `split`, or with `is_whole` not at all: everything is in their test split.
    """
    if data is None:
        return own_data(run, progress)
    config = run.config.data
    by_name = isinstance(data, str)
    name = resolved_name(data) if by_name else "array"
    dataset = parsed_name(name)[0] if by_name else None
    if dataset is None or (is_whole and split is None and not dataset.has_split):
        split = WHOLE
    elif split is None and name == config.name:
        split = config.split
    if by_name:
        check_kind(name, wants_maps=run.spec.is_map, who=str(run.folder.path))
    height, width = run.spec.event_shape if dataset is not None and dataset.is_sized else (None, None)
    config = replace(
        config,
        split=split,
        num_classes=None if dataset is not None and dataset.has_classes else run.spec.num_classes,
        map_height=height,
        map_width=width,
        flips=False,  # nothing is trained on them
    )
    loaded = loaded_data(name if by_name else data, config, run, progress)
    check_alike(run, loaded, name)
    return loaded


def own_data(run: Run, progress: Progress) -> Data:
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


def check_alike(run: Run, loaded: Data, name: str) -> None:
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
