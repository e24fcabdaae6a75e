"""Keep the moving average of a model's weights, or the model itself if there is no average."""

import copy
from typing import Any

import torch
from torch import Tensor

from unordinal.model import CategoricalModel
from unordinal.parallel.sharding import local, restored, whole


class Averaged:
    """An exponential moving average of weights that starts fast: its decay grows with the updates up to `decay`.

    Tables of n-grams are shared, not averaged. Without a decay there is no average: `module` is the model itself.
    Unlike torch's AveragedModel it counts its updates on the CPU, so that an update never waits for the device.
    """

    def __init__(self, model: CategoricalModel, decay: float):
        self.module = copy.deepcopy(model) if decay else model
        self.decay, self.count = decay, 0
        if not decay:
            return
        for ours, theirs in zip(self.module.modules(), model.modules(), strict=True):
            if getattr(theirs, "sparse_tables", ()):
                ours.tables = theirs.tables  # shared, not averaged: there is too much of them

    @torch.no_grad()
    def update_parameters(self, model: CategoricalModel) -> None:
        if model is self.module:
            return
        old, new = ([local(p.detach()) for p in m.parameters()] for m in (self.module, model))
        pairs = [(ours, theirs) for ours, theirs in zip(old, new, strict=True) if not is_same(ours, theirs)]
        if pairs:
            now = min(self.decay, (1 + self.count) / (10 + self.count)) if self.count else 0.0
            torch._foreach_lerp_([ours for ours, _ in pairs], [theirs for _, theirs in pairs], 1 - now)
        for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
            ours.copy_(theirs)
        self.count += 1

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "module": whole(self.module.state_dict())} if self.decay else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if bool(state) != bool(self.decay):
            raise ValueError("the checkpoint was written with another setting of `optim.ema`")
        if not state:
            return
        self.module.load_state_dict(restored(state["module"], self.module.state_dict()))
        self.count = int(state["count"])


def is_same(ours: Tensor, theirs: Tensor) -> bool:
    """Return whether two tensors share their memory."""
    return ours is theirs or (ours.device.type != "meta" and ours.is_set_to(theirs))
