"""A Transformer that predicts masked positions of a block from that block and from the clean blocks before it."""

from dataclasses import dataclass, replace
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
        block: the number of positions of a block.
    """

    same: Tensor
    earlier: Tensor
    block: int


@lru_cache(maxsize=32)
def layout_of(length: int, block: int, device: torch.device) -> Layout:
    """Return the layout of blocks of a size; the last block may be shorter."""
    number = torch.arange(length, device=device) // block
    return Layout(number.unsqueeze(1) == number, number.unsqueeze(1) > number, block)


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
        self.takes_positions = length is None

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

    def forward(self, z: Tensor, x: Tensor, block: int, cond: Tensor | None = None, at: Tensor | None = None) -> Tensor:
        """Compute the logits of every position.

        Args:
            z: the copy with masks, of shape (B, L).
            x: the clean copy, of shape (B, L). It is not read where one block holds everything.
            block: the number of positions of a block.
            cond: labels, of shape (B, J), if the network has any.
            at: the positions to compute logits of, of shape (B, L); None for all.

        Returns:
            The logits of each position given its block of z and the earlier blocks of x, of shape (B, L, K), or those
            of the M positions that were asked for, of shape (M, K).
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
        h = F.layer_norm(h, h.shape[-1:])
        return self.out(h if at is None else h[at])

    def init_state(self, batch: int, cond: Tensor | None = None) -> "BlockState":
        """Return the state before the first block, for a batch of this size."""
        return BlockState(batch, 0, cond, [None] * len(self.blocks))

    def read(self, z: Tensor, state: "BlockState") -> Tensor:
        """Return the logits (B, S, K) of the next block, given its masked copy (B, S) and the blocks before it."""
        h = self.continued(z, state)
        h = F.layer_norm(h, h.shape[-1:])
        if isinstance(self.out, PlaceHeads):
            return torch.stack([self.out.at(h[:, i], state.place + i) for i in range(z.shape[1])], dim=1)
        return self.out(h)

    def append(self, x: Tensor, state: "BlockState") -> "BlockState":
        """Return the state after a block of clean classes (B, S).

        The network reads the block together with the next one, in one pass.
        """
        if state.pending is not None:
            self.continued(x[:, :0], state)
        return replace(state, caches=list(state.caches), pending=x)

    def continued(self, z: Tensor, state: "BlockState") -> Tensor:
        """Return the features (B, S, C) of a block that comes after those of a state.

        If the last of these is pending, it passes through the network too, and is put into the caches of the state.
        """
        num_clean = 0 if state.pending is None else state.pending.shape[1]
        whole = z if state.pending is None else torch.cat([state.pending, z], dim=1)
        h = self.embedded(whole, state.cond, state.place)
        places = torch.arange(state.place, state.place + whole.shape[1], device=h.device)
        cos, sin = (a.to(h.dtype) for a in rotary_angles_at(places, self.head_channels))
        for index, layer in enumerate(self.blocks):
            assert isinstance(layer, PlainBlock)
            h, state.caches[index] = next_blocks(layer, h, cos, sin, state.caches[index], num_clean)
        state.place, state.pending = state.place + num_clean, None
        return h[:, num_clean:]

    def select_state(self, state: "BlockState", index: Tensor) -> "BlockState":
        """Return the state of some rows of the batch, `index` (M,), in a batch of its own."""
        caches = [None if cache is None else tuple(part[index] for part in cache) for cache in state.caches]
        cond = None if state.cond is None else state.cond[index]
        pending = None if state.pending is None else state.pending[index]
        return BlockState(len(index), state.place, cond, caches, pending)  # type: ignore[arg-type]


