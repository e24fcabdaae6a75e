"""Settings of networks, densities p(v) and inverses q(u | x); `parts.py` builds the modules that they describe."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DiffusionTransformer:
    """The network of diffusion on sequences: a Transformer that reads noisy classes and the time."""

    width: int = 512  # Number of channels.
    num_blocks: int = 12  # Number of layers.
    global_heads: int = 8  # Attention heads that attend to the whole sequence.
    local_heads: int = 8  # Attention heads that attend to a window around each position.
    window: int = 128  # Positions to either side that a local head attends to.
    conv: int = 0  # Kernel size of a depthwise convolution beside the attention, an odd number; 0 for none.


@dataclass(frozen=True)
class UNet:
    """The network of diffusion on maps: a U-Net that reads noisy classes and the time."""

    width: int = 64  # Number of channels at full resolution; it doubles at each lower resolution.
    num_levels: int = 4  # Number of resolutions, each half of the one before.
    num_blocks: int = 1  # Residual blocks per resolution on the way down, and as many on the way up.
    deep_blocks: int = 4  # Residual blocks at the lowest resolution, with attention between them.
    num_heads: int = 4  # Attention heads at the lowest resolution.
    reads_time: bool = True  # Let the prediction depend on the time, or the noise.


@dataclass(frozen=True)
class Transformer:
    """A Transformer that reads a sequence."""

    width: int = 512  # Number of channels.
    num_blocks: int = 4  # Number of layers.
    num_heads: int = 8  # Number of attention heads.
    conv: int = 0  # Kernel size of a depthwise convolution beside the attention, an odd number; 0 for none.
    dropout: float = 0.0  # Dropout rate at the input; in arm, arm-xl and absorbing, also in every layer.


@dataclass(frozen=True)
class Ngrams:
    """Embeddings of n-grams, the last n classes before a position, from tables indexed by hashes."""

    orders: tuple[int, ...] = ()  # Lengths of the n-grams to embed, such as 3 4 5, with one table each; empty for none.
    rows: int = 65536  # Largest number of rows of a table of n-grams; if there are more n-grams, several share a row.
    row_width: int = 32  # Number of channels of a row in a table of n-grams.


@dataclass(frozen=True)
class LSTM:
    """An LSTM that reads a sequence."""

    width: int = 2048  # Number of channels, in each direction if the LSTM is bidirectional.
    num_layers: int = 2  # Number of layers.
    dropout: float = 0.0  # Dropout rate at the network's input.


@dataclass(frozen=True)
class DenseNet:
    """A DenseNet, densely connected convolutions, that reads a map."""

    width: int = 512  # Number of channels that all convolutions add together.
    depth: int = 8  # Number of convolutions.


@dataclass(frozen=True)
class Mixture:
    """The density p(v) of a sequence: mixtures of logistics, autoregressive over positions and channels of v."""

    net: LSTM | Transformer  # The network that reads the previous positions; an LSTM in the paper.
    num_mixtures: int = 27  # Number of logistic components of each mixture.
    channel_width: int = 64  # Hidden units per channel of v in the network that is autoregressive over channels.


@dataclass(frozen=True)
class CouplingLayers:
    """The density p(v) of a sequence: a flow of 1x1 convolutions and logistic mixture couplings, with a normal base."""

    net: LSTM | Transformer  # The network of each coupling; a bidirectional LSTM in the paper.
    num_flows: int = 8  # Number of pairs of an invertible 1x1 convolution and a coupling.
    num_mixtures: int = 8  # Number of logistic components of each mixture.


@dataclass(frozen=True)
class Levels:
    """The density p(v) of a map: a multi-scale flow of 1x1 convolutions and couplings, with a normal base."""

    net: DenseNet  # The network of each coupling.
    num_levels: int = 4  # Number of scales; each has half the rows and columns and four times the channels.
    num_flows: int = 10  # Number of pairs of an invertible 1x1 convolution and a coupling at each scale.
    num_mixtures: int = 0  # Number of logistic components of each coupling; 0 for affine couplings, as in the paper.


@dataclass(frozen=True)
class SequenceInverse:
    """The noise q(u | x) of a sequence: a normal distribution given features of x, and couplings if set."""

    width: int = 128  # Number of features of x at each position.
    num_blocks: int = 1  # Convolutions that compute the features; with 0 they depend on the class at the position only.
    num_flows: int = 0  # Pairs of an invertible 1x1 convolution and an affine coupling; 0 (the paper's) for a normal.


@dataclass(frozen=True)
class MapInverse:
    """The noise q(u | x) of a map: a normal distribution given features of x, and affine couplings (appendix B.2)."""

    net: DenseNet  # The network of each coupling.
    features: DenseNet  # The network that computes the features of x.
    num_flows: int = 8  # Number of pairs of an invertible 1x1 convolution and an affine coupling; 0 for a normal.


SequenceNet = LSTM | Transformer
Density = Mixture | CouplingLayers | Levels
Inverse = SequenceInverse | MapInverse
