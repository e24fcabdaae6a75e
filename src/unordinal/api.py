"""What Python users call: `fit`, `load`, `score`, and a `Run` with its methods."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from unordinal.config import OWN, DataConfig, OwnModel, RunConfig, with_settings
from unordinal.console import TrainingReporter
from unordinal.data import check_shape, data_from_array
from unordinal.data.spec import DataSpec, Vocabulary
from unordinal.data.splits import Data
from unordinal.evaluate.compare import Comparison, compare_models
from unordinal.evaluate.likelihood import Score, score_split
from unordinal.model import CategoricalModel, check_classes
from unordinal.pretrained import is_pretrained, pretrained_folder
from unordinal.pretrained.card import card_of
from unordinal.pretrained.hub import fetched, is_hub, push
from unordinal.progress import Progress, silent
from unordinal.recipes import configured, shape_wanted
from unordinal.rundata import WHOLE, check_alike, data_of, given_shape, loaded_data
from unordinal.runs.building import build_for
from unordinal.runs.folder import RunFolder
from unordinal.tasks.correcting import Corrected, correct_text
from unordinal.tasks.drawing import draw
from unordinal.tasks.filling import Filled, fill_text
from unordinal.tasks.reading import read
from unordinal.tasks.surprise import Bits, bits_of
from unordinal.train.log import Reporter
from unordinal.train.start import best_device, train_run

MOST_STEPS = 256  # of a diffusion, unless told: thousands keep a laptop busy for minutes


@dataclass(frozen=True, repr=False)
class Run:
    """A trained model and what belongs to it: the description of its data, its configuration and its folder.

    It unpacks as `model, vocabulary = load(...)`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     x = torch.randint(4, (200, 8))
    ...     run = fit("arm", x, out=f"{folder}/run", steps=2, progress=False)
    ...     run.sample(3).shape, run.score().unit
    (torch.Size([3, 8]), 'bits per dimension')
    """

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
        self,
        num: int = 4,
        *,
        seed: int = 0,
        prompt: Any = None,
        steps: int | str | None = None,
        length: int | None = None,
        **settings: Any,
    ) -> Any:
        """Draw samples.

        Args:
            num: how many.
            seed: the seed of the draws.
            prompt: what every sample begins with, a text or classes (P,); autoregressive models only.
            steps: reverse steps of a diffusion, by default at most 256; "all" takes the whole chain.
            length: symbols of a sample; by default the length that the model was trained with.
            **settings: those of the model's own `sample`: `temperature`, `sampler`, `known`, `event_shape`, ...

        Returns:
            A list of texts where the data are text, otherwise classes (N, *D).
        """
        if isinstance(prompt, str):
            if self.vocabulary is None:
                raise ValueError(f"a prompt of characters needs text; the classes of {self.spec.name} have none")
            prompt = self.vocabulary.encode(prompt)
        if prompt is not None:
            settings["prompt"] = prompt
        if length is not None:
            settings["event_shape"] = (length,)
        if steps is not None or self.model.abilities.chain:
            settings["steps"] = reverse_steps(steps, self.model.abilities.steps)
        x = draw(self.model, num, seed=seed, **settings).x
        return x if self.vocabulary is None else [self.spec.show(row) for row in x]

    def score(self, data: Any = None, **settings: Any) -> Score:
        """Bits per dimension of the run's own data, or of others; see `unordinal.score`."""
        return score(self, data, **settings)

    def correct(self, text: str, **settings: Any) -> Corrected:
        """Correct substituted letters of a text.

        Args:
            text: the text, in any characters. What the run's alphabet lacks stays as it is.
            **settings: `error_rate`, the share of letters that are wrong; `threshold`, the least probability of a
                suggestion; `passes` of a diffusion; `beam` of an autoregressive model; see `correct_text`.

        Returns:
            The corrected text and the suggestions, each with its probability.
        """
        return correct_text(self.model, text, self.text_vocabulary("correct"), **settings)

    def fill(self, text: str, *, gap: str = "_", num: int = 5, judge: "Run | None" = None, **settings: Any) -> Filled:
        """Fill the gaps of a text.

        Args:
            text: the text, with `gap` in place of every missing symbol.
            gap: the sign of a missing symbol.
            num: how many proposals.
            judge: the run of an exact model over the same alphabet, by whose probability proposals are ranked; without
                it, proposals are ranked by the run's own probability of what it filled in.
            **settings: `seed`, `progress`.

        Returns:
            The proposals, the likeliest first.
        """
        if judge is not None and (judge.vocabulary != self.vocabulary or not judge.model.is_exact):
            raise ValueError(f"{judge.folder.path} cannot rank: expected an exact model over the same alphabet")
        vocabulary = self.text_vocabulary("fill")
        other = None if judge is None else judge.model
        return fill_text(self.model, text, vocabulary, gap=gap, num=num, judge=other, **settings)

    def bits(self, examples: Any, **settings: Any) -> list[Bits]:
        """Return how many bits each example has: how surprising it is.

        Args:
            examples: texts, or arrays of classes, in a list; or one array (N, *D).
            **settings: `seed`, `progress`.

        Returns:
            The bits of each example with their error, and of each of its positions where the model has them.
        """
        if isinstance(examples, str):
            raise ValueError("`bits` takes a list of texts; put the one text into a list")
        return bits_of(self.model, [self.classes_of(example) for example in examples], **settings)

    def classes_of(self, example: Any) -> torch.Tensor:
        """Return the classes of a text, or of an array of classes, once they can be this run's."""
        if isinstance(example, str):
            return read(example, self.text_vocabulary("bits")).x
        x = torch.as_tensor(example)
        check_classes(self.model, x.unsqueeze(0))
        return x.long()

    def text_vocabulary(self, what: str) -> Vocabulary:
        """Return the alphabet, which this task needs."""
        if self.vocabulary is None or self.spec.is_map:
            raise ValueError(f"`{what}` is for text; the classes of {self.spec.name} have no characters")
        return self.vocabulary

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
            The address of what was sent. `unordinal.load("hf:owner/name")` loads it.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder) / "model", licence=licence)
            return push(Path(folder) / "model", name, private=private, token=token)


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
    """Load a run: its model with the published weights, in evaluation mode.

    Args:
        path: the folder of the run; the name of a model that comes with the package, such as "pretrained:text8-arm";
            or one of the Hugging Face hub, "hf:owner/name", which needs the extra `hub`.
        device: where the model is to compute.
        model: the model to load the weights into, where it is one of your own making.

    Returns:
        The run, which samples and scores.
    """
    if is_hub(path):
        folder = RunFolder(fetched(path), may_link=True)  # the hub's cache is made of links
    else:
        folder = RunFolder(pretrained_folder(path) if is_pretrained(path) else Path(path))
    config, spec = folder.read()
    folder.check_weights()
    if model is None:
        model = build_for(config, spec, folder.weights)
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
    """Train a model and return it with its best weights.

    Args:
        model: a model by name ("arm"), an experiment of the paper ("text8/arm"), or a model of your own.
        data: a path, or a data set by name; an array or tensor of classes, (N, *D) examples or one long row (N,); a
            dict of arrays with train, val and test; or a `Data`.
        out: the folder of the run.
        size: "tiny", "small" or "paper".
        resume: go on with the run in `out`.
        device: "auto" takes cuda, then mps, then the CPU.
        progress: show a progress bar.
        reporter: is told of every step instead of the bar.
        **settings: settings of the data, the model, training and the optimiser: steps, minutes, batch_size, lr, seed,
            ema, ... A setting that several parts have is given by its dotted name: `**{"net.width": 64}`.

    Returns:
        The trained run, which samples and scores. `Run` has an example.
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


def score(
    run: Run | CategoricalModel,
    data: Any = None,
    *,
    split: str | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> Score:
    """Score a run or a bare model: bits per dimension with their standard error.

    Args:
        run: a run, or a model.
        data: what to score; for a run by default its own data. A path or a data set by name, an array of classes
            (N, *D), or a `Data`; a bare model takes the last two.
        split: "train", "val" or "test". By default test of a run's own data and of a `Data`, and all of other data
            that have no split of their own.
        progress: is told how far the work is.
        **settings: `bound` ("elbo" or "iwbo"), `k`, `repeats`, `times`, `per_example`, `num_examples`, `batch_size`,
            `seed`.

    Returns:
        The score: its value, unit, kind and standard error.

    >>> from unordinal.models.autoregressive import AutoregressiveModel
    >>> from unordinal.nets.classes import ClassTransformer
    >>> net = ClassTransformer(4, width=8, num_blocks=1, num_heads=1)
    >>> round(score(AutoregressiveModel(net, event_shape=(6,)), torch.randint(4, (50, 6))).bits_per_dim, 3)
    2.0
    """
    if isinstance(run, CategoricalModel):
        return score_model(run, data, split or "test", progress=progress, **settings)
    loaded = data if isinstance(data, Data) else data_of(run, data, progress, is_whole=split is None)
    part = loaded.split("test" if split is None else split)
    name = part.label or split or "test"
    return score_split(run.model, part, split_name=name, unit=run.spec.unit, progress=progress, **settings)


def score_model(model: CategoricalModel, data: Any, split: str, **settings: Any) -> Score:
    """Score a bare model."""
    loaded = data if isinstance(data, Data) else bare_data(model, data)
    part = loaded.split(split)
    return score_split(model, part, split_name=part.label or split, unit=loaded.spec.unit, **settings)


def bare_data(model: CategoricalModel, data: Any) -> Data:
    """An array of classes as data of which everything is in the test split."""
    if data is None or isinstance(data, str):
        raise ValueError(f"a bare model is scored on an array of classes or a Data, not on {data!r}")
    loaded = data_from_array(data, DataConfig("array", split=WHOLE, num_classes=model.num_classes))
    loaded.test.label = "the array"
    return loaded


def compare(
    first: Run | CategoricalModel,
    second: Run | CategoricalModel,
    data: Any = None,
    *,
    split: str | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> Comparison:
    """Compare two runs, or two models, on the same examples.

    Args:
        first: a run, whose data are scored unless others are given, or a model.
        second: another run of data with the same classes, or another model.
        data: other data, as in `score`; models need an array of classes (N, *D), or a `Data`.
        split: "train", "val" or "test", as in `score`.
        progress: is told how far the work is.
        **settings: `repeats`, `num_examples`, `seed`.

    Returns:
        The paired difference of their bits with its standard error, and a verdict.
    """
    one, other = (given.model if isinstance(given, Run) else given for given in (first, second))
    if isinstance(data, Data):
        loaded = data
    elif isinstance(first, Run):
        loaded = data_of(first, data, progress, is_whole=split is None)
    else:
        loaded = bare_data(first, data)
    if isinstance(second, Run):
        check_alike(second, loaded, loaded.spec.name)
    part = loaded.split(split or "test")
    name, unit = part.label or split or "test", loaded.spec.unit
    return compare_models(one, other, part, split_name=name, unit=unit, progress=progress, **settings)
