"""Causal Transformers over classes, which predict each class from those before it."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.columns import Classes
from unordinal.nets.embeddings import rotary_angles
from unordinal.nets.ngrams import NgramEmbedding
from unordinal.nets.places import PlaceHeads, embedding_of, head_of, label_embedding
from unordinal.nets.sequence import PlainBlock, initial_state, make_blocks, step_blocks
from unordinal.nets.settings import Transformer

SMALL_TERMS = 0.05  # the scale at which the terms of a sum over many places start


class ClassTransformer(nn.Module):
    """A causal Transformer that predicts each class from the classes before it.

    Calling it computes the logits of all positions at once; `init_state` and `step` compute one position after another
    with a key/value cache.

    Args:
        num_classes: the number of classes K, or one number for each column.
        ngrams: embeddings of the last few classes together, for K + 1 classes and of the same `width`; None for none.
        length: the number of places, if each has an embedding and an output layer of its own.
        labels: the number of classes of each label given with an example.
        sums: the channels of a running sum of embeddings of all classes before a place (as in NADE, Larochelle and
            Murray 2011), which the output layers read next to the features of the Transformer; 0 for none.
        **sizes: the fields of `Transformer`: width, num_blocks, num_heads, conv, dropout.

    >>> net = ClassTransformer(27, width=16, num_blocks=2, num_heads=2)
    >>> net(torch.zeros(2, 6, dtype=torch.long)).shape
    torch.Size([2, 6, 27])
    """

    can_shard = True  # every block runs by its `forward`
    has_memory = False  # of earlier segments

    def __init__(
        self,
        num_classes: int | Sequence[int] | Classes,
        *,
        ngrams: NgramEmbedding | None = None,
        length: int | None = None,
        labels: tuple[int, ...] = (),
        sums: int = 0,
        **sizes: Any,
    ):
        super().__init__()
        net, self.classes = Transformer(**sizes), Classes(num_classes)
        self.width = net.width
        self.num_classes, self.head_channels, self.has_places = self.classes.most, net.head_channels, length is not None
        # the last class is the start symbol
        self.embed = embedding_of(self.classes, net.width, num_special=1, length=length, is_causal=True)
        self.labels = label_embedding(labels, net.width)
        self.ngrams = ngrams
        self.dropout = nn.Dropout(net.dropout)
        self.blocks = make_blocks(net, is_causal=True, dropout=net.dropout)
        self.sums = None
        if sums:
            self.sums = embedding_of(self.classes, sums, num_special=1, length=length, is_causal=True)
            nn.init.normal_(self.sums.table.weight, std=SMALL_TERMS)
        self.out = head_of(self.classes, net.width + sums, length=length)

    def previous_classes(self, x: Tensor) -> Tensor:
        """Return the class before each position, with the start symbol before the first: (B, L) -> (B, L)."""
        return F.pad(x[:, :-1], (1, 0), value=self.num_classes)

    def forward(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        """Compute the logits of every position.

        Args:
            x: classes, of shape (B, L).
            cond: labels, of shape (B, J), if the network has any.

        Returns:
            The logits of each position given the classes before it, of shape (B, L, K), or (B, sum of K).
        """
        h = self.features(x, cond, only_last=True)[-1]
        if self.sums is not None:
            total = self.dropout(self.sums(self.previous_classes(x))).cumsum(dim=1)
            h = torch.cat([h, self.dropout(torch.tanh(total))], dim=-1)
        return self.out(h)

    def features(self, x: Tensor, cond: Tensor | None = None, *, only_last: bool = False) -> list[Tensor]:
        """Return the normalised output of every block, or of the last one: a list of tensors (B, L, C)."""
        before = self.previous_classes(x)
        h = self.embed(before)
        if self.labels is not None:
            h = h + self.labels(cond).unsqueeze(1)
        if self.ngrams is not None:
            h = h + self.ngrams(F.pad(before, (self.ngrams.longest - 1, 0), value=self.num_classes))
        h = self.dropout(h)
        cos, sin = (a.to(h.dtype) for a in rotary_angles(h.shape[1], self.head_channels, h.device))
        found = []
        for index, block in enumerate(self.blocks):
            h = block(h, cos, sin)
            if not only_last or index == len(self.blocks) - 1:
                found.append(F.layer_norm(h, h.shape[-1:]))
        return found

    def init_state(self, batch: int, cond: Tensor | None = None) -> Any:
        """Return the state before the first position, for a batch of this size."""
        state = initial_state(batch, len(self.blocks))
        if self.ngrams is not None:
            state["recent"] = torch.full((batch, self.ngrams.longest), self.num_classes, device=self.device)
        if self.labels is not None:
            state["label"] = self.labels(cond)
        return state

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def select_state(self, state: Any, index: Tensor) -> Any:
        """Return the state of some rows of the batch, `index` (M,), in a batch of its own.

        The given state must not be used again: where few rows change, they are overwritten.
        """
        if isinstance(state, Tensor):
            return selected_rows(state, index)
        if isinstance(state, dict):
            return {key: self.select_state(value, index) for key, value in state.items()} | {"batch": len(index)}
        if isinstance(state, list | tuple):
            return type(state)(self.select_state(value, index) for value in state)
        return state

    def step(self, x_before: Tensor | None, state: Any) -> tuple[Tensor, Any]:
        """Compute the logits of the next position.

        Args:
            x_before: the class before it, of shape (B,); None for the first position.
            state: the state after the position before; it must not be used again.

        Returns:
            The logits, of shape (B, K), and the new state.
        """
        start, place = torch.full((state["batch"],), self.num_classes, device=self.device), state["place"]
        before = start if x_before is None else x_before
        h = self.embed(before, place) if self.has_places else self.embed(before)  # (B, C)
        recent, label = state.get("recent"), state.get("label")
        if label is not None:
            h = h + label
        if self.ngrams is not None:
            recent = torch.cat([recent[:, 1:], before.unsqueeze(1)], dim=1)
            h = h + self.ngrams(recent).squeeze(1)
        total = state.get("total")
        h, state = step_blocks(self.blocks, h, state, self.head_channels)
        if self.sums is not None:
            added = self.sums(before, place)
            total = added if total is None else total + added
            h = torch.cat([h, torch.tanh(total)], dim=-1)
        carried = (("recent", recent), ("label", label), ("total", total))
        kept = {name: value for name, value in carried if value is not None}
        logits = self.out.at(h, place) if isinstance(self.out, PlaceHeads) else self.out(h)
        return logits, {**state, **kept}


def selected_rows(x: Tensor, index: Tensor) -> Tensor:
    """Return x[index]; where most rows stay in their place, the others are overwritten in place, which is cheaper."""
    if len(index) != len(x) or torch.is_grad_enabled():
        return x[index]
    moved = torch.nonzero(index != torch.arange(len(x), device=x.device)).flatten()
    if 2 * len(moved) > len(x):
        return x[index]
    x[moved] = x[index[moved]]
    return x


Memory = list[Tensor]  # the inputs of each layer at the last M positions, (B, M, C)


class SegmentTransformer(ClassTransformer):
    """A causal Transformer that processes a sequence in segments, with a memory of earlier positions (Dai et al. 2019).

    A segment attends to itself and to the memory, through which no gradient flows. Positions are encoded by rotary
    embeddings instead of the relative encoding of the authors. If a sequence has only one segment, or the memory is
    longer than the sequence, the result equals that of `ClassTransformer`.

    Args:
        num_classes: the number of classes K.
        segment: the length of a segment, at least 1.
        memory: the number of positions in the memory, at least 1 and at least `conv` - 1.
        conv: the kernel size of a depthwise convolution next to each attention; 0 for none.
        settings: further arguments of `ClassTransformer`.
    """

    can_shard = False
    has_memory = True

    def __init__(self, num_classes: int, *, segment: int, memory: int, conv: int = 0, **settings: Any):
        super().__init__(num_classes, conv=conv, **settings)
        if segment < 1 or memory < max(1, conv - 1):
            raise ValueError(
                f"segments need a length of at least 1 and a memory of at least {max(1, conv - 1)} positions; "
                f"got {segment} and {memory}"
            )
        self.segment, self.memory = segment, memory

    def features(self, x: Tensor, cond: Tensor | None = None, *, only_last: bool = False) -> list[Tensor]:
        return [self.normed(x, None)[0]]

    def normed(self, x: Tensor, past: tuple[Tensor, Memory] | None) -> tuple[Tensor, tuple[Tensor, Memory]]:
        """Return the features (B, L, C) of classes that continue a sequence, and the past for the classes after them.

        A past is the last class (B,) together with the memory; None at the beginning of a sequence.
        """
        before = self.previous_classes(x) if past is None else torch.cat([past[0].unsqueeze(1), x[:, :-1]], dim=1)
        memory = None if past is None else past[1]
        found = []
        for part in before.split(self.segment, dim=1):
            h, memory = self.one_segment(part, memory)
            found.append(F.layer_norm(h, h.shape[-1:]))
        assert memory is not None
        return torch.cat(found, dim=1), (x[:, -1], memory)

    def one_segment(self, before: Tensor, memory: Memory | None) -> tuple[Tensor, Memory]:
        """Return the output (B, L, C) of the last block for one segment, and the new memory."""
        h = self.dropout(self.embed(before))
        kept: Memory = []
        for layer, block in enumerate(self.blocks):
            assert isinstance(block, PlainBlock)
            past = h[:, :0] if memory is None else memory[layer]
            seen = torch.cat([past, h], dim=1)
            kept.append(seen[:, -self.memory :].detach())
            cos, sin = (a.to(h.dtype) for a in rotary_angles(seen.shape[1], self.head_channels, h.device))
            h = block.forward_last(seen, h.shape[1], cos, sin)
        return h, kept

    def step(self, x_before: Tensor | None, state: Any) -> tuple[Tensor, Any]:
        if state["place"] % self.segment == 0:  # a new segment attends to at most `memory` earlier positions
            state = {**state, "caches": [trim_cache(cache, self.memory) for cache in state["caches"]]}
        return super().step(x_before, state)


def trim_cache(cache: tuple[Any, Any], num: int) -> tuple[Any, Any]:
    """Return a layer's cache with only the last `num` positions."""
    if cache[0] is None:
        return cache
    keys, values, held = cache[0]
    first = max(0, held - num)
    return (keys[:, :, first:held], values[:, :, first:held], held - first), cache[1]
