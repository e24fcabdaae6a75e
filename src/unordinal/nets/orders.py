"""A causal Transformer over places in any order: it predicts each place from those before it in an order."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.columns import Classes
from unordinal.nets.embeddings import rotary_angles
from unordinal.nets.places import embedding_of, head_of, label_embedding
from unordinal.nets.sequence import initial_state, make_blocks, step_blocks
from unordinal.nets.settings import Transformer


class OrderTransformer(nn.Module):
    """A causal Transformer that predicts the class of each place from those before it in a given order.

    At each step of the order it reads the class of the place before, and which place comes next.

    Args:
        num_classes: the number of classes K, or one number for each column.
        length: the number of places.
        labels: the number of classes of each label given with an example.
        **sizes: the fields of `Transformer`: width, num_blocks, num_heads, conv, dropout.

    >>> net = OrderTransformer((2, 3, 2), 3, width=16, num_blocks=1, num_heads=2)
    >>> net(torch.tensor([[1, 2, 0]]), torch.tensor([[2, 0, 1]])).shape
    torch.Size([1, 7])
    """

    def __init__(
        self, num_classes: int | Sequence[int] | Classes, length: int, *, labels: tuple[int, ...] = (), **sizes: Any
    ):
        super().__init__()
        net, self.classes, self.length = Transformer(**sizes), Classes(num_classes), length
        self.head_channels = net.head_channels
        self.embed = embedding_of(self.classes, net.width, num_special=0, length=length)
        self.first = nn.Parameter(torch.randn(net.width))  # what is read before the first place
        self.next = nn.Parameter(torch.randn(length, net.width))  # which place comes next
        self.labels = label_embedding(labels, net.width)
        self.dropout = nn.Dropout(net.dropout)
        self.blocks = make_blocks(net, is_causal=True, dropout=net.dropout)
        self.out = head_of(self.classes, net.width, length=length)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.first.device

    def forward(self, x: Tensor, order: Tensor, cond: Tensor | None = None) -> Tensor:
        """Compute the logits of every place.

        Args:
            x: classes, of shape (B, L).
            order: the places in the order in which they are predicted, of shape (B, L).
            cond: labels, of shape (B, J), if the network has any.

        Returns:
            The logits of each place given those before it in the order, of shape (B, L, K), or (B, sum of K).
        """
        seen = along(self.embed(x), order)  # (B, L, C)
        before = torch.cat([self.first.expand(len(x), 1, -1), seen[:, :-1]], dim=1)
        h = before + self.next[order]
        if self.labels is not None:
            h = h + self.labels(cond).unsqueeze(1)
        h = self.dropout(h)
        cos, sin = (a.to(h.dtype) for a in rotary_angles(h.shape[1], self.head_channels, h.device))
        for block in self.blocks:
            h = block(h, cos, sin)
        return self.out(along(F.layer_norm(h, h.shape[-1:]), order.argsort(dim=1)))

    def init_state(self, batch: int, cond: Tensor | None = None) -> Any:
        """Return the state before the first place, for a batch of this size."""
        state = initial_state(batch, len(self.blocks))
        return state if self.labels is None else {**state, "label": self.labels(cond)}

    def step(self, before: tuple[Tensor, int] | None, place: int, state: Any) -> tuple[Tensor, Any]:
        """Compute the logits (B, K) of the next place.

        Args:
            before: the classes (B,) of the place before it, and this place; None for the first.
            place: the next place.
            state: the state after the place before.
        """
        h = self.first.expand(state["batch"], -1) if before is None else self.embed(*before)
        h = h + self.next[place]
        h = h + state["label"] if "label" in state else h
        h, after = step_blocks(self.blocks, h, state, self.head_channels)
        return self.out.at(h, place), {**after, **({"label": state["label"]} if "label" in state else {})}


def along(h: Tensor, order: Tensor) -> Tensor:
    """Return features (B, L, C) in the order of places (B, L)."""
    return h.gather(1, order.unsqueeze(-1).expand_as(h))
