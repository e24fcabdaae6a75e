"""Transformers over real channels, without time: bidirectional, and causal with a key/value cache."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.embeddings import rotary_angles, rotary_angles_at
from unordinal.nets.linear import InnerLinear, zero_linear
from unordinal.nets.sharp import SharpFeatures
from unordinal.nets.transformer import Attention, DepthwiseConv


class PlainBlock(nn.Module):
    """Attention (with a depthwise convolution beside it, if asked) and an MLP, each after a LayerNorm."""

    def __init__(
        self, width: int, *, num_heads: int, conv: int, num_blocks: int, is_causal: bool, dropout: float = 0.0
    ):
        super().__init__()
        self.dropout = nn.Dropout(dropout)  # of what the branches add, never of what passes beside them
        self.attention = Attention(width, global_heads=num_heads, is_causal=is_causal)
        self.conv = DepthwiseConv(width, conv, is_causal=is_causal) if conv else None
        self.up = InnerLinear(width, 4 * width)
        self.down = InnerLinear(4 * width, width)
        for layer in (self.attention.out, self.down):  # residual branches start small
            nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * num_blocks))
            nn.init.zeros_(layer.bias)

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        n = F.layer_norm(h, h.shape[-1:])
        mixed = self.attention(n, cos, sin)
        return self.mlp(h + self.dropout(mixed if self.conv is None else mixed + self.conv(n)))

    def after(self, seen: Tensor, num: int, cos: Tensor, sin: Tensor) -> Tensor:
        """The last `num` of `seen` (B, M + num, C), each from itself and what came before it: (B, num, C)."""
        n = F.layer_norm(seen, seen.shape[-1:])
        mixed = self.attention.after(n, num, cos, sin)
        mixed = mixed if self.conv is None else mixed + self.conv(n)[:, -num:]
        return self.mlp(seen[:, -num:] + self.dropout(mixed))

    def mlp(self, h: Tensor) -> Tensor:
        return h + self.dropout(self.down(F.relu(self.up(F.layer_norm(h, h.shape[-1:]))).square()))

    def step(self, h: Tensor, cos: Tensor, sin: Tensor, cache: tuple[Any, Any]) -> tuple[Tensor, tuple[Any, Any]]:
        n = F.layer_norm(h, h.shape[-1:])
        mixed, seen = self.attention.step(n, cos, sin, cache[0])
        window = None
        if self.conv is not None:
            near, window = self.conv.step(n, cache[1])
            mixed = mixed + near
        return self.mlp(h + mixed), (seen, window)


def check_sizes(width: int, num_blocks: int, num_heads: int, conv: int, dropout: float) -> None:
    if width < 1 or num_blocks < 1 or num_heads < 1 or width % (2 * num_heads):
        raise ValueError(
            f"a Transformer needs num_blocks >= 1 and a width that is a multiple of twice its heads; "
            f"got num_blocks {num_blocks}, width {width}, heads {num_heads}"
        )
    if conv < 0 or (conv and conv % 2 == 0):
        raise ValueError(f"the convolution's width must be odd, or 0 for none; got {conv}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout:g}")


def blocks_of(
    width: int, *, num_blocks: int, num_heads: int, conv: int, is_causal: bool, dropout: float = 0.0
) -> nn.ModuleList:
    settings: Any = {"num_heads": num_heads, "conv": conv, "num_blocks": num_blocks, "is_causal": is_causal}
    settings["dropout"] = dropout
    return nn.ModuleList(PlainBlock(width, **settings) for _ in range(num_blocks))


def fresh_state(batch: int, num_blocks: int) -> Any:
    """What a stack of causal blocks knows before the first position."""
    return {"batch": batch, "place": 0, "caches": [(None, None)] * num_blocks}


def step_blocks(blocks: nn.ModuleList, h: Tensor, state: Any, head_channels: int) -> tuple[Tensor, Any]:
    """One position through causal blocks, from the keys and values of those before: (B, W) -> (B, W), normed."""
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
    """Every position from all of them: (B, L, in) -> (B, L, out); the output starts at zero."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        width: int,
        num_blocks: int,
        num_heads: int,
        conv: int = 0,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_sizes(width, num_blocks, num_heads, conv, dropout)
        self.head_channels = width // num_heads
        self.look = SharpFeatures(in_channels)
        self.dropout = nn.Dropout(dropout)
        self.embed = nn.Linear(self.look.out_channels, width)
        self.blocks = blocks_of(width, num_blocks=num_blocks, num_heads=num_heads, conv=conv, is_causal=False)
        self.out = zero_linear(width, out_channels)

    def forward(self, v: Tensor) -> Tensor:
        h = self.embed(self.dropout(self.look(v)))
        cos, sin = (a.to(h.dtype) for a in rotary_angles(h.shape[1], self.head_channels, h.device))
        for block in self.blocks:
            h = block(h, cos, sin)
        return self.out(F.layer_norm(h, h.shape[-1:]))


class CausalTransformer(nn.Module):
    """Features of each position from the positions before it: (B, L, C) -> (B, L, width).

    >>> net = CausalTransformer(5, width=8, num_blocks=1, num_heads=2)
    >>> net(torch.randn(2, 6, 5)).shape
    torch.Size([2, 6, 8])
    """

    def __init__(
        self,
        in_channels: int,
        *,
        width: int,
        num_blocks: int,
        num_heads: int,
        conv: int = 0,
        dropout: float = 0.0,
        cond_channels: int = 0,
    ):
        super().__init__()
        check_sizes(width, num_blocks, num_heads, conv, dropout)
        self.out_channels, self.head_channels = width, width // num_heads
        self.look = SharpFeatures(in_channels)
        self.first = nn.Parameter(torch.zeros(self.look.out_channels))  # stands before the first position
        self.dropout = nn.Dropout(dropout)
        self.embed = nn.Linear(self.look.out_channels + cond_channels, width)
        self.blocks = blocks_of(width, num_blocks=num_blocks, num_heads=num_heads, conv=conv, is_causal=True)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        before = self.dropout(torch.cat([self.first.expand(len(v), 1, -1), self.look(v[:, :-1])], dim=1))
        h = self.embed(before if cond is None else torch.cat([before, cond], dim=-1))
        cos, sin = (a.to(h.dtype) for a in rotary_angles(h.shape[1], self.head_channels, h.device))
        for block in self.blocks:
            h = block(h, cos, sin)
        return F.layer_norm(h, h.shape[-1:])

    def init_state(self, batch: int) -> Any:
        return fresh_state(batch, len(self.blocks))

    def step(self, v_before: Tensor | None, state: Any, cond: Tensor | None = None) -> tuple[Tensor, Any]:
        """One position on, from the keys and values of those before."""
        before = self.dropout(self.first.expand(state["batch"], -1) if v_before is None else self.look(v_before))
        h = self.embed(before if cond is None else torch.cat([before, cond], dim=-1))  # (B, W)
        return step_blocks(self.blocks, h, state, self.head_channels)
