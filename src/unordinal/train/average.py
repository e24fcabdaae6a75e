"""The moving average of a model's weights, or the model itself where none is kept."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from unordinal.model import CategoricalModel
from unordinal.nets.ngrams import NgramEmbedding


class Unaveraged:
    """The model itself in the place of its average: no second copy of the weights."""

    def __init__(self, model: CategoricalModel):
        self.module = model

    def update_parameters(self, model: CategoricalModel) -> None:
        assert model is self.module

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:
            raise ValueError("the checkpoint holds averaged weights, but this run keeps no average (optim.ema is 0)")


def averaged(model: CategoricalModel, decay: float) -> AveragedModel | Unaveraged:
    """The average of a model's weights; its tables of n-grams are shared, not averaged: there is too much of them."""
    if not decay:
        return Unaveraged(model)
    average = AveragedModel(model, multi_avg_fn=averaging(decay))
    for ours, theirs in zip(average.module.modules(), model.modules(), strict=True):
        if isinstance(ours, NgramEmbedding) and isinstance(theirs, NgramEmbedding):
            ours.tables = theirs.tables
    return average


Weights = tuple[Tensor, ...] | list[Tensor]


def averaging(decay: float) -> Callable[[Weights, Weights, Tensor | int], None]:
    """An exponential moving average that starts fast: the decay grows with the number of updates up to `decay`."""

    def update(averaged: Weights, current: Weights, count: Tensor | int) -> None:
        now = min(decay, (1 + int(count)) / (10 + int(count)))
        pairs = [(old, new) for old, new in zip(averaged, current, strict=True) if not old.is_set_to(new)]
        torch._foreach_lerp_([old for old, _ in pairs], [new for _, new in pairs], 1 - now)

    return update
