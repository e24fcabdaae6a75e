"""The Transformer of a diffusion model over sequences, and the attention and convolution layers of all Transformers."""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.columns import Classes
from unordinal.nets.embeddings import TimeEmbedding, rotary_angles, rotate
from unordinal.nets.linear import InnerLinear, zero_linear
from unordinal.nets.places import embedding_of, head_of, label_embedding
from unordinal.nets.settings import DiffusionTransformer

# keys and values, both (B, heads, T, C) with room for T positions, and the number of positions filled
KeyValues = tuple[Tensor, Tensor, int]


class Attention(nn.Module):
    """Self-attention with rotary position embeddings: (B, L, C) -> (B, L, C).

    Args:
        width: the number of channels C.
        global_heads: the number of heads that attend to all positions.
        local_heads: the number of heads that attend to positions at most `window` away.
        window: the reach of local heads on either side.
        is_causal: whether a position attends only to itself and to positions before it; allows global heads only.
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

    def project(self, h: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries and keys, rotated by their positions, and values, each of shape (B, heads, L, C)."""
        batch, length, width = h.shape
        qkv = self.qkv(h).view(batch, length, 3, self.num_heads, width // self.num_heads)
        qk = rotate(qkv[:, :, :2], cos.unsqueeze(1), sin.unsqueeze(1))  # (B, L, 2, heads, C)
        q, k = (part.transpose(1, 2) for part in qk.unbind(2))  # (B, heads, L, C)
        return q, k, qkv[:, :, 2].transpose(1, 2)

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor, present: Tensor | None = None) -> Tensor:
        """Compute all positions; those that are not `present` (B, L), after the end of an example, are not seen."""
        q, k, v = self.project(h, cos, sin)
        length, cut = h.shape[1], self.global_heads
        seen = None if present is None else present[:, None, None]  # (B, 1, 1, L)
        if self.local_heads == 0 or length <= self.window + 1:  # the window covers everything
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=self.is_causal)
        else:
            near = window_mask(length, self.window, h.device)
            near = near if seen is None else near & seen
            heads = F.scaled_dot_product_attention(q[:, cut:], k[:, cut:], v[:, cut:], attn_mask=near)
            if cut:
                whole = F.scaled_dot_product_attention(q[:, :cut], k[:, :cut], v[:, :cut], attn_mask=seen)
                heads = torch.cat([whole, heads], dim=1)
        return self.out(heads.transpose(1, 2).flatten(2))

    def forward_last(self, h: Tensor, num: int, cos: Tensor, sin: Tensor) -> Tensor:
        """Compute causal attention for the last `num` positions only: (B, M + num, C) -> (B, num, C)."""
        q, k, v = self.project(h, cos, sin)
        place = torch.arange(h.shape[1], device=h.device)
        is_before = place <= place[-num:].unsqueeze(1)  # (num, M + num)
        heads = F.scaled_dot_product_attention(q[:, :, -num:], k, v, attn_mask=is_before)
        return self.out(heads.transpose(1, 2).flatten(2))

    def step(self, h: Tensor, cos: Tensor, sin: Tensor, cache: KeyValues | None) -> tuple[Tensor, KeyValues]:
        """Compute one position (B, 1, C), given the angles of its position and the cache of the positions before.

        The given cache may be overwritten; use the returned one from then on.
        """
        q, k, v = self.project(h, cos, sin)
        keys, values, num = cache = append_to_cache(cache, k, v)
        heads = F.scaled_dot_product_attention(q, keys[:, :, :num], values[:, :, :num])
        return self.out(heads.transpose(1, 2).flatten(2)), cache


def append_to_cache(cache: KeyValues | None, k: Tensor, v: Tensor) -> KeyValues:
    """Append the keys and values of one position, (B, heads, 1, C); a full cache doubles, so that copies are rare."""
    if cache is None:
        return k, v, 1
    keys, values, num = cache
    if torch.is_grad_enabled():  # tensors that a gradient needs must not be overwritten
        return torch.cat([keys[:, :, :num], k], dim=2), torch.cat([values[:, :, :num], v], dim=2), num + 1
    if num == keys.shape[2]:
        keys, values = F.pad(keys, (0, 0, 0, num)), F.pad(values, (0, 0, 0, num))
    keys[:, :, num : num + 1], values[:, :, num : num + 1] = k, v
    return keys, values, num + 1


def window_mask(length: int, window: int, device: torch.device) -> Tensor:
    """Return a mask (L, L) that is True where two positions are at most `window` apart."""
    position = torch.arange(length, device=device)
    return (position.unsqueeze(0) - position.unsqueeze(1)).abs() <= window


