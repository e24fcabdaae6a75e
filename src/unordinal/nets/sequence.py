"""Transformers over sequences of real vectors: bidirectional, and causal with a key/value cache."""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.columns import Classes
from unordinal.nets.embeddings import rotary_angles, rotary_angles_at
from unordinal.nets.linear import InnerLinear, Linear, zero_linear
from unordinal.nets.places import embedding_of, head_of, label_embedding
from unordinal.nets.settings import Transformer
from unordinal.nets.sharp import SharpFeatures
from unordinal.nets.transformer import Attention, DepthwiseConv


class PlainBlock(nn.Module):
    """A Transformer block: attention, optionally with a depthwise convolution next to it, and an MLP."""

    is_block = True

    def __init__(self, net: Transformer, *, is_causal: bool, dropout: float = 0.0):
        super().__init__()
        width = net.width
        self.dropout = nn.Dropout(dropout)  # of the residual branches
        self.attention = Attention(width, global_heads=net.num_heads, is_causal=is_causal)
        self.conv = DepthwiseConv(width, net.conv, is_causal=is_causal) if net.conv else None
        self.up = InnerLinear(width, 4 * width)
        self.down = InnerLinear(4 * width, width)
        for layer in (self.attention.out, self.down):  # residual branches start small
            nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * net.num_blocks))
            nn.init.zeros_(layer.bias)

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor, present: Tensor | None = None) -> Tensor:
        n = F.layer_norm(h, h.shape[-1:])
        mixed = self.attention(n, cos, sin, present)
        if self.conv is not None:
            mixed = mixed + self.conv(n if present is None else n * present.unsqueeze(-1))
        return self.mlp(h + self.dropout(mixed))

    def forward_last(self, seen: Tensor, num: int, cos: Tensor, sin: Tensor) -> Tensor:
        """Compute the causal block for the last `num` positions only: (B, M + num, C) -> (B, num, C)."""
        n = F.layer_norm(seen, seen.shape[-1:])
        mixed = self.attention.forward_last(n, num, cos, sin)
        mixed = mixed if self.conv is None else mixed + self.conv(n)[:, -num:]
        return self.mlp(seen[:, -num:] + self.dropout(mixed))

    def mlp(self, h: Tensor) -> Tensor:
        """Add the MLP branch."""
        return h + self.dropout(self.down(F.relu(self.up(F.layer_norm(h, h.shape[-1:]))).square()))

    def step(self, h: Tensor, cos: Tensor, sin: Tensor, cache: tuple[Any, Any]) -> tuple[Tensor, tuple[Any, Any]]:
        """Compute one position (B, 1, C) from the caches of attention and convolution; return it and the new caches."""
        n = F.layer_norm(h, h.shape[-1:])
        mixed, seen = self.attention.step(n, cos, sin, cache[0])
        window = None
        if self.conv is not None:
            near, window = self.conv.step(n, cache[1])
            mixed = mixed + near
        return self.mlp(h + mixed), (seen, window)


def make_blocks(net: Transformer, *, is_causal: bool, dropout: float = 0.0) -> nn.ModuleList:
    """Return a stack of blocks."""
    return nn.ModuleList(PlainBlock(net, is_causal=is_causal, dropout=dropout) for _ in range(net.num_blocks))


def initial_state(batch: int, num_blocks: int) -> Any:
    """Return the state of a stack of causal blocks before the first position."""
    return {"batch": batch, "place": 0, "caches": [(None, None)] * num_blocks}


def step_blocks(blocks: nn.ModuleList, h: Tensor, state: Any, head_channels: int) -> tuple[Tensor, Any]:
    """Pass one position through causal blocks with caches; return its normalised features (B, W) and the new state."""
    h = h.unsqueeze(1)
    place = torch.tensor([state["place"]], device=h.device)
    cos, sin = (a.to(h.dtype) for a in rotary_angles_at(place, head_channels))
    caches = []
    for block, cache in zip(blocks, state["caches"], strict=True):
        assert isinstance(block, PlainBlock)
        h, after = block.step(h, cos, sin, cache)
        caches.append(after)
    h = F.layer_norm(h, h.shape[-1:]).squeeze(1)
    return h, {"batch": state["batch"], "place": state["place"] + 1, "caches": caches}


class SequenceTransformer(nn.Module):
    """A bidirectional Transformer, whose output at each position depends on all positions. Its output starts at zero.

    Args:
        in_channels: the number of input channels.
        out_channels: the number of output channels.
        **sizes: the fields of `Transformer`: width, num_blocks, num_heads, conv, dropout.

    >>> SequenceTransformer(5, 3, width=8, num_blocks=1, num_heads=2)(torch.randn(2, 6, 5)).shape
    torch.Size([2, 6, 3])
    """

    def __init__(self, in_channels: int, out_channels: int, **sizes: Any):
        super().__init__()
        net = Transformer(**sizes)
        self.head_channels = net.head_channels
        self.look = SharpFeatures(in_channels)
        self.dropout = nn.Dropout(net.dropout)
        self.embed = Linear(self.look.out_channels, net.width)
        self.blocks = make_blocks(net, is_causal=False)
        self.out = zero_linear(net.width, out_channels)

    def forward(self, v: Tensor) -> Tensor:
        """Compute the output of every position: (B, L, in_channels) -> (B, L, out_channels)."""
        h = self.embed(self.dropout(self.look(v)))
        cos, sin = (a.to(h.dtype) for a in rotary_angles(h.shape[1], self.head_channels, h.device))
        for block in self.blocks:
            h = block(h, cos, sin)
        return self.out(F.layer_norm(h, h.shape[-1:]))


