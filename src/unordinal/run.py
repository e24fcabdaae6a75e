"""A trained run: its model, the description of its data, and the requests that it answers."""

import math
import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from unordinal.config import RunConfig
from unordinal.console import say
from unordinal.data import Data
from unordinal.data.spec import DataSpec
from unordinal.data.storage import checksum_of
from unordinal.data.vocabularies import Vocabulary
from unordinal.evaluate.exact import score_pmf
from unordinal.evaluate.likelihood import EXACT, Evaluate, score_split
from unordinal.evaluate.score import Score
from unordinal.model import CategoricalModel, device_of
from unordinal.names import counted
from unordinal.pretrained import is_pretrained, judge_of, pretrained_folder
from unordinal.pretrained.card import card_of
from unordinal.pretrained.hub import fetched, is_hub, push
from unordinal.runs.building import build_for
from unordinal.runs.data import data_for
from unordinal.runs.folder import RunFolder
from unordinal.settings import method
from unordinal.tasks.asking import Sample
from unordinal.tasks.cells import FillRows, Predict, fill_rows, predict
from unordinal.tasks.classifying import Classified, Classify, classify, place_of_label
from unordinal.tasks.compressing import Compress, Compressed, Decompress, compress, decompress
from unordinal.tasks.correcting import Correct, Correction, correct
from unordinal.tasks.distinct import keys_of
from unordinal.tasks.drawing import Samples, sample
from unordinal.tasks.filling import Fill, Filled, FillMap, fill_map
from unordinal.tasks.gaps import fill_gaps
from unordinal.tasks.lines import Line, Measure, measure
from unordinal.tasks.suspicion import MeasureRows, measure_rows
from unordinal.tasks.weighing import Judge
from unordinal.train.start import device_named


