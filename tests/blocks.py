"""Small block diffusions with random weights, and the truth about them by enumeration."""

import itertools
from typing import Any

import torch
from torch import Tensor

from unordinal.evaluate.enumeration import every_example
from unordinal.models.blockwise import BlockDiffusion
from unordinal.nets.blockwise import BlockTransformer

K, L = 2, 5
FORMS = ["plain", "ends", "labels", "ends and labels", "places"]
BLOCKS = [1, 2, 3, 5]


def built(form: str = "plain", block: int = 2, conv: int = 3) -> BlockDiffusion:
    """Return a small model with random weights, in float64."""
    torch.manual_seed(0)
    labels = (2, 3) if "labels" in form else ()
    length = L if form == "places" else None
    net = BlockTransformer(
        K + ("ends" in form), length=length, labels=labels, width=8, num_blocks=2, num_heads=2, conv=conv
    )
    for weights in net.parameters():
        torch.nn.init.normal_(weights, std=0.6)
    model = BlockDiffusion(net, event_shape=(L,), block=block, ends="ends" in form, labels=labels)
    return model.double().eval()


def examples(form: str) -> Tensor:
    return every_example(K, L, ends="ends" in form)


def condition(form: str) -> Any:
    return {"cond": torch.tensor([1, 2])} if "labels" in form else {}


def orders_of(block: int) -> list[tuple[int, ...]]:
    """Return all orders in which the positions of every block can be shown, blocks one after another."""
    parts = [list(itertools.permutations(range(start, min(L, start + block)))) for start in range(0, L, block)]
    return [tuple(itertools.chain(*choice)) for choice in itertools.product(*parts)]


@torch.no_grad()
def of_all_orders(model: BlockDiffusion, x: Tensor, form: str) -> Tensor:
    """Return the log-probability of each x for all orders, (orders, N)."""
    orders = orders_of(model.block)
    return torch.stack([model.log_prob_of_order(x, torch.tensor(order), **condition(form)) for order in orders])