class DenoisingTransformer(nn.Module):
    """Logits of every position of a noisy sequence, from classes alone: (B, L) -> (B, L, K). It does not read the time.

    Args:
        num_classes: the number of classes K of the data, or one number for each column.
        num_input_classes: the number of classes that the network reads; by default `num_classes`.
        pad: the class of positions after the end of an example, which the others do not see; None for none.
        length: the number of places, if each has an embedding and an output layer of its own.
        labels: the number of classes of each label given with an example.
        **sizes: the fields of `Transformer`: width, num_blocks, num_heads, conv, dropout.

    >>> net = DenoisingTransformer(27, width=16, num_blocks=1, num_heads=2, num_input_classes=28)
    >>> net(torch.full((2, 6), 27)).shape
    torch.Size([2, 6, 27])
    """

    reads_time = False

    def __init__(
        self,
        num_classes: int | Sequence[int] | Classes,
        *,
        num_input_classes: int | None = None,
        pad: int | None = None,
        length: int | None = None,
        labels: tuple[int, ...] = (),
        **sizes: Any,
    ):
        super().__init__()
        net, classes = Transformer(**sizes), Classes(num_classes)
        num_special = (num_input_classes or classes.most) - classes.most
        self.head_channels, self.pad = net.head_channels, pad
        self.embed = embedding_of(classes, net.width, num_special=num_special, length=length)
        self.labels = label_embedding(labels, net.width)
        self.dropout = nn.Dropout(net.dropout)
        self.blocks = make_blocks(net, is_causal=False, dropout=net.dropout)
        self.out = head_of(classes, net.width, length=length)  # the first prediction is uniform
        self.takes_positions = length is None

    def forward(
        self, z: Tensor, time: Tensor | None = None, cond: Tensor | None = None, at: Tensor | None = None
    ) -> Tensor:
        """Compute the logits of every position, or of those alone where `at` (B, L) is true: (M, K)."""
        h, present = self.embed(z), None if self.pad is None else z != self.pad
        if self.labels is not None:
            h = h + self.labels(cond).unsqueeze(1)
        h = self.dropout(h)
        cos, sin = (a.to(h.dtype) for a in rotary_angles(h.shape[1], self.head_channels, h.device))
        for block in self.blocks:
            h = block(h, cos, sin, present)
        h = F.layer_norm(h, h.shape[-1:])
        return self.out(h if at is None else h[at])


class CausalTransformer(nn.Module):
    """A Transformer whose features at each position depend only on the positions before it.

    Calling it computes all positions at once; `init_state` and `step` compute one position after another with a
    key/value cache.

    Args:
        in_channels: the number of input channels C.
        cond_channels: the number of channels H of the condition; 0 for none.
        **sizes: the fields of `Transformer`: width, num_blocks, num_heads, conv, dropout.

    >>> net = CausalTransformer(5, width=8, num_blocks=1, num_heads=2)
    >>> net(torch.randn(2, 6, 5)).shape
    torch.Size([2, 6, 8])
    """

    def __init__(self, in_channels: int, *, cond_channels: int = 0, **sizes: Any):
        super().__init__()
        net = Transformer(**sizes)
        self.out_channels, self.head_channels = net.width, net.head_channels
        self.look = SharpFeatures(in_channels)
        self.first = nn.Parameter(torch.zeros(self.look.out_channels))  # the input before the first position
        self.dropout = nn.Dropout(net.dropout)
        self.embed = Linear(self.look.out_channels + cond_channels, net.width)
        self.blocks = make_blocks(net, is_causal=True)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        """Compute the features of every position.

        Args:
            v: the input, of shape (B, L, C).
            cond: the condition, of shape (B, L, H).

        Returns:
            The features of each position given the positions before it, of shape (B, L, width).
        """
        before = self.dropout(torch.cat([self.first.expand(len(v), 1, -1), self.look(v[:, :-1])], dim=1))
        h = self.embed(before if cond is None else torch.cat([before, cond], dim=-1))
        cos, sin = (a.to(h.dtype) for a in rotary_angles(h.shape[1], self.head_channels, h.device))
        for block in self.blocks:
            h = block(h, cos, sin)
        return F.layer_norm(h, h.shape[-1:])

    def init_state(self, batch: int) -> Any:
        """Return the state before the first position, for a batch of this size."""
        return initial_state(batch, len(self.blocks))

    def step(self, v_before: Tensor | None, state: Any, cond: Tensor | None = None) -> tuple[Tensor, Any]:
        """Compute the features of the next position.

        Args:
            v_before: the input (B, C) at the position before it; None for the first position.
            state: the state after the position before; it must not be used again.
            cond: the condition (B, H) of the next position.

        Returns:
            The features, of shape (B, width), and the new state.
        """
        before = self.dropout(self.first.expand(state["batch"], -1) if v_before is None else self.look(v_before))
        h = self.embed(before if cond is None else torch.cat([before, cond], dim=-1))  # (B, W)
        return step_blocks(self.blocks, h, state, self.head_channels)
