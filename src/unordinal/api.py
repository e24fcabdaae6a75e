"""What Python users call: `fit`, `load`, `score`, `compare`, and a `Run` with its methods."""

import os
import shutil
import signal
import tempfile
import weakref
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from unordinal.config import OWN, OwnModel, RunConfig, with_settings
from unordinal.console import TrainingReporter
from unordinal.data import Data, source_of
from unordinal.data.arrays import GivenSource
from unordinal.data.source import WHOLE
from unordinal.data.spec import DataSpec, Vocabulary
from unordinal.evaluate.compare import Compare, Comparison, compare_models
from unordinal.evaluate.exact import score_pmf
from unordinal.evaluate.likelihood import EXACT, Evaluate, Score, score_split
from unordinal.model import CategoricalModel
from unordinal.pretrained import is_pretrained, pretrained_folder
from unordinal.pretrained.card import card_of
from unordinal.pretrained.hub import fetched, is_hub, push
from unordinal.progress import Progress, silent
from unordinal.recipes import configured, scaled_to
from unordinal.runs.building import build_for
from unordinal.runs.data import data_for, run_data
from unordinal.runs.folder import RunFolder
from unordinal.settings import method
from unordinal.tasks.correcting import Correct, Correction, correct
from unordinal.tasks.drawing import Sample, Samples, sample
from unordinal.tasks.filling import Fill, Filled, FillMap, fill_map, fill_text
from unordinal.tasks.lines import Line, Measure, measure
from unordinal.tasks.surprise import Bits
from unordinal.train.log import Reporter
from unordinal.train.start import device_named, train_run


