"""Transformers for sequences of any length: over noisy classes and time, and over real channels."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.embeddings import TimeEmbedding, rotary_angles, rotate
from unordinal.nets.linear import InnerLinear

KeyValues = tuple[Tensor, Tensor, int]  # keys and values (B, H, T, D) with room for T, and how many there are


class Attention(nn.Module):
    """Self-attention whose first `global_heads` heads see everything and whose `local_heads` see a window.

    With `is_causal` a position sees itself and what came before (global heads only), and `step` goes on by one.
    """

    def __init__(
        self, width: int, *, global_heads: int, local_heads: int = 0, window: int = 0, is_causal: bool = False
    ):
        super().__init__()
        assert not (is_causal and local_heads)
        self.num_heads = global_heads + local_heads
        self.global_heads, self.local_heads, self.window, self.is_causal = global_heads, local_heads, window, is_causal
        self.qkv = InnerLinear(width, 3 * width, bias=False)
        self.out = InnerLinear(width, width)

    def projected(self, h: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys, turned by their positions, and values: three (B, heads, L, C)."""
        batch, length, width = h.shape
        qkv = self.qkv(h).view(batch, length, 3, self.num_heads, width // self.num_heads)
        qk = rotate(qkv[:, :, :2], cos.unsqueeze(1), sin.unsqueeze(1))  # (B, L, 2, heads, C)
        q, k = (part.transpose(1, 2) for part in qk.unbind(2))  # (B, heads, L, C)
        return q, k, qkv[:, :, 2].transpose(1, 2)

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = self.projected(h, cos, sin)
        length, cut = h.shape[1], self.global_heads
        if self.local_heads == 0 or length <= self.window + 1:  # the window covers everything
            heads = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        else:
            near = window_mask(length, self.window, h.device)
            local = F.scaled_dot_product_attention(q[:, cut:], k[:, cut:], v[:, cut:], attn_mask=near)
            heads = local
            if cut:
                heads = torch.cat([F.scaled_dot_product_attention(q[:, :cut], k[:, :cut], v[:, :cut]), local], dim=1)
        return self.out(heads.transpose(1, 2).flatten(2))

    def after(self, h: Tensor, num: int, cos: Tensor, sin: Tensor) -> Tensor:
        """Causal attention of the last `num` positions only: (B, M + num, C) -> (B, num, C)."""
        q, k, v = self.projected(h, cos, sin)
        place = torch.arange(h.shape[1], device=h.device)
        is_before = place <= place[-num:].unsqueeze(1)  # (num, M + num)
        heads = F.scaled_dot_product_attention(q[:, :, -num:], k, v, attn_mask=is_before)
        return self.out(heads.transpose(1, 2).flatten(2))

    def step(self, h: Tensor, cos: Tensor, sin: Tensor, cache: KeyValues | None) -> tuple[Tensor, KeyValues]:
        """One position (B, 1, C) at the angles of its place; the cache of those before is used up."""
        q, k, v = self.projected(h, cos, sin)
        keys, values, num = cache = remembered(cache, k, v)
        heads = F.scaled_dot_product_attention(q, keys[:, :, :num], values[:, :, :num])
        return self.out(heads.transpose(1, 2).flatten(2)), cache


def remembered(cache: KeyValues | None, k: Tensor, v: Tensor) -> KeyValues:
    """The cache with one position (B, H, 1, D) more; it doubles where it is full, so that few are ever copied."""
    if cache is None:
        return k, v, 1
    keys, values, num = cache
    if torch.is_grad_enabled():  # what a gradient needs is not written over
        return torch.cat([keys[:, :, :num], k], dim=2), torch.cat([values[:, :, :num], v], dim=2), num + 1
    if num == keys.shape[2]:
        keys, values = F.pad(keys, (0, 0, 0, num)), F.pad(values, (0, 0, 0, num))
    keys[:, :, num : num + 1], values[:, :, num : num + 1] = k, v
    return keys, values, num + 1


def window_mask(length: int, window: int, device: torch.device) -> Tensor:
    """True where two positions are at most `window` apart: (L, L)."""
    position = torch.arange(length, device=device)
    return (position.unsqueeze(0) - position.unsqueeze(1)).abs() <= window


class DepthwiseConv(nn.Module):
    """One filter per channel along the sequence: (B, L, C) -> (B, L, C)."""

    def __init__(self, width: int, kernel: int, *, is_causal: bool = False):
        super().__init__()
        self.kernel, self.is_causal = kernel, is_causal
        self.weight = nn.Parameter(torch.randn(width, 1, 1, kernel) / math.sqrt(kernel))

    def forward(self, h: Tensor) -> Tensor:
        # conv2d on (B, C, 1, L) runs twice as fast on a CPU as conv1d; the transpose is only a view.
        turned = h.transpose(1, 2).unsqueeze(2)
        if self.is_causal:
            mixed = F.conv2d(F.pad(turned, (self.kernel - 1, 0)), self.weight, groups=h.shape[-1])
        else:
            mixed = F.conv2d(turned, self.weight, padding=(0, self.kernel // 2), groups=h.shape[-1])
        return mixed.squeeze(2).transpose(1, 2)

    def step(self, h: Tensor, cache: Tensor | None) -> tuple[Tensor, Tensor]:
        """One position (B, 1, C); the cache holds the kernel - 1 before it."""
        if cache is None:
            cache = h.new_zeros(len(h), self.kernel - 1, h.shape[-1])
        seen = torch.cat([cache, h], dim=1)  # (B, kernel, C)
        mixed = (seen * self.weight[:, 0, 0].T).sum(dim=1, keepdim=True)
        return mixed, seen[:, 1:]


class Block(nn.Module):
    """Attention (with a depthwise convolution beside it, if asked) and an MLP, both modulated by time (adaLN)."""

    def __init__(self, width: int, *, global_heads: int, local_heads: int, window: int, conv: int, num_blocks: int):
        super().__init__()
        self.attention = Attention(width, global_heads=global_heads, local_heads=local_heads, window=window)
        self.conv = DepthwiseConv(width, conv) if conv else None
        self.up = InnerLinear(width, 4 * width)
        self.down = InnerLinear(4 * width, width)
        self.modulation = nn.Linear(width, 6 * width)
        nn.init.zeros_(self.modulation.weight)  # time starts without influence
        nn.init.zeros_(self.modulation.bias)
        for layer in (self.attention.out, self.down):  # residual branches start small
            nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * num_blocks))
            nn.init.zeros_(layer.bias)

    def forward(self, h: Tensor, time: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = self.modulation(time).unsqueeze(1).chunk(6, dim=-1)
        n = modulated_norm(h, shift_a, scale_a)
        mixed = self.attention(n, cos, sin)
        if self.conv is not None:
            mixed = mixed + self.conv(n)
        h = torch.addcmul(h, mixed, 1 + gate_a)
        n = modulated_norm(h, shift_m, scale_m)
        # relu squared trains as well as gelu here and costs a tenth of it on a CPU
        return torch.addcmul(h, self.down(F.relu(self.up(n)).square()), 1 + gate_m)


def modulated_norm(h: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """LayerNorm without weights of its own, then (1 + scale) h + shift from time."""
    return torch.addcmul(shift, F.layer_norm(h, h.shape[-1:]), 1 + scale)


class TimeTransformer(nn.Module):
    """Logits over classes for every position of a noisy sequence: (B, L) classes, (B,) time in [0, 1] -> (B, L, K).

    `num_input_classes` is how many classes it reads, where noise has more of them than data: a mask, say.

    >>> net = TimeTransformer(27, width=32, num_blocks=2, global_heads=1, local_heads=1, window=8)
    >>> net(torch.zeros(2, 20, dtype=torch.long), torch.tensor([0.1, 0.9])).shape
    torch.Size([2, 20, 27])
    """

    def __init__(
        self,
        num_classes: int,
        *,
        width: int,
        num_blocks: int,
        global_heads: int,
        local_heads: int = 0,
        window: int = 128,
        conv: int = 0,
        num_input_classes: int | None = None,
    ):
        super().__init__()
        heads = global_heads + local_heads
        if num_blocks < 1 or window < 0 or min(global_heads, local_heads) < 0 or width < 1:
            raise ValueError(
                f"a Transformer needs width >= 1, num_blocks >= 1, window >= 0 and heads >= 0; got width {width}, "
                f"num_blocks {num_blocks}, window {window}, heads {global_heads} + {local_heads}"
            )
        if heads < 1 or width % (2 * heads):
            raise ValueError(f"width {width} must be a multiple of twice the number of heads, {heads}")
        if conv < 0 or (conv and conv % 2 == 0):
            raise ValueError(f"the convolution's width must be odd, so that it is centred, or 0 for none; got {conv}")
        self.head_channels = width // heads
        self.embed = nn.Embedding(num_input_classes or num_classes, width)
        self.time = TimeEmbedding(width, 4 * width)
        self.blocks = nn.ModuleList(
            Block(
                width,
                global_heads=global_heads,
                local_heads=local_heads,
                window=window,
                conv=conv,
                num_blocks=num_blocks,
            )
            for _ in range(num_blocks)
        )
        self.modulation = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, num_classes)
        for layer in (self.modulation, self.out):  # the first prediction is uniform
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        h = self.embed(z)  # (B, L) -> (B, L, C)
        c = F.silu(self.time(time))  # (B, C)
        cos, sin = rotary_angles(z.shape[1], self.head_channels, h.device)
        cos, sin = cos.to(h.dtype), sin.to(h.dtype)
        for block in self.blocks:
            h = block(h, c, cos, sin)
        shift, scale = self.modulation(c).unsqueeze(1).chunk(2, dim=-1)
        return self.out(modulated_norm(h, shift, scale))  # (B, L, C) -> (B, L, K)
