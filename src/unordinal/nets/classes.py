"""Causal Transformers over classes: the next class from those before it, with a cache, or with a memory of segments."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.embeddings import rotary_angles
from unordinal.nets.linear import zero_linear
from unordinal.nets.ngrams import NgramEmbedding
from unordinal.nets.sequence import PlainBlock, blocks_of, check_sizes, fresh_state, step_blocks


class ClassTransformer(nn.Module):
    """Logits of each position given the classes before it: (B, L) -> (B, L, K).

    With `ngrams`, of K + 1 classes and the same width, the last few classes together have embeddings too.

    >>> net = ClassTransformer(27, width=16, num_blocks=2, num_heads=2)
    >>> net(torch.zeros(2, 6, dtype=torch.long)).shape
    torch.Size([2, 6, 27])
    """

    def __init__(
        self,
        num_classes: int,
        *,
        width: int,
        num_blocks: int,
        num_heads: int,
        conv: int = 0,
        dropout: float = 0.0,
        ngrams: NgramEmbedding | None = None,
    ):
        super().__init__()
        check_sizes(width, num_blocks, num_heads, conv, dropout)
        self.num_classes, self.head_channels = num_classes, width // num_heads
        self.embed = nn.Embedding(num_classes + 1, width)  # the last one stands before the first position
        self.ngrams = ngrams
        self.dropout = nn.Dropout(dropout)
        self.blocks = blocks_of(
            width, num_blocks=num_blocks, num_heads=num_heads, conv=conv, is_causal=True, dropout=dropout
        )
        self.out = zero_linear(width, num_classes)

    def before(self, x: Tensor) -> Tensor:
        """The class before each position, the start sign before the first: (B, L) -> (B, L)."""
        return F.pad(x[:, :-1], (1, 0), value=self.num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.features(x)[-1])

    def features(self, x: Tensor) -> list[Tensor]:
        """What each layer says of every position, normed: num_blocks times (B, L, C)."""
        before = self.before(x)
        h = self.embed(before)
        if self.ngrams is not None:
            h = h + self.ngrams(F.pad(before, (self.ngrams.longest - 1, 0), value=self.num_classes))
        h = self.dropout(h)
        cos, sin = (a.to(h.dtype) for a in rotary_angles(h.shape[1], self.head_channels, h.device))
        found = []
        for block in self.blocks:
            h = block(h, cos, sin)
            found.append(F.layer_norm(h, h.shape[-1:]))
        return found

    def init_state(self, batch: int) -> Any:
        state = fresh_state(batch, len(self.blocks))
        if self.ngrams is not None:
            state["recent"] = torch.full((batch, self.ngrams.longest), self.num_classes, device=self.out.weight.device)
        return state

    def step(self, x_before: Tensor | None, state: Any) -> tuple[Tensor, Any]:
        """Logits (B, K) of the next position, given the class before it (B,), None at the first; and the state."""
        start = torch.full((state["batch"],), self.num_classes, device=self.out.weight.device)
        before = start if x_before is None else x_before
        h = self.embed(before)  # (B, C)
        recent = state.get("recent")
        if self.ngrams is not None:
            recent = torch.cat([recent[:, 1:], before.unsqueeze(1)], dim=1)
            h = h + self.ngrams(recent).squeeze(1)
        h, state = step_blocks(self.blocks, h, state, self.head_channels)
        return self.out(h), state if recent is None else {**state, "recent": recent}


Memory = list[Tensor]  # each layer's inputs at the positions remembered, (B, M, C)


class SegmentTransformer(ClassTransformer):
    """The same by segments: each sees itself and a memory of what came before, through which no gradient flows.

    Dai et al. (2019), with rotary in place of their own relative positions. A sequence of one segment, or a memory
    longer than the sequence, gives what `ClassTransformer` gives.
    """

    def __init__(self, num_classes: int, *, segment: int, memory: int, conv: int = 0, **settings: Any):
        super().__init__(num_classes, conv=conv, **settings)
        if segment < 1 or memory < max(1, conv - 1):
            raise ValueError(
                f"segments need a length of at least 1 and a memory of at least {max(1, conv - 1)} positions; "
                f"got {segment} and {memory}"
            )
        self.segment, self.memory = segment, memory

    def features(self, x: Tensor) -> list[Tensor]:
        return [self.normed(x, None)[0]]

    def normed(self, x: Tensor, past: tuple[Tensor, Memory] | None) -> tuple[Tensor, tuple[Tensor, Memory]]:
        """Features (B, L, C) of classes that follow a past, and the past of what comes next.

        A past is the last class (B,) and a memory.
        """
        before = self.before(x) if past is None else torch.cat([past[0].unsqueeze(1), x[:, :-1]], dim=1)
        memory = None if past is None else past[1]
        found = []
        for part in before.split(self.segment, dim=1):
            h, memory = self.one_segment(part, memory)
            found.append(F.layer_norm(h, h.shape[-1:]))
        assert memory is not None
        return torch.cat(found, dim=1), (x[:, -1], memory)

    def one_segment(self, before: Tensor, memory: Memory | None) -> tuple[Tensor, Memory]:
        h = self.dropout(self.embed(before))
        kept: Memory = []
        for layer, block in enumerate(self.blocks):
            assert isinstance(block, PlainBlock)
            past = h[:, :0] if memory is None else memory[layer]
            seen = torch.cat([past, h], dim=1)
            kept.append(seen[:, -self.memory :].detach())
            cos, sin = (a.to(h.dtype) for a in rotary_angles(seen.shape[1], self.head_channels, h.device))
            h = block.after(seen, h.shape[1], cos, sin)
        return h, kept

    def step(self, x_before: Tensor | None, state: Any) -> tuple[Tensor, Any]:
        if state["place"] % self.segment == 0:  # a new segment sees so much of the past and no more
            state = {**state, "caches": [trimmed(cache, self.memory) for cache in state["caches"]]}
        return super().step(x_before, state)


def trimmed(cache: tuple[Any, Any], num: int) -> tuple[Any, Any]:
    """A layer's cache of the last `num` positions."""
    if cache[0] is None:
        return cache
    keys, values, held = cache[0]
    first = max(0, held - num)
    return (keys[:, :, first:held], values[:, :, first:held], held - first), cache[1]
