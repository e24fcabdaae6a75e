"""A Transformer that predicts masked positions of a block from that block and from the clean blocks before it."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.columns import Classes
from unordinal.nets.embeddings import rotary_angles, rotary_angles_at
from unordinal.nets.places import PlaceHeads, embedding_of, head_of, label_embedding
from unordinal.nets.sequence import PlainBlock, make_blocks
from unordinal.nets.settings import Transformer

LayerCache = tuple[Tensor, Tensor, Tensor]
"""Of the positions that are done: keys and values, (B, heads, P, C), and the last inputs of the convolution."""


@dataclass(frozen=True)
class Layout:
    """Which positions see which, in sequences that are cut into blocks.

    Args:
        same: whether two positions are in the same block, (L, L).
        earlier: whether the second position is in an earlier block than the first, (L, L).
    """

    same: Tensor
    earlier: Tensor

    def near(self, offset: int) -> tuple[Tensor, Tensor]:
        """Return for each position whether the one at an offset is in its block, and in an earlier one: two (L, 1)."""
        length = len(self.same)
        here = torch.arange(length, device=self.same.device)
        there = (here + offset).clamp(0, length - 1)
        inside = (here + offset >= 0) & (here + offset < length)
        same, earlier = (mask[here, there] & inside for mask in (self.same, self.earlier))
        return same.unsqueeze(1), earlier.unsqueeze(1)


@lru_cache(maxsize=32)
def layout_of(length: int, block: int, device: torch.device) -> Layout:
    """Return the layout of blocks of a size; the last block may be shorter."""
    number = torch.arange(length, device=device) // block
    return Layout(number.unsqueeze(1) == number, number.unsqueeze(1) > number)


class BlockTransformer(nn.Module):
    """A Transformer over two copies of a sequence: one with masks, and the clean one.

    The copy with masks sees its own block of itself and the earlier blocks of the clean copy. The clean copy sees
    itself up to the end of the block. With one block for all it is a denoiser of masks, and with blocks of one position
    a causal model. All block sizes share the weights; the size is chosen with every call.

    Args:
        num_classes: the number of classes K.
        length: the number of places, if each has an embedding and an output layer of its own.
        labels: the number of classes of each label given with an example.
        **sizes: the fields of `Transformer`: width, num_blocks, num_heads, conv, dropout.

    >>> net = BlockTransformer(27, width=16, num_blocks=2, num_heads=2)
    >>> x = torch.zeros(2, 6, dtype=torch.long)
    >>> net(torch.full_like(x, 27), x, 4).shape
    torch.Size([2, 6, 27])
    """

    reads_time = False

    def __init__(
        self, num_classes: int | Classes, *, length: int | None = None, labels: tuple[int, ...] = (), **sizes: Any
    ):
        super().__init__()
        net, self.classes = Transformer(**sizes), Classes(num_classes)
        self.num_classes, self.width, self.head_channels = self.classes.most, net.width, net.head_channels
        self.has_places, self.reach = length is not None, net.conv // 2
        self.mask = self.num_classes
        self.embed = embedding_of(self.classes, net.width, num_special=1, length=length)
        self.labels = label_embedding(labels, net.width)
        self.dropout = nn.Dropout(net.dropout)
        self.blocks = make_blocks(net, is_causal=False, dropout=net.dropout)
        self.out = head_of(self.classes, net.width, length=length)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def embedded(self, x: Tensor, cond: Tensor | None, place: int | None = None) -> Tensor:
        """Embed classes (B, L), of all places or of those from `place` on, with the labels: (B, L, C)."""
        if self.has_places and place is not None:
            columns = [self.embed(x[:, index], place + index) for index in range(x.shape[1])]
            h = torch.stack(columns, dim=1)
        else:
            h = self.embed(x)
        if self.labels is not None:
            assert cond is not None
            h = h + self.labels(cond).unsqueeze(1)
        return self.dropout(h)

    def forward(self, z: Tensor, x: Tensor, block: int, cond: Tensor | None = None) -> Tensor:
        """Compute the logits of every position.

        Args:
            z: the copy with masks, of shape (B, L).
            x: the clean copy, of shape (B, L). It is not read where one block holds everything.
            block: the number of positions of a block.
            cond: labels, of shape (B, J), if the network has any.

        Returns:
            The logits of each position given its block of z and the earlier blocks of x, of shape (B, L, K).
        """
        length, has_past = z.shape[1], block < z.shape[1]
        layout = layout_of(length, block, z.device)
        h = self.embedded(z, cond)
        if has_past:
            h = torch.cat([h, self.embedded(x, cond)], dim=1)  # (B, 2 L, C)
        cos, sin = (a.to(h.dtype) for a in rotary_angles(length, self.head_channels, h.device))
        if has_past:
            cos, sin = cos.repeat(2, 1, 1), sin.repeat(2, 1, 1)
        for index, layer in enumerate(self.blocks):
            assert isinstance(layer, PlainBlock)
            only_noisy = index == len(self.blocks) - 1  # the clean copy has served its purpose
            h = two_copies(layer, h, cos, sin, layout, only_noisy=only_noisy) if has_past else layer(h, cos, sin)
        return self.out(F.layer_norm(h, h.shape[-1:]))

    def init_state(self, batch: int, cond: Tensor | None = None) -> Any:
        """Return the state before the first block, for a batch of this size."""
        return {"batch": batch, "place": 0, "cond": cond, "caches": [None] * len(self.blocks)}

    def read(self, z: Tensor, state: Any) -> Tensor:
        """Return the logits (B, S, K) of the next block, given its masked copy (B, S) and the blocks before it."""
        h, _ = self.continued(z, state)
        h = F.layer_norm(h, h.shape[-1:])
        if isinstance(self.out, PlaceHeads):
            return torch.stack([self.out.at(h[:, i], state["place"] + i) for i in range(z.shape[1])], dim=1)
        return self.out(h)

    def append(self, x: Tensor, state: Any) -> Any:
        """Return the state after a block of clean classes (B, S)."""
        _, caches = self.continued(x, state)
        return {**state, "place": state["place"] + x.shape[1], "caches": caches}

    def continued(self, x: Tensor, state: Any) -> tuple[Tensor, list[LayerCache]]:
        """Pass a block (B, S) through the network after the blocks before it; return features and the new caches."""
        first, num = state["place"], x.shape[1]
        h = self.embedded(x, state["cond"], first)
        places = torch.arange(first, first + num, device=h.device)
        cos, sin = (a.to(h.dtype) for a in rotary_angles_at(places, self.head_channels))
        caches = []
        for layer, cache in zip(self.blocks, state["caches"], strict=True):
            assert isinstance(layer, PlainBlock)
            h, after = next_block(layer, h, cos, sin, cache)
            caches.append(after)
        return h, caches

    def select_state(self, state: Any, index: Tensor) -> Any:
        """Return the state of some rows of the batch, `index` (M,), in a batch of its own."""
        caches = [None if cache is None else tuple(part[index] for part in cache) for cache in state["caches"]]
        cond = None if state["cond"] is None else state["cond"][index]
        return {**state, "batch": len(index), "cond": cond, "caches": caches}


def two_copies(layer: PlainBlock, h: Tensor, cos: Tensor, sin: Tensor, layout: Layout, *, only_noisy: bool) -> Tensor:
    """Pass both copies, noisy and clean, (B, 2 L, C), through a layer; or return the noisy one only, (B, L, C)."""
    length = h.shape[1] // 2
    n = F.layer_norm(h, h.shape[-1:])
    q, k, v = layer.attention.project(n, cos, sin)  # (B, heads, 2 L, C)
    both = torch.cat([layout.same, layout.earlier], dim=1)  # what the noisy copy sees: itself, and the clean one
    heads = F.scaled_dot_product_attention(q[:, :, :length], k, v, attn_mask=both)
    if not only_noisy:
        up_to = layout.same | layout.earlier
        clean = F.scaled_dot_product_attention(q[:, :, length:], k[:, :, length:], v[:, :, length:], attn_mask=up_to)
        heads = torch.cat([heads, clean], dim=2)
    mixed = layer.attention.out(heads.transpose(1, 2).flatten(2))
    if layer.conv is not None:
        noisy, whole = n[:, :length], n[:, length:]
        near = [blockwise_conv(layer.conv.weight, noisy, whole, layout)]
        near += [] if only_noisy else [blockwise_conv(layer.conv.weight, whole, whole, layout)]
        mixed = mixed + torch.cat(near, dim=1)
    return layer.mlp((h[:, :length] if only_noisy else h) + layer.dropout(mixed))


def blockwise_conv(weight: Tensor, own: Tensor, past: Tensor, layout: Layout) -> Tensor:
    """Return the convolution of each position with its own block of one copy and the earlier blocks of another.

    Args:
        weight: one filter for each channel, of shape (C, 1, 1, kernel).
        own: the copy of which the own block is seen, of shape (B, L, C).
        past: the copy of which earlier blocks are seen, of shape (B, L, C).
        layout: the blocks.

    Returns:
        The sums, of shape (B, L, C).
    """
    reach, length = weight.shape[-1] // 2, own.shape[1]
    padded = [F.pad(part, (0, 0, reach, reach)) for part in (own, past)]
    total = torch.zeros_like(own)
    for offset in range(-reach, reach + 1):
        same, earlier = layout.near(offset)
        mine, before = (part[:, reach + offset : reach + offset + length] for part in padded)
        seen = mine * same if offset > 0 else torch.where(earlier, before, mine * same)
        total = torch.addcmul(total, seen, weight[:, 0, 0, reach + offset])
    return total


def next_block(
    layer: PlainBlock, h: Tensor, cos: Tensor, sin: Tensor, cache: LayerCache | None
) -> tuple[Tensor, LayerCache]:
    """Pass one block (B, S, C) through a layer, given the cache of the blocks before; return it and the new cache."""
    n = F.layer_norm(h, h.shape[-1:])
    q, k, v = layer.attention.project(n, cos, sin)
    reach = 0 if layer.conv is None else layer.conv.kernel // 2
    before = n.new_zeros(len(n), reach, n.shape[-1])
    if cache is not None:
        k, v, before = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2), cache[2]
    mixed = layer.attention.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
    tail = torch.cat([before, n], dim=1)  # (B, reach + S, C)
    if layer.conv is not None:
        turned = F.pad(tail.transpose(1, 2), (0, reach)).unsqueeze(2)  # nothing after the block is seen
        mixed = mixed + F.conv2d(turned, layer.conv.weight, groups=n.shape[-1]).squeeze(2).transpose(1, 2)
    return layer.mlp(h + layer.dropout(mixed)), (k, v, tail[:, tail.shape[1] - reach :])
