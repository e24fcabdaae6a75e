"""What Python users call: `fit`, `load`, `score`, `compare`; `run.py` has the `Run` that they return."""

import os
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unordinal.config import OWN, OwnModel, RunConfig
from unordinal.console import TrainingReporter
from unordinal.data import Data, source_of
from unordinal.data.given import GivenSource
from unordinal.data.lines import LinesSource
from unordinal.data.source import WHOLE, Source
from unordinal.evaluate.compare import Compare, Comparison, compare_models
from unordinal.evaluate.likelihood import Evaluate, score_split
from unordinal.evaluate.score import Score
from unordinal.model import CategoricalModel
from unordinal.names import counted
from unordinal.overrides import with_settings
from unordinal.progress import Progress, silent
from unordinal.recipes import configured, suited_to
from unordinal.run import Run, TemporaryFolder, folder_of, load
from unordinal.runs.data import data_for, run_data
from unordinal.runs.folder import RunFolder
from unordinal.runs.warm import WarmStart
from unordinal.train.log import Reporter, SilentReporter
from unordinal.train.loggers import Logger, LoggingReporter
from unordinal.train.start import device_named, train_run

__all__ = ["Run", "compare", "fit", "folder_of", "load", "prepared", "score"]


def prepared(
    model: str | CategoricalModel,
    data: Any,
    size: str,
    settings: dict[str, Any],
    labels: Any = None,
    warm: WarmStart | None = None,
    progress: Progress = silent,
) -> tuple[RunConfig, Data]:
    """Resolve a model and its data, and return the configuration of the run and the loaded data.

    Args:
        model: a model by name, an experiment of the paper, or a model of your own.
        data: whatever a user gives as data, or a `Data`; None for the data of an experiment.
        size: tiny, small or paper.
        settings: changes of the configuration by name or dotted name.
        labels: labels given with the examples of an array.
        warm: the run that the model starts from.
        progress: receives the progress of loading the data.
    """
    chosen = {name: settings[name] for name in ("lines", "column") if name in settings}
    settings = {name: value for name, value in settings.items() if name not in chosen}
    source = None if data is None or isinstance(data, Data) else source_of(data, **chosen)
    if labels is not None:
        source = with_labels(source, labels)
    if isinstance(model, CategoricalModel):
        config = RunConfig(OWN, OWN, "tiny", source or GivenSource(), OwnModel(type(model).__name__))
    else:
        config = configured(model, size, data.spec.shape if isinstance(data, Data) else None, data=source)
    config = with_settings(config if warm is None else warm.adapted(config), settings)
    loaded = data if isinstance(data, Data) else config.data.load(progress=progress)
    if warm is not None:
        return warmed(config, loaded, warm, settings, progress)
    config, note = suited_to(config, loaded, settings)
    return config, replace(loaded, notes=(*loaded.notes, note)) if note else loaded


def warmed(
    config: RunConfig, data: Data, warm: WarmStart, settings: dict[str, Any], progress: Progress
) -> tuple[RunConfig, Data]:
    """Return the configuration and the data of a run that starts from another, in the classes of both."""
    is_asked = getattr(config.data, "alphabet", None) is not None
    vocabulary = warm.vocabulary_for(data.spec.vocabulary, is_asked=is_asked)
    if vocabulary is not None and vocabulary != data.spec.vocabulary:
        data = config.data.load(vocabulary=vocabulary, progress=progress)
        num_new = len(vocabulary) - warm.spec.num_classes
        if num_new:
            data = replace(data, notes=(*data.notes, f"{counted(num_new, 'symbol')} more than {warm.reference} has"))
    config = warm.for_spec(config, data.spec)
    return config if data.spec.num_places else suited_to(config, data, settings)[0], data


def with_labels(source: Source | None, labels: Any) -> Source:
    """Return a source with labels: those of a file, or those that are given in Python."""
    if hasattr(labels, "columns"):  # a DataFrame
        labels = {str(name): labels[name].to_numpy(object) for name in labels.columns}
    if isinstance(labels, str | os.PathLike) and source is not None and hasattr(source, "label_file"):
        return source.adapted(label_file=os.fspath(labels))
    if isinstance(source, GivenSource):
        return replace(source, labels=labels)
    if isinstance(source, LinesSource):
        return replace(source, given_labels=labels)
    raise ValueError("`labels` are for arrays and lines; other files hold their labels themselves")


def warm_start(reference: Run | str | os.PathLike[str]) -> WarmStart:
    """Return the run that a model starts from."""
    folder = reference.folder if isinstance(reference, Run) else folder_of(reference)
    return WarmStart.of(str(folder.path) if isinstance(reference, Run) else os.fspath(reference), folder)


