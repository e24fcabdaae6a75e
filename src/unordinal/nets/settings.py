"""Settings of networks, without torch, so that the command line can read them quickly."""

from dataclasses import dataclass
from typing import Annotated

from unordinal.settings import Checked, Range

Count = Annotated[int, Range(1)]
Rate = Annotated[float, Range(0, below=1)]


@dataclass(frozen=True)
class DiffusionTransformer(Checked):
    """The network of diffusion on sequences: a Transformer that reads noisy classes and the time."""

    width: Count = 512
    """Number of channels."""
    num_blocks: Count = 12
    """Number of layers."""
    global_heads: Annotated[int, Range(0)] = 8
    """Attention heads that attend to the whole sequence."""
    local_heads: Annotated[int, Range(0)] = 8
    """Attention heads that attend to a window around each position."""
    window: Annotated[int, Range(0)] = 128
    """Positions to either side that a local head attends to."""
    conv: Annotated[int, Range(0)] = 0
    """Kernel size, odd, of a depthwise convolution next to attention; 0 for none."""
    dropout: Rate = 0.0
    """Dropout rate at the input and in every layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.width, self.global_heads + self.local_heads, self.conv)

    @property
    def head_channels(self) -> int:
        """The number of channels of an attention head."""
        return self.width // (self.global_heads + self.local_heads)


@dataclass(frozen=True)
class UNet(Checked):
    """The network of diffusion on maps: a U-Net that reads noisy classes and the time."""

    width: Count = 64
    """Number of channels at full resolution; it doubles at each lower resolution."""
    num_levels: Count = 4
    """Number of resolutions, each half of the one before."""
    num_blocks: Count = 1
    """Residual blocks per resolution on the way down, and as many on the way up."""
    deep_blocks: Count = 4
    """Residual blocks at the lowest resolution, with attention between them."""
    num_heads: Count = 4
    """Attention heads at the lowest resolution."""
    reads_time: bool = True
    """Let the prediction depend on the time, or the noise."""


@dataclass(frozen=True)
class Transformer(Checked):
    """A Transformer that reads a sequence."""

    width: Count = 512
    """Number of channels."""
    num_blocks: Count = 4
    """Number of layers."""
    num_heads: Count = 8
    """Number of attention heads."""
    conv: Annotated[int, Range(0)] = 0
    """Kernel size, odd, of a depthwise convolution next to attention; 0 for none."""
    dropout: Rate = 0.0
    """Dropout rate at the input; in arm, arm-xl and absorbing, also in every layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.width, self.num_heads, self.conv)

    @property
    def head_channels(self) -> int:
        """The number of channels of an attention head."""
        return self.width // self.num_heads


@dataclass(frozen=True)
class Ngrams:
    """Embeddings of n-grams, the last n classes before a position, from tables indexed by hashes."""

    orders: tuple[int, ...] = ()
    """Lengths of the n-grams to embed, such as 3 4 5, with one table each; empty for none."""
    rows: int = 65536
    """Largest number of rows of a table of n-grams; if there are more n-grams, several share a row."""
    row_width: int = 32
    """Number of channels of a row in a table of n-grams."""
    classes: int | None = None
    """Number of classes that the tables were made for, a start sign included, where a model that started from another
    has more."""


@dataclass(frozen=True)
class LSTM(Checked):
    """An LSTM that reads a sequence."""

    width: Count = 2048
    """Number of channels, in each direction if the LSTM is bidirectional."""
    num_layers: Count = 2
    """Number of layers."""
    dropout: Rate = 0.0
    """Dropout rate at the network's input."""


@dataclass(frozen=True)
class DenseNet(Checked):
    """A DenseNet, densely connected convolutions, that reads a map."""

    width: Count = 512
    """Number of channels that all convolutions add together."""
    depth: Count = 8
    """Number of convolutions."""


def check_heads(width: int, num_heads: int, conv: int) -> None:
    """Raise a ValueError if attention heads do not divide the width, or a convolution has no centre."""
    if num_heads < 1 or width % (2 * num_heads):
        raise ValueError(f"`width` {width} must be a multiple of twice the number of heads, {num_heads}")
    if conv and conv % 2 == 0:
        raise ValueError(f"`conv`, the kernel size of a convolution, must be odd, or 0 for none; got {conv}")