@dataclass
class BlockState:
    """What a network remembers of the clean blocks that are done.

    Args:
        batch: the number of rows.
        place: the number of positions in the caches.
        cond: the labels, (B, J).
        caches: of each layer.
        pending: the classes (B, S) of the last block, if they are not in the caches yet.
    """

    batch: int
    place: int
    cond: Tensor | None
    caches: list[LayerCache | None]
    pending: Tensor | None = None


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
        near = [blockwise_conv(layer.conv.weight, noisy, whole, layout.block)]
        near += [] if only_noisy else [blockwise_conv(layer.conv.weight, whole, whole, layout.block)]
        mixed = mixed + torch.cat(near, dim=1)
    return layer.mlp((h[:, :length] if only_noisy else h) + layer.dropout(mixed))


def blockwise_conv(weight: Tensor, own: Tensor, past: Tensor, block: int) -> Tensor:
    """Return the convolution of each position with its own block of one copy and the earlier blocks of another.

    Args:
        weight: one filter for each channel, of shape (C, 1, 1, kernel).
        own: the copy of which the own block is seen, of shape (B, L, C).
        past: the copy of which earlier blocks are seen, of shape (B, L, C).
        block: the number of positions of a block.

    Returns:
        The sums, of shape (B, L, C).
    """
    reach, length = weight.shape[-1] // 2, own.shape[1]
    num = -(-length // block)
    missing = num * block - length  # positions of the last block, which may be shorter
    before = F.pad(past, (0, 0, reach, missing)).unfold(1, reach, block)[:, :num].mT  # (B, blocks, reach, C)
    inside = F.pad(own, (0, 0, 0, missing)).unflatten(1, (num, block))
    found = conv_after(weight, before.flatten(0, 1), inside.flatten(0, 1))  # (B blocks, block, C)
    return found.reshape(len(own), num * block, -1)[:, :length]


def next_blocks(
    layer: PlainBlock, h: Tensor, cos: Tensor, sin: Tensor, cache: LayerCache | None, num_clean: int
) -> tuple[Tensor, LayerCache | None]:
    """Pass a clean block and a noisy one after it through a layer, (B, P + S, C); either may be empty.

    Returns the features of both, and the cache with the P = `num_clean` positions of the clean block.
    """
    n = F.layer_norm(h, h.shape[-1:])
    clean, noisy = n[:, :num_clean], n[:, num_clean:]
    q, k, v = layer.attention.project(n, cos, sin)
    past, reach = 0 if cache is None else cache[0].shape[2], 0 if layer.conv is None else layer.conv.kernel // 2
    before = n.new_zeros(len(n), reach, n.shape[-1]) if cache is None else cache[2]
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    sees = None
    if 0 < num_clean < n.shape[1]:  # the clean block does not see the noisy one
        is_noisy = torch.arange(past + n.shape[1], device=n.device) >= past + num_clean
        sees = is_noisy[past:].unsqueeze(1) | ~is_noisy
    mixed = layer.attention.out(F.scaled_dot_product_attention(q, k, v, attn_mask=sees).transpose(1, 2).flatten(2))
    last = torch.cat([before, clean], dim=1)[:, num_clean:]  # (B, reach, C)
    if layer.conv is not None:
        near = [conv_after(layer.conv.weight, *pair) for pair in ((before, clean), (last, noisy))]
        mixed = mixed + torch.cat(near, dim=1)
    kept = past + num_clean
    return layer.mlp(h + layer.dropout(mixed)), (k[:, :, :kept], v[:, :, :kept], last) if num_clean else cache


def conv_after(weight: Tensor, before: Tensor, own: Tensor) -> Tensor:
    """Return the convolution (B, S, C) of a block with itself and with the positions (B, reach, C) before it."""
    if not own.shape[1]:
        return own
    seen = F.pad(torch.cat([before, own], dim=1), (0, 0, 0, before.shape[1]))  # nothing after the block is seen
    turned = seen.transpose(1, 2).unsqueeze(2)  # (B, C, 1, reach + S + reach)
    return F.conv2d(turned, weight, groups=own.shape[-1]).squeeze(2).transpose(1, 2)