def fit(
    model: str | CategoricalModel,
    data: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    size: str = "tiny",
    resume: bool = False,
    labels: Any = None,
    init: Run | str | os.PathLike[str] | None = None,
    device: str | torch.device = "auto",
    progress: bool = True,
    logger: Logger | None = None,
    **settings: Any,
) -> Run:
    """Train a model and return it with its best weights.

    Args:
        model: a model by name ("arm"), an experiment of the paper ("text8/arm"), or a model of your own.
        data: a path, or a data set by name; an array or tensor of classes, (N, *D) examples or one long row (N,); a
            dict of arrays with train, val and test; a list of texts, each an example; a DataFrame; or a `Data`.
        out: the folder of the run; by default a temporary one, which goes with the run unless you `save` it.
        size: "tiny", "small" or "paper".
        resume: continue the run in `out`.
        labels: labels given with the examples of an array or with texts, (N,) or (N, J) integers or texts, or a dict of
            such arrays by name; the model is then one of the examples given their labels. -1, or an empty text, is a
            missing label. Also a file with a label on each line.
        init: start from the weights of another run, a `Run`, a folder, or such as "pretrained:text8-arm"; the classes
            may be more than its own, and labels may be added. To train a run for longer, use `resume`.
        device: "auto" takes cuda, then mps, then the CPU.
        progress: show a progress bar.
        logger: receives the loss of each step and the score of each validation, such as a `TensorBoardLogger()`; or an
            object of your own with the three methods of `Logger`.
        **settings: settings of the data, the model, training and the optimiser: steps, minutes, batch_size, lr, seed,
            ema, ... `lines=True` takes every line of a file as an example, `column` every text of a column. A setting
            that several parts have is given by its dotted name: `**{"net.width": 64}`.

    Returns:
        The trained run, which samples and scores. `Run` has an example.
    """
    warm = None if init is None else warm_start(init)
    config, loaded = prepared(model, data, size, settings, labels, warm)
    own = model if isinstance(model, CategoricalModel) else None
    device = device_named(device)
    temporary = TemporaryFolder() if out is None else None
    folder = RunFolder(temporary.path / "run" if temporary else Path(out or ""))
    reporter: Reporter = TrainingReporter(loaded.spec.unit) if progress else SilentReporter()
    if logger is not None:
        reporter = LoggingReporter(logger, reporter, folder.path, config.to_dict())
    with torch.random.fork_rng(), closing(reporter):
        given: dict[str, Any] = {"model": own, "warm": warm, "device": device, "reporter": reporter}
        result = train_run(config, loaded, folder, resume=resume, **given)
    if result.interrupted_by == signal.SIGINT:  # all is saved; now the signal may do what it does
        raise KeyboardInterrupt
    if result.interrupted_by is not None:
        signal.raise_signal(result.interrupted_by)
    folder.load_weights(result.model)
    return Run(result.model.eval(), loaded.spec, config, folder, loaded, temporary)


def score(run: Run | CategoricalModel, data: Any = None, **settings: Any) -> Score:
    """Score a run or a bare model: bits per dimension with their standard error.

    Args:
        run: a run, or a model.
        data: what to score; for a run by default its own data. A path or a data set by name, an array of classes
            (N, *D), or a `Data`; a bare model takes the last two.
        **settings: the fields of `Evaluate`: `split`, `bound` ("elbo" or "iwbo"), `k`, `repeats`, `times`,
            `per_example`, `num_examples`, `batch_size`, `seed`, `progress`.

    Returns:
        The score: its value, unit, kind and standard error.

    >>> from unordinal.models.autoregressive import AutoregressiveModel
    >>> from unordinal.nets.classes import ClassTransformer
    >>> net = ClassTransformer(4, width=8, num_blocks=1, num_heads=1)
    >>> round(score(AutoregressiveModel(net, event_shape=(6,)), torch.randint(4, (50, 6))).bits_per_dim, 3)
    2.0
    """
    if isinstance(run, Run):
        return run.score(data, **settings)
    asked = Evaluate(**settings)
    loaded = bare_data(run, data)
    part = loaded.split(asked.split or "test")
    return score_split(run, part, asked, split_name=part.short_name or asked.split or "test", unit=loaded.spec.unit)


def bare_data(model: CategoricalModel, data: Any) -> Data:
    """Return an array of classes as data of which everything is in the test split; loaded data as they are."""
    if isinstance(data, Data):
        return data
    if data is None or isinstance(data, str | os.PathLike):
        raise ValueError(f"a bare model is scored on an array of classes or a Data, not on {data!r}")
    loaded = GivenSource(data, split=WHOLE, num_classes=model.num_classes).load()
    loaded.test.short_name = "the array"
    return loaded


def compare(
    first: Run | CategoricalModel, second: Run | CategoricalModel, data: Any = None, **settings: Any
) -> Comparison:
    """Compare two runs, or two models, on the same examples.

    Args:
        first: a run, whose data are scored unless others are given, or a model.
        second: another run of data with the same classes, or another model.
        data: other data, as in `score`; models need an array of classes (N, *D), or a `Data`.
        **settings: the fields of `Compare`: `split`, `repeats`, `num_examples`, `seed`, `progress`.

    Returns:
        The paired difference of their bits with its standard error, and a verdict.
    """
    asked = Compare(data=data, **settings)
    if isinstance(first, Run):
        loaded = data if isinstance(data, Data) else data_for(first, data, asked.progress, is_whole=asked.split is None)
    else:
        loaded = bare_data(first, data)
    for run in (first, second):
        if isinstance(run, Run):
            run_data(run).check_alike(loaded)
    if isinstance(first, Run) and isinstance(second, Run) and first.vocabulary != second.vocabulary:
        raise ValueError(f"{first.folder.path} and {second.folder.path} have different alphabets; compare runs of one")
    one, other = (given.model if isinstance(given, Run) else given for given in (first, second))
    part = loaded.split(asked.split or "test")
    name, unit = part.short_name or asked.split or "test", loaded.spec.unit
    return compare_models(one, other, part, asked, split_name=name, unit=unit)
