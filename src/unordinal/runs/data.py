"""The data of a run: its own, found again, or others that its model can score."""

import os
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from unordinal.config import RunConfig
from unordinal.data import Data, source_of
from unordinal.data.given import GivenSource
from unordinal.data.lines import LinesSource
from unordinal.data.source import WHOLE
from unordinal.data.spec import DataSpec
from unordinal.progress import Progress, silent
from unordinal.runs.folder import RunFolder


class Trained(Protocol):
    """A loaded run, as far as its data are concerned."""

    @property
    def spec(self) -> DataSpec: ...

    @property
    def config(self) -> RunConfig: ...

    @property
    def folder(self) -> RunFolder: ...

    @property
    def data(self) -> Data | None: ...


def data_for(
    run: Trained, what: Any = None, progress: Progress = silent, *, split: str | None = None, is_whole: bool = False
) -> Data:
    """Return the data of a run, or others in its classes; raise a ValueError if its model cannot score them.

    Args:
        run: the run.
        what: other data, as a user gives them; None for the run's own.
        progress: receives the progress of loading.
        split: TRAIN,VAL,TEST of other data.
        is_whole: put all of other data into their test split, unless they have a split of their own.
    """
    found = run_data(run)
    return found.own(progress) if what is None else found.other(what, progress, split, is_whole=is_whole)


def run_data(run: Trained) -> "RunData":
    """Return what a run knows of its data."""
    return RunData(run.spec, run.config, str(run.folder.path), run.data)


@dataclass(frozen=True)
class RunData:
    """What a run knows of its data: their description and their source."""

    spec: DataSpec
    config: RunConfig
    where: str  # the run, for error messages
    loaded: Data | None = None

    def own(self, progress: Progress) -> Data:
        """Load the data that the run was trained on."""
        if self.loaded is not None:
            return self.loaded
        source = self.config.data
        if isinstance(source, GivenSource):
            raise ValueError(f"{self.where} was trained on an array from Python; give the data to score")
        try:
            loaded = source.load(vocabulary=self.spec.vocabulary, progress=progress)
        except ValueError as error:
            raise ValueError(f"{error}; or give the data to score with `data`") from error
        if loaded.spec.fingerprint != self.spec.fingerprint:
            raise ValueError(f"{source.name} has changed since {self.where} was trained on it; give it with `data`")
        return loaded

    def other(self, what: Any, progress: Progress, split: str | None, *, is_whole: bool) -> Data:
        """Load other data in the classes of the run's own."""
        if isinstance(what, Data):
            self.check_alike(what)
            return what
        own = self.config.data
        source = source_of(what, lines=isinstance(own, LinesSource) and isinstance(what, str | os.PathLike))
        wants, gives = self.spec.shape, source.shape
        if wants != gives:
            raise ValueError(f"{self.where} takes {wants}, but {source.name} gives {gives}")
        if isinstance(source, GivenSource) or (is_whole and split is None and not source.has_split):
            split = WHOLE
        elif split is None and source.name == own.name:
            split = getattr(own, "split", None)
        text, other = self.spec.vocabulary is not None, "alphabet" in vars(source)
        if text != other and not isinstance(source, GivenSource) and (other or "alphabet" in vars(own)):
            kinds = ("a model of text", "is not a text") if text else ("not a model of text", "is a text")
            raise ValueError(f"{self.where} is {kinds[0]}, but {source.name} {kinds[1]}")
        loaded = source.for_model(self.spec, own, split).load(vocabulary=self.spec.vocabulary, progress=progress)
        if split == WHOLE:
            loaded.test.short_name = source.short_name
        self.check_alike(loaded)
        return self.relabelled(loaded)

    def relabelled(self, loaded: Data) -> Data:
        """Return other data with their labels as the run numbers them; labels that they lack are missing.

        Data without any labels are scored without labels.
        """
        if self.spec.labels and not loaded.spec.labels:
            return replace(loaded, notes=(*loaded.notes, "they have no labels, so that they are scored without"))
        same = [(label.name, label.values) for label in self.spec.labels]
        if not self.spec.labels or [(label.name, label.values) for label in loaded.spec.labels] == same:
            return loaded
        own = {label.name: (place, label) for place, label in enumerate(loaded.spec.labels)}
        for split in (loaded.train, loaded.val, loaded.test):
            columns = [np.full(len(split), len(label.values)) for label in self.spec.labels]
            for number, label in enumerate(self.spec.labels):
                if label.name in own and split.labels is not None:
                    place, theirs = own[label.name]
                    table = np.array([*(label.encode(value) for value in theirs.values), len(label.values)])
                    columns[number] = table[split.labels[:, place]]
            split.labels = np.stack(columns, axis=1)
        return replace(loaded, spec=replace(loaded.spec, labels=self.spec.labels))

    def check_alike(self, loaded: Data) -> None:
        """Raise a ValueError if data have other classes or another number of axes than the run's own."""
        other = f"{loaded.spec.name} is of another data set than {self.where}: "
        ours, theirs = self.spec, loaded.spec
        if theirs.classes != ours.classes or len(theirs.event_shape) != len(ours.event_shape):
            raise ValueError(
                f"{other}it has {theirs.classes} classes and examples of shape {theirs.event_shape}, "
                f"not {ours.classes} and {ours.event_shape}"
            )
        is_array = theirs.vocabulary is None and loaded.test.short_name == "the array"  # given as the run's own classes
        if ours.vocabulary != theirs.vocabulary and not is_array:
            symbols = [described(spec) for spec in (theirs, ours)]
            raise ValueError(f"{other}its classes are {symbols[0]}, not {symbols[1]}")
        names, own_names = ([name for name, _ in spec.categories] for spec in (theirs, ours))
        if names and own_names and names != own_names:
            raise ValueError(f"{other}its classes are {', '.join(names)}, not {', '.join(own_names)}")


def described(spec: DataSpec) -> str:
    """Return what the classes of data stand for, in words."""
    if spec.vocabulary is None:
        return "numbers"
    return "bytes" if spec.vocabulary.kind == "bytes" else f"the characters {spec.vocabulary.symbols!r}"
