"""A Transformer over places in any order: it predicts each place from those before it in an order."""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.columns import Classes
from unordinal.nets.linear import InnerLinear
from unordinal.nets.places import embedding_of, head_of, label_embedding
from unordinal.nets.settings import Transformer
from unordinal.nets.transformer import KeyValues, append_to_cache


class TwoStreamBlock(nn.Module):
    """A Transformer block for two streams (Yang et al. 2019, XLNet): places that are seen, and places to predict.

    What is seen does not depend on what is predicted next, so that it is learned once for all of it. Both streams share
    the weights. There are no positions: what was seen is a set, and its order hardly matters.
    """

    is_block = True

    def __init__(self, net: Transformer):
        super().__init__()
        width = net.width
        self.num_heads, self.dropout = net.num_heads, nn.Dropout(net.dropout)
        self.query, self.key_value = InnerLinear(width, width, bias=False), InnerLinear(width, 2 * width, bias=False)
        self.out, self.up, self.down = (
            InnerLinear(width, width),
            InnerLinear(width, 4 * width),
            InnerLinear(4 * width, width),
        )
        for layer in (self.out, self.down):  # residual branches start small
            nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * net.num_blocks))
            nn.init.zeros_(layer.bias)

    def heads(self, h: Tensor) -> Tensor:
        """Split channels into heads: (B, L, C) -> (B, heads, L, C / heads)."""
        return h.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def keys_and_values(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return what can be read of the stream of places that are seen: two (B, heads, L, C / heads)."""
        keys, values = self.key_value(normed(seen)).chunk(2, dim=-1)
        return self.heads(keys), self.heads(values)

    def read(self, h: Tensor, keys: Tensor, values: Tensor, **mask: Any) -> Tensor:
        """Let a stream (B, L, C) read keys and values, all of them or as `mask` says, then pass it through the MLP."""
        q = self.heads(self.query(normed(h)))
        if mask:
            mixed = F.scaled_dot_product_attention(q, keys, values, **mask)
        else:  # for the one or two queries of a step, this is up to six times as fast on a CPU
            mixed = torch.softmax(q @ keys.mT / math.sqrt(q.shape[-1]), dim=-1) @ values
        h = h + self.dropout(self.out(mixed.transpose(1, 2).flatten(2)))
        return h + self.dropout(self.down(F.relu(self.up(normed(h))).square()))

    def forward(self, seen: Tensor, asked: Tensor, mask: Any, *, is_last: bool) -> tuple[Tensor, Tensor]:
        """Pass both streams (B, L, C) through the block; after the last one, what is seen is of no more use.

        Entry i of `seen` is the place before place i of the order, so that entry i of both streams may read it. `mask`
        are arguments of the attention that say what `asked` reads.
        """
        keys, values = self.keys_and_values(seen)
        after = seen if is_last else self.read(seen, keys, values, is_causal=True)
        return after, self.read(asked, keys, values, **mask)


def normed(h: Tensor) -> Tensor:
    return F.layer_norm(h, h.shape[-1:])


class OrderTransformer(nn.Module):
    """A Transformer that predicts the class of each place from those before it in a given order.

    Args:
        num_classes: the number of classes K, or one number for each column.
        length: the number of places.
        labels: the number of classes of each label given with an example.
        **sizes: the fields of `Transformer`: width, num_blocks, num_heads, dropout; there is no convolution.

    >>> net = OrderTransformer((2, 3, 2), 3, width=16, num_blocks=1, num_heads=2)
    >>> net(torch.tensor([[1, 2, 0]]), torch.tensor([[2, 0, 1]])).shape
    torch.Size([1, 7])
    """

    def __init__(
        self, num_classes: int | Sequence[int] | Classes, length: int, *, labels: tuple[int, ...] = (), **sizes: Any
    ):
        super().__init__()
        net, self.classes, self.length = Transformer(**sizes), Classes(num_classes), length
        self.embed = embedding_of(self.classes, net.width, num_special=0, length=length)
        self.first = nn.Parameter(torch.randn(net.width))  # what is seen before the first place
        self.next = nn.Parameter(torch.randn(length, net.width))  # which place is asked for
        self.labels = label_embedding(labels, net.width)
        self.dropout = nn.Dropout(net.dropout)
        self.blocks = nn.ModuleList(TwoStreamBlock(net) for _ in range(net.num_blocks))
        self.out = head_of(self.classes, net.width, length=length)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.first.device

    def forward(self, x: Tensor, order: Tensor, cond: Tensor | None = None, num_given: Tensor | None = None) -> Tensor:
        """Compute the logits of every place.

        Args:
            x: classes, of shape (B, L).
            order: the places in the order in which they are predicted, of shape (B, L).
            cond: labels, of shape (B, J), if the network has any.
            num_given: how many places at the beginning of the order are given, of shape (B,): then all others are
                predicted from these alone.

        Returns:
            The logits of each place given those before it in the order, of shape (B, L, K), or (B, sum of K).
        """
        first = self.first.expand(len(x), 1, -1)
        if self.labels is not None:
            first = first + self.labels(cond).unsqueeze(1)
        seen = torch.cat([first, along(self.embed(x), order[:, :-1])], dim=1)  # (B, L, C)
        mask: Any = {"is_causal": True}
        if num_given is not None:
            entry = torch.arange(x.shape[1], device=x.device)
            last = torch.minimum(entry, num_given.unsqueeze(1)).unsqueeze(-1)  # entry 0 of what is seen is no place
            mask = {"attn_mask": (entry <= last).unsqueeze(1)}  # (B, 1, L, L)
        seen, asked = self.dropout(seen), self.dropout(first + self.next[order])
        for index, block in enumerate(self.blocks):
            seen, asked = block(seen, asked, mask, is_last=index == len(self.blocks) - 1)
        return self.out(along(normed(asked), order.argsort(dim=1)))

    def init_state(self, batch: int, cond: Tensor | None = None) -> Any:
        """Return the state before the first place, for a batch of this size."""
        first = self.first.expand(batch, -1)
        return {
            "first": first if self.labels is None else first + self.labels(cond),
            "caches": [None] * len(self.blocks),
        }

    def step(self, before: tuple[Tensor, int] | None, place: int, state: Any) -> tuple[Tensor, Any]:
        """Compute the logits (B, K) of the next place.

        Args:
            before: the classes (B,) of the place before it, and this place; None for the first.
            place: the next place.
            state: the state after the place before.
        """
        seen = (state["first"] if before is None else self.embed(*before)).unsqueeze(1)
        asked = (state["first"] + self.next[place]).unsqueeze(1)
        caches: list[KeyValues] = []
        for index, (block, cache) in enumerate(zip(self.blocks, state["caches"], strict=True)):
            assert isinstance(block, TwoStreamBlock)
            keys, values, num = append_to_cache(cache, *block.keys_and_values(seen))
            caches.append((keys, values, num))
            both = asked if index == len(self.blocks) - 1 else torch.cat([seen, asked], dim=1)
            both = block.read(both, keys[:, :, :num], values[:, :, :num])
            seen, asked = both[:, :1], both[:, -1:]
        return self.out.at(normed(asked).squeeze(1), place), {**state, "caches": caches}


def along(h: Tensor, order: Tensor) -> Tensor:
    """Return features (B, L, C) in the order of places (B, M)."""
    return h.gather(1, order.unsqueeze(-1).expand(-1, -1, h.shape[-1]))