class TemporaryFolder:
    """A folder that is removed with the last run that refers to it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="unordinal-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, repr=False)
class Run:
    """A trained model, the description of its data, its configuration and its folder.

    >>> x = torch.randint(4, (200, 8))
    >>> run = fit("arm", x, steps=2, progress=False)
    >>> run.sample(3).shape, run.score().unit
    (torch.Size([3, 8]), 'bits per dimension')
    """

    model: CategoricalModel
    spec: DataSpec
    config: RunConfig
    folder: RunFolder
    data: Data | None = None  # what it was trained on, if this process trained it
    temporary: "TemporaryFolder | None" = None  # of a run without `out`

    @property
    def vocabulary(self) -> Vocabulary | None:
        return self.spec.vocabulary

    def __repr__(self) -> str:
        parameters = sum(p.numel() for p in self.model.parameters())
        bits, shape = self.folder.published_bits, " x ".join(map(str, self.spec.event_shape))
        validated = "" if bits is None else f", validation {bits:.4f} {self.spec.unit}"
        return (
            f"Run {self.folder.path}: {self.config.preset}, size {self.config.size}, {parameters:,} parameters\n"
            f"  data {self.spec.name}: {self.spec.num_classes} classes, examples of {shape}\n"
            f"  step {self.folder.published_step}{validated}"
        )

    def shown(self, drawn: Samples) -> Any:
        """Return samples as a list of texts if the data are text, otherwise as classes (N, *D)."""
        return drawn.x if self.vocabulary is None else [self.spec.show(row) for row in drawn.x]

    def against(self, asked: Measure) -> CategoricalModel | None:
        """Return the model that `against` of a request names, if it names one."""
        if asked.against is None or asked.against in ("xz", "counts"):
            return None
        other = asked.against if isinstance(asked.against, Run) else load(asked.against)
        if other.vocabulary != self.vocabulary:
            raise ValueError(f"{other.folder.path} has another alphabet than {self.folder.path}; it must have the same")
        return other.model

    def checked_judge(self, judge: "Run | None") -> CategoricalModel | None:
        """Return the model of a run that can rank proposals of this one."""
        if judge is None:
            return None
        if judge.vocabulary != self.vocabulary or not judge.model.is_exact:
            raise ValueError(f"{judge.folder.path} cannot rank: expected an exact model over the same alphabet")
        return judge.model

    def filled(self, asked: Fill) -> Filled:
        """Fill the gaps of a text."""
        return fill_text(self.model, self.spec, asked, self.checked_judge(asked.judge))

    def scored(self, asked: Evaluate, data: Data | None = None) -> Score:
        """Score the run; `data` are those of the request if they are loaded already."""
        loaded = data or data_for(self, asked.data, asked.progress, is_whole=asked.split is None)
        if asked.split == EXACT:
            if loaded.pmf is None:
                raise ValueError(f"the probabilities of {loaded.spec.name} are not known; score train, val or test")
            return score_pmf(self.model, loaded.pmf, asked)
        part = loaded.split(asked.split or "test")
        name = part.label or asked.split or "test"
        return score_split(self.model, part, asked, split_name=name, unit=self.spec.unit)

    def measured(self, asked: Measure) -> list[Line]:
        """Measure every line of a text, or every example."""
        return measure(self.model, self.spec, asked, self.against(asked))

    sample = method(Sample, lambda run, asked: run.shown(sample(run.model, run.spec, asked)))
    score = method(Evaluate, lambda run, asked: run.scored(asked))
    correct = method(Correct, lambda run, asked: correct(run.model, run.spec, asked))
    fill = method(Fill, lambda run, asked: run.filled(asked))
    fill_map = method(FillMap, lambda run, asked: fill_map(run.model, run.spec, asked))
    bits = method(Measure, lambda run, asked: [line.bits for line in run.measured(asked)])

    def save(self, path: str | os.PathLike[str], *, licence: str | None = None) -> None:
        """Copy configuration and weights, which are all that `load` needs, into a new folder, with a model card.

        Args:
            path: the folder.
            licence: the licence of the weights, for the card, such as "cc-by-sa-4.0".
        """
        self.folder.copy_to(Path(path))
        parameters = sum(p.numel() for p in self.model.parameters())
        card = card_of(self.folder, self.config, self.spec, parameters=parameters, licence=licence)
        (Path(path) / "README.md").write_text(card)

    def push_to_hub(
        self, name: str, *, private: bool = False, token: str | None = None, licence: str | None = None
    ) -> str:
        """Send configuration, weights and a model card to the Hugging Face hub; needs the extra `hub`.

        Args:
            name: the model's name on the hub, "owner/name"; it is made if it is not there.
            private: whether only the owner sees it, if it is made.
            token: a token of the hub; by default the one that `hf auth login` stored.
            licence: the licence of the weights, for the card.

        Returns:
            The address of the model. `unordinal.load("hf:owner/name")` loads it.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder) / "model", licence=licence)
            return push(Path(folder) / "model", name, private=private, token=token)


def folder_of(reference: str | os.PathLike[str]) -> RunFolder:
    """Return the folder that a reference to a run means: a path, "pretrained:NAME" or "hf:owner/name"."""
    if is_hub(reference):
        return RunFolder(fetched(reference), may_link=True)  # the hub's cache is made of links
    return RunFolder(pretrained_folder(reference) if is_pretrained(reference) else Path(reference))


def load(
    path: str | os.PathLike[str], *, device: str | torch.device = "cpu", model: CategoricalModel | None = None
) -> Run:
    """Load a run: its model with the published weights, in evaluation mode.

    Args:
        path: the folder of the run; the name of a bundled model, such as "pretrained:text8-arm"; or one of the Hugging
            Face hub, "hf:owner/name", which needs the extra `hub`.
        device: the device to compute on; "auto" takes cuda, then mps, then the CPU.
        model: the model to load the weights into, if it is one of your own making.

    Returns:
        The run, which samples and scores.
    """
    folder, device = folder_of(path), device_named(device)
    config, spec = folder.read()
    folder.check_weights()
    model = build_for(config, spec, folder.weights) if model is None else model
    folder.load_weights(model)
    return Run(model.to(device).eval(), spec, config, folder)