class DepthwiseConv(nn.Module):
    """A depthwise convolution along a sequence, with one filter per channel: (B, L, C) -> (B, L, C)."""

    def __init__(self, width: int, kernel: int, *, is_causal: bool = False):
        super().__init__()
        self.kernel, self.is_causal = kernel, is_causal
        self.weight = nn.Parameter(torch.randn(width, 1, 1, kernel) / math.sqrt(kernel))

    def forward(self, h: Tensor) -> Tensor:
        # conv2d on (B, C, 1, L) runs twice as fast as conv1d on a CPU; the transpose is a view.
        turned = h.transpose(1, 2).unsqueeze(2)
        if self.is_causal:
            mixed = F.conv2d(F.pad(turned, (self.kernel - 1, 0)), self.weight, groups=h.shape[-1])
        else:
            mixed = F.conv2d(turned, self.weight, padding=(0, self.kernel // 2), groups=h.shape[-1])
        return mixed.squeeze(2).transpose(1, 2)

    def step(self, h: Tensor, cache: Tensor | None) -> tuple[Tensor, Tensor]:
        """Compute one position (B, 1, C) with a cache of the kernel - 1 positions before; also return a new cache."""
        if cache is None:
            cache = h.new_zeros(len(h), self.kernel - 1, h.shape[-1])
        seen = torch.cat([cache, h], dim=1)  # (B, kernel, C)
        mixed = (seen * self.weight[:, 0, 0].T).sum(dim=1, keepdim=True)
        return mixed, seen[:, 1:]


class Block(nn.Module):
    """A Transformer block whose attention (with an optional depthwise convolution next to it) and MLP depend on time.

    Time modulates the layer norms (adaLN, Peebles and Xie 2023).
    """

    is_block = True

    def __init__(self, net: DiffusionTransformer):
        super().__init__()
        width = net.width
        self.attention = Attention(width, global_heads=net.global_heads, local_heads=net.local_heads, window=net.window)
        self.conv = DepthwiseConv(width, net.conv) if net.conv else None
        self.dropout = nn.Dropout(net.dropout)  # of the residual branches
        self.up = InnerLinear(width, 4 * width)
        self.down = InnerLinear(4 * width, width)
        self.modulation = nn.Linear(width, 6 * width)
        nn.init.zeros_(self.modulation.weight)  # time has no influence at first
        nn.init.zeros_(self.modulation.bias)
        for layer in (self.attention.out, self.down):  # residual branches start small
            nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * net.num_blocks))
            nn.init.zeros_(layer.bias)

    def forward(self, h: Tensor, time: Tensor, cos: Tensor, sin: Tensor, present: Tensor | None = None) -> Tensor:
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = self.modulation(time).unsqueeze(1).chunk(6, dim=-1)
        n = modulated_norm(h, shift_a, scale_a)
        mixed = self.attention(n, cos, sin, present)
        if self.conv is not None:
            mixed = mixed + self.conv(n if present is None else n * present.unsqueeze(-1))
        h = torch.addcmul(h, self.dropout(mixed), 1 + gate_a)
        n = modulated_norm(h, shift_m, scale_m)
        # relu squared trains as well as gelu here and costs a tenth of it on a CPU
        return torch.addcmul(h, self.dropout(self.down(F.relu(self.up(n)).square())), 1 + gate_m)


def modulated_norm(h: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """Normalise h without learned weights, then return (1 + scale) h + shift."""
    return torch.addcmul(shift, F.layer_norm(h, h.shape[-1:]), 1 + scale)


class TimeTransformer(nn.Module):
    """A Transformer that predicts the classes of a sequence from noisy classes and time: the network of a diffusion.

    Sequences may have any length. The first prediction is uniform.

    Args:
        num_classes: the number of classes K that it predicts, or one number for each column.
        num_input_classes: the number of classes that it reads, if noise has more classes than the data, such as a mask.
        pad: the class of positions after the end of an example, which the others do not see; None for none.
        length: the number of places, if each has an embedding and an output layer of its own.
        labels: the number of classes of each label given with an example.
        **sizes: the fields of `DiffusionTransformer`: width, num_blocks, global_heads, local_heads, window, conv,
            dropout.

    >>> net = TimeTransformer(27, width=32, num_blocks=2, global_heads=1, local_heads=1, window=8)
    >>> net(torch.zeros(2, 20, dtype=torch.long), torch.tensor([0.1, 0.9])).shape
    torch.Size([2, 20, 27])
    """

    def __init__(
        self,
        num_classes: int | Sequence[int] | Classes,
        *,
        num_input_classes: int | None = None,
        pad: int | None = None,
        length: int | None = None,
        labels: tuple[int, ...] = (),
        local_heads: int = 0,
        **sizes: Any,
    ):
        super().__init__()
        net, classes = DiffusionTransformer(local_heads=local_heads, **sizes), Classes(num_classes)
        width, num_special = net.width, (num_input_classes or classes.most) - classes.most
        self.head_channels, self.pad = net.head_channels, pad
        self.embed = embedding_of(classes, width, num_special=num_special, length=length)
        self.labels = label_embedding(labels, width)
        self.dropout = nn.Dropout(net.dropout)
        self.time = TimeEmbedding(width, 4 * width)
        self.blocks = nn.ModuleList(Block(net) for _ in range(net.num_blocks))
        self.modulation = zero_linear(width, 2 * width)
        self.out = head_of(classes, width, length=length)  # the first prediction is uniform

    def forward(self, z: Tensor, time: Tensor, cond: Tensor | None = None) -> Tensor:
        """Predict the classes of every position.

        Args:
            z: noisy classes, of shape (B, L).
            time: times in [0, 1], of shape (B,).
            cond: labels, of shape (B, J), if the network has any.

        Returns:
            Logits of the classes, of shape (B, L, K), or (B, sum of K).
        """
        h = self.embed(z)  # (B, L) -> (B, L, C)
        if self.labels is not None:
            h = h + self.labels(cond).unsqueeze(1)
        h, present = self.dropout(h), None if self.pad is None else z != self.pad
        c = F.silu(self.time(time))  # (B, C)
        cos, sin = rotary_angles(z.shape[1], self.head_channels, h.device)
        cos, sin = cos.to(h.dtype), sin.to(h.dtype)
        for block in self.blocks:
            h = block(h, c, cos, sin, present)
        shift, scale = self.modulation(c).unsqueeze(1).chunk(2, dim=-1)
        return self.out(modulated_norm(h, shift, scale))  # (B, L, C) -> (B, L, K)
