"""Start a model from the weights of another: the same classes or more, other lengths, labels added."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from unordinal.config import Ancestor, RunConfig, paths_of
from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.model import CategoricalModel
from unordinal.runs.folder import RunFolder


@dataclass(frozen=True)
class WarmStart:
    """The run whose weights a model starts from.

    Args:
        reference: what the user called it.
        config: its configuration.
        spec: the description of its data.
        weights: its weights by name.
        sha256: the checksum of its weights.
    """

    reference: str
    config: RunConfig
    spec: DataSpec
    weights: Mapping[str, Tensor]
    sha256: str

    @staticmethod
    def of(reference: str, folder: RunFolder) -> "WarmStart":
        """Read a run to start from."""
        config, spec = folder.read()
        weights = folder.read_weights()
        return WarmStart(reference, config, spec, weights, hashlib.sha256(folder.weights.read_bytes()).hexdigest())

    def adapted(self, config: RunConfig) -> RunConfig:
        """Return a configuration with the model of the ancestor.

        The learning rates and the warm-up are those of a cold start; docs/results/warm-starts.md shows that lower rates
        did worse.
        """
        if config.recipe != self.config.recipe:
            raise ValueError(
                f"{self.reference} was trained as {self.config.recipe}; {config.recipe} cannot start from it"
            )
        data = config.data.adapted(length=self.spec.event_shape[0]) if self.keeps_length(config) else config.data
        ancestor = Ancestor(self.reference, self.sha256)
        return replace(config, size=self.config.size, data=data, model=self.config.model, init=ancestor)

    def keeps_length(self, config: RunConfig) -> bool:
        """Return whether a text that is cut into windows takes over the length of the ancestor's."""
        is_cut = "alphabet" in vars(config.data) and "cut" not in vars(config.data)
        return is_cut and not self.spec.ends and getattr(config.data, "length", None) is None

    def vocabulary_for(self, own: Vocabulary | None, *, is_asked: bool) -> Vocabulary | None:
        """Return the vocabulary of the ancestor, with the characters of new data that it lacks as further classes.

        Args:
            own: the vocabulary of the new data.
            is_asked: whether the user asked for it.
        """
        old = self.spec.vocabulary
        if old is not None and own is not None and is_asked and "tokens" in (old.kind, own.kind) and old != own:
            raise ValueError(f"{self.reference} has other tokens; leave out `alphabet`, so that its own are taken")
        if old is None or own is None or not old.symbols:
            return old
        if not own.symbols:
            raise ValueError(
                f"the data have too many different characters for {self.reference}, which has {len(old)} classes"
            )
        new = "".join(symbol for symbol in own.symbols if symbol not in old.symbols)
        return Vocabulary("chars", old.symbols + new) if new else old

    def for_spec(self, config: RunConfig, spec: DataSpec) -> RunConfig:
        """Return the configuration for data whose classes are those of the ancestor and more; check that they are."""
        old = self.spec
        kinds = [("text" if one.vocabulary else "classes", one.shape) for one in (old, spec)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"{self.reference} is a model of {' '.join(kinds[0])}; the data are {' '.join(kinds[1])}")
        if spec.columns != old.columns or (spec.num_places or old.num_places) != old.num_places:
            raise ValueError(f"{self.reference} has other columns or places than {spec.name}; train from nothing")
        if spec.num_classes < old.num_classes:
            raise ValueError(
                f"{self.reference} has {old.num_classes} classes, and {spec.name} only {spec.num_classes}; "
                f"give `num_classes` {old.num_classes}"
            )
        before, now = paths_of(self.config.model), paths_of(config.model)
        other = [f"{name} is {before[name]} there, {now[name]} here" for name in before if is_other(before, now, name)]
        if other:
            raise ValueError(f"the network of {self.reference} has another size: {'; '.join(other)}")
        return replace(config, model=config.model.for_more_classes(old.num_classes + old.ends + 1))

    def transfer(self, model: CategoricalModel, spec: DataSpec) -> list[str]:
        """Give a model the weights of the ancestor; return the names of those that stay new.

        The rows of new classes, in embeddings and outputs, start from the mean of the others, so that old classes keep
        the ratios of their probabilities.
        """
        state, new = model.state_dict(), []
        same_labels = [(label.name, label.values) for label in self.spec.labels] == [
            (label.name, label.values) for label in spec.labels
        ]
        wrong = []
        for name, value in state.items():
            old = self.weights.get(name)
            if "lengths." in name or ("labels." in name and not same_labels):
                new.append(name)
            elif old is None:
                wrong.append(f"{name} is new")
            elif old.shape == value.shape:
                state[name] = old.to(value.dtype)
            elif old.shape[1:] == value.shape[1:] and self.rows_of(len(old), len(value), spec) is not None:
                state[name] = self.grown(old, len(value), spec).to(value.dtype)
            else:
                wrong.append(f"{name} has shape {tuple(old.shape)} there and {tuple(value.shape)} here")
        wrong += [f"{name} is not here" for name in self.weights if name not in state and "labels." not in name]
        if wrong:
            raise ValueError(f"the weights of {self.reference} do not fit: {'; '.join(wrong[:3])}")
        model.load_state_dict(state)
        return new

    def rows_of(self, num_old: int, num_new: int, spec: DataSpec) -> list[int | None] | None:
        """Return the old row of each new one, None for those of new classes; None if these are not rows of classes."""
        extra = num_old - self.spec.num_classes, num_new - spec.num_classes
        if not all(0 <= number <= 2 for number in extra):
            return None
        specials = [special_rows(number, ends=one.ends) for number, one in zip(extra, (self.spec, spec), strict=True)]
        rows: list[int | None] = [k if k < self.spec.num_classes else None for k in range(spec.num_classes)]
        for name in specials[1]:
            rows.append(self.spec.num_classes + specials[0].index(name) if name in specials[0] else None)
        return rows

    def grown(self, old: Tensor, num_new: int, spec: DataSpec) -> Tensor:
        """Return weights with a row for every class of new data."""
        rows = self.rows_of(len(old), num_new, spec)
        assert rows is not None
        mean = old[: self.spec.num_classes].mean(dim=0)
        return torch.stack([mean if row is None else old[row] for row in rows])


def is_other(before: dict[str, Any], now: dict[str, Any], name: str) -> bool:
    """Return whether a size differs between the settings of two models."""
    return isinstance(before[name], int) and name in now and before[name] != now[name] and name != "ngrams.classes"


def special_rows(number: int, *, ends: bool) -> list[str]:
    """Return what the rows after those of the classes stand for: an end, and a start sign or mask."""
    if number == 1:
        return ["end"] if ends else ["other"]
    return ["end", "other"][:number]
