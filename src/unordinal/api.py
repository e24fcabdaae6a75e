"""Training and scoring from Python, in one call each."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unordinal.config import DataConfig, OptimConfig, RunConfig, TrainConfig
from unordinal.data import check_kind, data_from_array, load_data, resolved_name
from unordinal.data.splits import Data
from unordinal.evaluate.likelihood import Score, score_split
from unordinal.model import CategoricalModel
from unordinal.model_config import MultinomialConfig, takes_maps
from unordinal.presets import preset as named_preset
from unordinal.progress import Progress, silent
from unordinal.train.log import Reporter
from unordinal.train.loop import train
from unordinal.train.run import CUSTOM, Run, RunFolder, load
from unordinal.train.start import start_run


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
    """Train a preset (by name) or a model of your own, and return it with its best weights.

    `data` is a NumPy array or tensor of classes, (N, *D) or one long (N,); a dict of them with train, val and test;
    or a data set by name. `settings` are those of TrainConfig and OptimConfig: steps, minutes, batch_size, lr, seed,
    ema, ...
    """
    custom = isinstance(model, CategoricalModel)
    base = (
        RunConfig(CUSTOM, "tiny", DataConfig("array"), MultinomialConfig())
        if custom
        else named_preset(str(model), size)
    )
    config = with_settings(base, settings)
    if isinstance(data, str) and not custom:
        check_kind(data, wants_maps=takes_maps(config.model), who=str(model))
    loaded = opened(data, config.data)
    loaded.require("train", "val")
    config = replace(config, data=replace(config.data, name=loaded.spec.name))
    folder = RunFolder(Path(out))
    with torch.random.fork_rng():
        made = start_run(config, loaded.spec, folder, resume=resume, model=model if custom else None)  # type: ignore[arg-type]
        result = train(made, loaded, config.train, config.optim, folder, device=device, reporter=reporter)
        if result.interrupted_by == signal.SIGINT:  # all is saved; now the signal may do what it does
            raise KeyboardInterrupt
        if result.interrupted_by is not None:
            signal.raise_signal(result.interrupted_by)
        run = load(out, device=device, model=model if custom else None)  # type: ignore[arg-type]
    return replace(run, data=loaded)


def score(run: Run, data: Any = None, *, split: str = "test", progress: Progress = silent, **settings: Any) -> Score:
    """Bits per dimension of a run on its own data, or on `data`; `settings` are those of `score_split`.

    `data` may be a data set by name, of which `split` is scored, or an array, all of which is.
    """
    loaded = data if isinstance(data, Data) else data_of(run, data, progress)
    return score_split(run.model, loaded.split(split), split_name=split, progress=progress, **settings)


def data_of(run: Run, data: Any = None, progress: Progress = silent, *, split: str | None = None) -> Data:
    """The data a run was trained on, or others in its classes (cut by `split`); refuse what its model cannot score."""
    config = run.config.data
    if data is None and run.data is not None:
        return run.data
    if data is None:
        if config.name == "array":
            raise ValueError(f"{run.folder.path} was trained on an array from Python; give the data to score")
        try:
            loaded = opened(config.name, config, run, progress)
        except ValueError as error:
            raise ValueError(f"{error}; or give the data to score with --data") from error
        if loaded.spec.fingerprint != run.spec.fingerprint:
            raise ValueError(
                f"{config.name} has changed since {run.folder.path} was trained on it; give it with --data"
            )
        return loaded
    name = resolved_name(data) if isinstance(data, str) else "array"
    if not isinstance(data, str):
        split = WHOLE
    elif split is None and name == config.name:
        split = config.split
    if isinstance(data, str):
        check_kind(name, wants_maps=run.spec.is_map, who=str(run.folder.path))
    has_own_classes = isinstance(data, str) and not data.startswith(("array:", "maps:"))
    # where maps are drawn or scaled, they are to have the size of the run's own
    is_sized = run.spec.is_map and name.partition(":")[0] in ("streets", "cityscapes")
    config = replace(
        config,
        split=split,
        num_classes=None if has_own_classes else run.spec.num_classes,
        map_height=run.spec.event_shape[0] if is_sized else None,
        map_width=run.spec.event_shape[1] if is_sized else None,
    )
    loaded = opened(name if isinstance(data, str) else data, config, run, progress)
    if loaded.spec.num_classes != run.spec.num_classes or len(loaded.spec.event_shape) != len(run.spec.event_shape):
        raise ValueError(
            f"{name} is of another data set than {run.folder.path}: it has {loaded.spec.num_classes} classes and "
            f"examples of shape {loaded.spec.event_shape}, not {run.spec.num_classes} and {run.spec.event_shape}"
        )
    names, own_names = ([name for name, _ in spec.categories] for spec in (loaded.spec, run.spec))
    if names and own_names and names != own_names:
        raise ValueError(
            f"{name} is of another data set than {run.folder.path}: its classes are {', '.join(names)}, "
            f"not {', '.join(own_names)}"
        )
    return loaded


WHOLE = "0,0,1"  # a split that is all test


def opened(data: Any, config: DataConfig, run: Run | None = None, progress: Progress = silent) -> Data:
    """Data from whatever a caller gave."""
    if isinstance(data, str):
        vocabulary = run.vocabulary if run else None
        return load_data(replace(config, name=data), vocabulary=vocabulary, progress=progress)
    return data_from_array(data, replace(config, name="array"))


def with_settings(config: RunConfig, settings: dict[str, Any]) -> RunConfig:
    """A configuration with some of its settings changed, wherever they live."""
    parts: dict[str, Any] = {"data": config.data, "model": config.model, "train": config.train, "optim": config.optim}
    if {"steps", "minutes", "epochs"} & settings.keys():  # a budget given replaces the preset's
        parts["train"] = replace(config.train, steps=None, minutes=None, epochs=None)
    for name, value in settings.items():
        owner = next((key for key, part in parts.items() if name in part.__dataclass_fields__ and name != "name"), None)
        if owner is None:
            known = sorted(f for part in (TrainConfig, OptimConfig) for f in part.__dataclass_fields__)
            raise ValueError(
                f"unknown setting {name!r}; known: {', '.join(known)}, and those of the model and the data"
            )
        parts[owner] = replace(parts[owner], **{name: value})
    return replace(config, **parts)