class TemporaryFolder:
    """A folder that is removed with the last run that refers to it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="unordinal-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, repr=False)
class Run:
    """A trained model, the description of its data, its configuration and its folder.

    >>> x = torch.randint(4, (200, 8))
    >>> from unordinal import fit
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

    def at(self, block: int | str) -> "Run":
        """Return the run with blocks of another size, for models that draw blocks of positions one after another.

        Args:
            block: the number of positions of a block; 1 is autoregressive and exact, "all" a masked diffusion. Sizes
                that were not trained are allowed, and score worse.
        """
        if self.model.blocks is None:
            raise ValueError(f"`block` is for models of blocks (block), and {self.config.preset} is not one of them")
        return replace(self, model=self.model.blocks.at(block))

    def shown(self, drawn: Samples) -> Any:
        """Return samples as a list of texts if the data are text, a DataFrame if they are a table, else as classes."""
        if self.spec.schema:
            return self.spec.frame(drawn.x)
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

    def second_judge(self, asked: Correct) -> Judge | None:
        """Return the model that weighs corrections together with this one, if there is one."""
        if self.model.stepper is None or asked.method == "pass":
            return None
        device, own = str(device_of(self.model)), judge_of(self.folder.path)
        if isinstance(asked.judge, Run):
            judge = asked.judge
        elif asked.judge is not None:
            judge = load(asked.judge, device=device)
        elif own is not None:
            judge = bundled(own, device)
        else:
            return None
        if judge.model.stepper is None or judge.vocabulary is None or judge.spec.ends:
            raise ValueError(
                f"{judge.folder.path} cannot weigh corrections: expected an autoregressive model of text (arm)"
            )
        return Judge(judge.model, judge.vocabulary)

    def corrected(self, asked: Correct) -> Correction:
        """Correct what was mistyped in a text."""
        return correct(self.model, self.spec, asked, self.second_judge(asked))

    def filled(self, asked: Fill) -> Filled:
        """Fill the gaps of a text."""
        return fill_gaps(self.model_of_gaps, self.spec, asked, self.checked_judge(asked.judge))

    @property
    def model_of_gaps(self) -> CategoricalModel:
        """The model with known positions anywhere: with one block for all, if blocks would not see what comes later."""
        model, denoiser = self.model, self.model.denoiser
        if model.blocks is None or model.stepper is not None or denoiser is None or denoiser.takes_any_known:
            return model
        whole: CategoricalModel = model.blocks.at("all")
        return whole

    def scored(self, asked: Evaluate, data: Data | None = None) -> Score:
        """Score the run; `data` are those of the request if they are loaded already."""
        loaded = data or data_for(self, asked.data, asked.progress, is_whole=asked.split is None)
        if asked.split == EXACT:
            if loaded.pmf is None:
                raise ValueError(f"the probabilities of {loaded.spec.name} are not known; score train, val or test")
            return score_pmf(self.model, loaded.pmf, asked)
        part = loaded.split(asked.split or "test")
        name = part.short_name or asked.split or "test"
        units: dict[str, str] = {"unit": self.spec.unit, "whole_unit": self.spec.whole_unit}
        score = score_split(self.model, part, asked, split_name=name, **units)
        widths = self.spec.log_widths(part.symbols[: score.num_examples])
        if widths is None:
            return score
        return replace(score, value_bits=score.bits_per_example + float(widths.mean()) / math.log(2))

    def classified(self, asked: Classify) -> Classified:
        """Find the label of examples."""
        place_of_label(self.spec, asked)  # before anything is read
        loaded = data_for(self, asked.data, asked.progress, is_whole=asked.split is None)
        return classify(self.model, self.spec, loaded.split(asked.split or "test"), asked)

    def compressed(self, asked: Compress, reference: str = "") -> Compressed:
        """Compress a file; `reference` is what `decompress` will say that the run is called."""
        checksum = checksum_of(self.folder.weights)
        return compress(self.model, self.spec, asked, run=reference or self.folder.path.name, checksum=checksum)

    def decompressed(self, asked: Decompress) -> bytes:
        """Restore a compressed file."""
        return decompress(self.model, self.spec, asked, checksum=checksum_of(self.folder.weights))

    def measured(self, asked: Measure) -> list[Line]:
        """Measure every line of a text, or every example."""
        return measure(self.model, self.spec, asked, self.against(asked))

    def drawn(self, asked: Sample, **settings: Any) -> Samples:
        """Draw samples."""
        seen = set(keys_of(data_for(self).train.symbols)) if asked.novel else None
        return sample(self.model, self.spec, asked, seen=seen, **settings)

    sample = method(Sample, lambda run, asked: run.shown(run.drawn(asked)))
    score = method(Evaluate, lambda run, asked: run.scored(asked))
    correct = method(Correct, lambda run, asked: run.corrected(asked))
    compress = method(Compress, lambda run, asked: run.compressed(asked))
    decompress = method(Decompress, lambda run, asked: run.decompressed(asked))
    fill = method(Fill, lambda run, asked: run.filled(asked))
    fill_map = method(FillMap, lambda run, asked: fill_map(run.model, run.spec, asked))
    classify = method(Classify, lambda run, asked: run.classified(asked))
    predict = method(Predict, lambda run, asked: predict(run.model, run.spec, asked)[0])
    fill_rows = method(FillRows, lambda run, asked: fill_rows(run.model, run.spec, asked)[0])
    measure_rows = method(MeasureRows, lambda run, asked: measure_rows(run.model, run.spec, asked)[0])
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
        if self.spec.num_values:
            values = counted(self.spec.num_values, "value")
            say(f"Note: what is saved tells {values} of the data, such as names of categories.")

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool = False,
        token: str | None = None,
        licence: str | None = None,
        publish_values: bool = False,
    ) -> str:
        """Send configuration, weights and a model card to the Hugging Face hub; needs the extra `hub`.

        Args:
            name: the model's name on the hub, "owner/name"; it is made if it is not there.
            private: whether only the owner sees it, if it is made.
            token: a token of the hub; by default the one that `hf auth login` stored.
            licence: the licence of the weights, for the card.
            publish_values: agree that the values of the data that the description of a table or of labels holds, such
                as the names of categories, are sent along.

        Returns:
            The address of the model. `unordinal.load("hf:owner/name")` loads it.
        """
        if self.spec.num_values and not publish_values:
            raise ValueError(
                f"the description of {self.spec.name} holds {counted(self.spec.num_values, 'value')} of the data, such "
                "as names of categories and edges of bins, which would be sent along; give `publish_values` to agree"
            )
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


@lru_cache(maxsize=2)
def bundled(reference: str, device: str) -> Run:
    """Load a bundled model that other bundled models need, once."""
    return load(reference, device=device)
