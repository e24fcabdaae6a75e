"""What Python users call: `fit`, `load`, `score`, and a `Run` with its methods."""

import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unordinal.config import OWN, DataConfig, OwnModel, RunConfig, Shape, with_settings
from unordinal.console import TrainingReporter
from unordinal.data import check_shape, data_from_array, load_data, parse_name, resolve_name, shape_of
from unordinal.data.spec import DataSpec, Vocabulary
from unordinal.data.splits import Data
from unordinal.evaluate.likelihood import Score, score_split
from unordinal.model import CategoricalModel
from unordinal.progress import Progress, silent
from unordinal.recipes import configured, shape_wanted
from unordinal.tasks.drawing import draw
from unordinal.train.log import Reporter
from unordinal.train.run import RunFolder
from unordinal.train.start import best_device, train_run

WHOLE = "0,0,1"  # a split that is all test
MOST_STEPS = 256  # of a diffusion, unless told: thousands keep a laptop busy for minutes


@dataclass(frozen=True, repr=False)
class Run:
    """A trained model and what belongs to it; unpacks as `model, vocabulary = load(...)`."""

    model: CategoricalModel
    spec: DataSpec
    config: RunConfig
    folder: RunFolder
    data: Data | None = None  # what it was trained on, where this process did that

    @property
    def vocabulary(self) -> Vocabulary | None:
        return self.spec.vocabulary

    def __iter__(self) -> Iterator[Any]:
        return iter((self.model, self.vocabulary))

    def __repr__(self) -> str:
        parameters = sum(p.numel() for p in self.model.parameters())
        bits, shape = self.folder.published_bits, " x ".join(map(str, self.spec.event_shape))
        validated = "" if bits is None else f", validation {bits:.4f} {self.spec.unit}"
        return (
            f"Run {self.folder.path}: {self.config.preset}, size {self.config.size}, {parameters:,} parameters\n"
            f"  data {self.spec.name}: {self.spec.num_classes} classes, examples of {shape}\n"
            f"  step {self.folder.published_step}{validated}"
        )

    def sample(
        self, num: int = 4, *, seed: int = 0, prompt: Any = None, steps: int | str | None = None, **settings: Any
    ) -> Any:
        """Draw samples: a list of texts where the data are text, else classes (N, *D).

        A diffusion takes at most 256 of its steps, `steps="all"` the whole chain. `prompt` may be a text. The other
        `settings` are those of the model's own `sample`.
        """
        if isinstance(prompt, str):
            if self.vocabulary is None:
                raise ValueError(f"a prompt of characters needs text; the classes of {self.spec.name} have none")
            prompt = self.vocabulary.encode(prompt)
        if prompt is not None:
            settings["prompt"] = prompt
        if steps is not None or self.model.abilities.chain:
            settings["steps"] = reverse_steps(steps, self.model.abilities.steps)
        x = draw(self.model, num, seed=seed, **settings).x
        return x if self.vocabulary is None else [self.spec.show(row) for row in x]

    def score(self, data: Any = None, **settings: Any) -> Score:
        """Bits per dimension of the run's own data, or of others; see `unordinal.score`."""
        return score(self, data, **settings)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copy configuration and weights, which are all that `load` needs, into a new folder."""
        self.folder.copy_to(Path(path))


def reverse_steps(asked: int | str | None, whole: int | None) -> int | None:
    """How many reverse steps of a diffusion to take, at most 256 unless told otherwise; None takes them all."""
    if asked == "all":
        if whole is None:
            raise ValueError("`steps` all is for diffusions in discrete steps; in continuous time give a number")
        return None
    if asked is None:
        return MOST_STEPS if whole is None or whole > MOST_STEPS else None
    return int(asked)


def load(
    path: str | os.PathLike[str], *, device: str | torch.device = "cpu", model: CategoricalModel | None = None
) -> Run:
    """The model of a run with its published weights, in eval mode; give `model` where it was one of your own making."""
    folder = RunFolder(Path(path))
    config, spec = folder.read()
    if model is None:
        model = config.model.build(spec)
    folder.load_weights(model)
    return Run(model.to(device).eval(), spec, config, folder)


def fit(
    model: str | CategoricalModel,
    data: Any,
    *,
    out: str | os.PathLike[str],
    size: str = "tiny",
    resume: bool = False,
    device: str | torch.device = "auto",
    progress: bool = True,
    reporter: Reporter | None = None,
    **settings: Any,
) -> Run:
    """Train a model by name, an experiment of the paper, or a model of your own; return it with its best weights.

    `data` is a NumPy array or tensor of classes, (N, *D) or one long (N,); a dict of them with train, val and test; a
    `Data`; or a data set by name. `settings` are those of the data, the model, training and the optimiser: steps,
    minutes, batch_size, lr, seed, ema, ...; a setting that several parts have is given by its dotted name, as in
    `**{"net.width": 64}`. A bar shows how far training is, unless `progress` is off; `device` "auto" takes cuda, then
    mps, then the CPU.
    """
    data = os.fspath(data) if isinstance(data, os.PathLike) else data
    own = model if isinstance(model, CategoricalModel) else None
    name = OWN if own is not None else str(model)
    if own is not None:
        base = RunConfig(OWN, OWN, "tiny", DataConfig(""), OwnModel(type(own).__name__))
    else:
        wanted = shape_wanted(name)
        if isinstance(data, str) and wanted is not None:
            check_shape(data, wants_maps=wanted == "maps", who=name)
        base = configured(name, size, wanted or given_shape(data))
    config = with_settings(base, settings)
    loaded = loaded_data(data, config.data)
    config = replace(config, data=replace(config.data, name=loaded.spec.name))
    device = best_device() if device == "auto" else torch.device(device)
    shown = TrainingReporter(loaded.spec.unit) if progress and reporter is None else None
    with torch.random.fork_rng(), shown or nullcontext():
        result = train_run(
            config, loaded, RunFolder(Path(out)), resume=resume, model=own, device=device, reporter=reporter or shown
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
    run: Run | CategoricalModel,
    data: Any = None,
    *,
    split: str | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> Score:
    """Bits per dimension of a run on its own data, or on `data`; `settings` are those of `score_split`.

    A bare model is scored on an array of classes (N, *D), all of it, or on a `Data`.

    Of its own data, and of a `Data`, a run's test split is scored unless another is asked for. `data` may also be a
    data set by name or an array: all of it is scored, unless it has a split of its own or one is asked for.
    """
    if isinstance(run, CategoricalModel):
        return score_model(run, data, split or "test", progress=progress, **settings)
    loaded = data if isinstance(data, Data) else data_of(run, data, progress, is_whole=split is None)
    name = "test" if split is None else split
    return score_split(
        run.model, loaded.split(name), split_name=name, unit=run.spec.unit, progress=progress, **settings
    )


def score_model(model: CategoricalModel, data: Any, split: str, **settings: Any) -> Score:
    """Score a bare model."""
    if data is None or isinstance(data, str):
        raise ValueError(f"a bare model is scored on an array of classes or a Data, not on {data!r}")
    config = DataConfig("array", split=WHOLE, num_classes=model.num_classes)
    loaded = data if isinstance(data, Data) else data_from_array(data, config)
    return score_split(model, loaded.split(split), split_name=split, unit=loaded.spec.unit, **settings)


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
    has_pictures = by_name and Path(parse_name(name)[1]).is_dir()  # whose levels or colours are the run's classes
    height, width = run.spec.event_shape if dataset is not None and dataset.is_sized else (None, None)
    config = replace(
        config,
        split=split,
        num_classes=None if dataset is not None and dataset.has_classes else run.spec.num_classes,
        map_height=height,
        map_width=width,
        levels=run.spec.levels or None if has_pictures else None,
        colours=config.colours if has_pictures else None,
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
