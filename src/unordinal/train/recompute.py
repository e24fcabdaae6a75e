"""Trade memory for time: compute the activations of a block again for its gradient."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from unordinal.parallel.sharding import blocks_of


def recompute_blocks(model: nn.Module) -> None:
    """Keep only the inputs of every block of a model for its gradient, in place."""
    blocks = blocks_of(model)
    if not blocks:
        raise ValueError("`recompute` is for networks that are made of blocks, and this model's is not; leave it out")
    for block in blocks:
        for name in ("forward", "forward_last"):  # the latter where a block continues a memory
            if hasattr(block, name):
                setattr(block, name, partial(recomputed, getattr(block, name)))


def recomputed(forward: Callable[..., Any], *inputs: Any) -> Any:
    return checkpoint(forward, *inputs, use_reentrant=False) if torch.is_grad_enabled() else forward(*inputs)