def prepared(
    model: str | CategoricalModel, data: Any, size: str, settings: dict[str, Any], progress: Progress = silent
) -> tuple[RunConfig, Data]:
    """Resolve a model and its data, and return the configuration of the run and the loaded data.

    Args:
        model: a model by name, an experiment of the paper, or a model of your own.
        data: whatever a user gives as data, or a `Data`; None for the data of an experiment.
        size: tiny, small or paper.
        settings: changes of the configuration by name or dotted name.
        progress: receives the progress of loading the data.
    """
    source = None if data is None or isinstance(data, Data) else source_of(data)
    if isinstance(model, CategoricalModel):
        config = RunConfig(OWN, OWN, "tiny", source or GivenSource(), OwnModel(type(model).__name__))
    else:
        config = configured(model, size, data.spec.shape if isinstance(data, Data) else None, data=source)
    config = with_settings(config, settings)
    loaded = data if isinstance(data, Data) else config.data.load(progress=progress)
    if not {"batch_size", "train.batch_size"} & settings.keys():
        config = scaled_to(config, int(torch.Size(loaded.spec.event_shape).numel()))
    return config, loaded


def fit(
    model: str | CategoricalModel,
    data: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    size: str = "tiny",
    resume: bool = False,
    device: str | torch.device = "auto",
    progress: bool = True,
    reporter: Reporter | None = None,
    **settings: Any,
) -> Run:
    """Train a model and return it with its best weights.

    Args:
        model: a model by name ("arm"), an experiment of the paper ("text8/arm"), or a model of your own.
        data: a path, or a data set by name; an array or tensor of classes, (N, *D) examples or one long row (N,); a
            dict of arrays with train, val and test; or a `Data`.
        out: the folder of the run; by default a temporary one, which goes with the run unless you `save` it.
        size: "tiny", "small" or "paper".
        resume: continue the run in `out`.
        device: "auto" takes cuda, then mps, then the CPU.
        progress: show a progress bar.
        reporter: receives every step instead of the bar.
        **settings: settings of the data, the model, training and the optimiser: steps, minutes, batch_size, lr, seed,
            ema, ... A setting that several parts have is given by its dotted name: `**{"net.width": 64}`.

    Returns:
        The trained run, which samples and scores. `Run` has an example.
    """
    config, loaded = prepared(model, data, size, settings)
    own = model if isinstance(model, CategoricalModel) else None
    device = device_named(device)
    temporary = TemporaryFolder() if out is None else None
    folder = RunFolder(temporary.path / "run" if temporary else Path(out or ""))
    shown = TrainingReporter(loaded.spec.unit) if progress and reporter is None else None
    with torch.random.fork_rng(), shown or nullcontext():
        result = train_run(config, loaded, folder, resume=resume, model=own, device=device, reporter=reporter or shown)
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
    return score_split(run, part, asked, split_name=part.label or asked.split or "test", unit=loaded.spec.unit)


def bare_data(model: CategoricalModel, data: Any) -> Data:
    """Return an array of classes as data of which everything is in the test split; loaded data as they are."""
    if isinstance(data, Data):
        return data
    if data is None or isinstance(data, str | os.PathLike):
        raise ValueError(f"a bare model is scored on an array of classes or a Data, not on {data!r}")
    loaded = GivenSource(data, split=WHOLE, num_classes=model.num_classes).load()
    loaded.test.label = "the array"
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
    one, other = (given.model if isinstance(given, Run) else given for given in (first, second))
    part = loaded.split(asked.split or "test")
    name, unit = part.label or asked.split or "test", loaded.spec.unit
    return compare_models(one, other, part, asked, split_name=name, unit=unit)


__all__ = ["Bits", "Correction", "Run", "compare", "fit", "folder_of", "load", "prepared", "score"]
