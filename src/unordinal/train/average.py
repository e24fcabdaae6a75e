"""Keep the moving average of a model's weights, or the model itself if there is no average."""

import copy
from typing import Any

import torch
from torch import Tensor

from unordinal.model import CategoricalModel
from unordinal.parallel.sharding import local, restored, whole


class Unaveraged:
    """Takes the place of an average when a run keeps none: the model itself, without a second copy of the weights."""

    def __init__(self, model: CategoricalModel):
        self.module = model

    def update_parameters(self, model: CategoricalModel) -> None:
        assert model is self.module

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:
            raise ValueError("the checkpoint holds averaged weights, but this run keeps no average (optim.ema is 0)")


class Averaged:
    """An exponential moving average of weights that starts fast: its decay grows with the updates up to `decay`.

    Unlike torch's AveragedModel it counts its updates on the CPU, so that an update never waits for the device.
    """

    def __init__(self, model: CategoricalModel, decay: float):
        self.module = copy.deepcopy(model)
        self.decay, self.count = decay, 0
        for ours, theirs in zip(self.module.modules(), model.modules(), strict=True):
            if getattr(theirs, "sparse_tables", ()):
                ours.tables = theirs.tables  # shared, not averaged: there is too much of them

    @torch.no_grad()
    def update_parameters(self, model: CategoricalModel) -> None:
        old, new = ([local(p.detach()) for p in m.parameters()] for m in (self.module, model))
        pairs = [(ours, theirs) for ours, theirs in zip(old, new, strict=True) if not is_same(ours, theirs)]
        if pairs:
            now = min(self.decay, (1 + self.count) / (10 + self.count)) if self.count else 0.0
            torch._foreach_lerp_([ours for ours, _ in pairs], [theirs for _, theirs in pairs], 1 - now)
        for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
            ours.copy_(theirs)
        self.count += 1

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "module": whole(self.module.state_dict())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.module.load_state_dict(restored(state["module"], self.module.state_dict()))
        self.count = int(state["count"])


def is_same(ours: Tensor, theirs: Tensor) -> bool:
    """Return whether two tensors share their memory."""
    return ours is theirs or (ours.device.type != "meta" and ours.is_set_to(theirs))


def averaged(model: CategoricalModel, decay: float) -> Averaged | Unaveraged:
    """Return the average of a model's weights; its tables of n-grams are shared, not averaged."""
    return Averaged(model, decay) if decay else Unaveraged(model)
