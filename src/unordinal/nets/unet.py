"""The U-Net of a diffusion model over maps."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.conv import MapConv
from unordinal.nets.embeddings import TimeEmbedding
from unordinal.nets.linear import InnerLinear, zero_linear
from unordinal.nets.places import label_embedding
from unordinal.nets.transformer import modulated_norm


class UNet(nn.Module):
    """A U-Net that predicts the classes of a map from noisy classes and time: the network of a diffusion.

    Level i has `width` 2^i channels and 2^-i times the resolution. The lowest level has self-attention over all its
    pixels between its blocks. Maps may have any size. The first prediction is uniform.

    Args:
        num_classes: the number of classes K that it predicts.
        width: the number of channels at full resolution.
        num_levels: the number of levels.
        num_blocks: the number of blocks of each level except the lowest, on the way down and again on the way up.
        deep_blocks: the number of blocks of the lowest level.
        num_heads: the number of attention heads; the number of channels of the lowest level is a multiple of it.
        num_input_classes: the number of classes that it reads, if noise has more classes than the data, such as a mask.
        reads_time: whether the prediction depends on the time.
        labels: the number of classes of each label given with an example.

    >>> net = UNet(8, width=16, num_levels=3, deep_blocks=2)
    >>> net(torch.zeros(2, 6, 10, dtype=torch.long), torch.tensor([0.1, 0.9])).shape
    torch.Size([2, 6, 10, 8])
    """

    def __init__(
        self,
        num_classes: int,
        *,
        width: int = 64,
        num_levels: int = 4,
        num_blocks: int = 1,
        deep_blocks: int = 2,
        num_heads: int = 4,
        num_input_classes: int | None = None,
        reads_time: bool = True,
        labels: tuple[int, ...] = (),
    ):
        super().__init__()
        self.reads_time = reads_time
        if min(width, num_levels, num_blocks, deep_blocks, num_heads) < 1:
            raise ValueError(
                f"a U-Net needs width, num_levels, num_blocks, deep_blocks and num_heads of at least 1; got {width}, "
                f"{num_levels}, {num_blocks}, {deep_blocks} and {num_heads}"
            )
        widths = [width * 2**level for level in range(num_levels)]
        if widths[-1] % num_heads:
            raise ValueError(f"the lowest level's width {widths[-1]} must be a multiple of num_heads {num_heads}")
        time_width = 4 * width
        self.embed = nn.Embedding(num_input_classes or num_classes, width)
        self.labels = label_embedding(labels, width)
        self.time = TimeEmbedding(time_width, time_width) if reads_time else None
        self.time_width = time_width
        self.down = nn.ModuleList(
            nn.ModuleList(ConvBlock(c, time_width) for _ in range(num_blocks)) for c in widths[:-1]
        )
        self.shrink = nn.ModuleList(MapConv(c, 2 * c, stride=2) for c in widths[:-1])
        self.deep = nn.ModuleList(ConvBlock(widths[-1], time_width) for _ in range(deep_blocks))
        self.attention = nn.ModuleList(MapAttention(widths[-1], num_heads) for _ in range(deep_blocks - 1))
        self.grow = nn.ModuleList(InnerLinear(2 * c, c) for c in widths[:-1])
        self.merge = nn.ModuleList(InnerLinear(2 * c, c) for c in widths[:-1])
        self.up = nn.ModuleList(nn.ModuleList(ConvBlock(c, time_width) for _ in range(num_blocks)) for c in widths[:-1])
        self.modulation = zero_linear(time_width, 2 * width)
        self.out = zero_linear(width, num_classes)  # the first prediction is uniform

    def forward(self, z: Tensor, time: Tensor, cond: Tensor | None = None) -> Tensor:
        """Predict the classes of every pixel.

        Args:
            z: noisy classes, of shape (B, H, W).
            time: times in [0, 1], of shape (B,).
            cond: labels, of shape (B, J), if the network has any.

        Returns:
            Logits of the classes, of shape (B, H, W, K).
        """
        h = self.embed(z)  # (B, H, W) -> (B, H, W, C)
        if self.labels is not None:
            h = h + self.labels(cond)[:, None, None]
        c = h.new_zeros(z.shape[0], self.time_width) if self.time is None else F.silu(self.time(time))
        skips = []
        for blocks, shrink in zip(self.down, self.shrink, strict=True):
            for block in blocks:  # type: ignore[attr-defined]
                h = block(h, c)
            skips.append(h)
            h = shrink(h)
        for index, block in enumerate(self.deep):
            h = block(h, c)
            if index < len(self.attention):
                h = self.attention[index](h)
        for level in reversed(range(len(skips))):
            skip = skips[level]
            h = upsample(self.grow[level](h), skip.shape[1], skip.shape[2])
            h = self.merge[level](torch.cat([h, skip], dim=-1))
            for block in self.up[level]:  # type: ignore[attr-defined]
                h = block(h, c)
        shift, scale = self.modulation(c)[:, None, None].chunk(2, dim=-1)
        return self.out(modulated_norm(h, shift, scale))


def upsample(h: Tensor, num_rows: int, num_columns: int) -> Tensor:
    """Repeat every pixel as 2 x 2 pixels and crop: (B, H, W, C) -> (B, num_rows, num_columns, C)."""
    batch, rows, columns, channels = h.shape
    h = h[:, :, None, :, None].expand(batch, rows, 2, columns, 2, channels)
    return h.reshape(batch, 2 * rows, 2 * columns, channels)[:, :num_rows, :num_columns]


class ConvBlock(nn.Module):
    """A residual block of two 3x3 convolutions after a layer norm modulated by time: (B, H, W, C) -> (B, H, W, C)."""

    is_block = True

    def __init__(self, width: int, time_width: int):
        super().__init__()
        self.modulation = zero_linear(time_width, 2 * width)
        self.first = MapConv(width, width)
        self.second = MapConv(width, width)
        nn.init.normal_(self.second.weight, std=0.1 * (9 * width) ** -0.5)  # the residual branch starts small

    def forward(self, h: Tensor, time: Tensor) -> Tensor:
        shift, scale = self.modulation(time)[:, None, None].chunk(2, dim=-1)
        return h + self.second(F.silu(self.first(modulated_norm(h, shift, scale))))


class MapAttention(nn.Module):
    """Residual self-attention over all pixels of a small map: (B, H, W, C) -> (B, H, W, C).

    It has no position embedding: the convolutions around it know positions through their zero padding.
    """

    def __init__(self, width: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = InnerLinear(width, 3 * width, bias=False)
        self.out = InnerLinear(width, width)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, h: Tensor) -> Tensor:
        pixels = F.layer_norm(h, h.shape[-1:]).flatten(1, 2)  # (B, H W, C)
        qkv = self.qkv(pixels).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))  # (B, heads, H W, C)
        heads = F.scaled_dot_product_attention(q, k, v)
        return h + self.out(heads.transpose(1, 2).flatten(2)).view_as(h)
