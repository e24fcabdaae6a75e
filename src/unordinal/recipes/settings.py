"""Settings of networks, densities p(v) and inverses q(u | x), as plain values; `parts.py` builds what they describe."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DiffusionTransformer:
    """A Transformer over noisy classes and time."""

    width: int = 512  # channels
    num_blocks: int = 12  # layers
    global_heads: int = 8  # attention heads that see the whole sequence
    local_heads: int = 8  # attention heads that see a window
    window: int = 128  # how far a local head sees to either side
    conv: int = 0  # width of a depthwise convolution beside attention; 0 for none


@dataclass(frozen=True)
class UNet:
    """A U-Net over noisy maps and time."""

    width: int = 64  # channels at full resolution; every level below has twice as many
    num_levels: int = 4  # resolutions, each half of the one above
    num_blocks: int = 1  # residual blocks of a level on the way down, and on the way up
    deep_blocks: int = 4  # residual blocks of the lowest level, with attention between them
    num_heads: int = 4  # attention heads of the lowest level


@dataclass(frozen=True)
class Transformer:
    """A Transformer over a sequence."""

    width: int = 512  # channels
    num_blocks: int = 4  # layers
    num_heads: int = 8  # attention heads
    conv: int = 0  # width of a depthwise convolution beside attention; 0 for none
    dropout: float = 0.0  # dropout on the network's input (`arm`: on the embedding and on what every layer adds)


@dataclass(frozen=True)
class Ngrams:
    """Embeddings of the last few classes together, from tables of (hashed) contexts."""

    orders: tuple[int, ...] = ()  # how many classes a context has, one table each: 3 4 5, say; none for no tables
    rows: int = 65536  # the most rows of a table; contexts share them where there are more contexts
    row_width: int = 32  # channels of a row


@dataclass(frozen=True)
class LSTM:
    """An LSTM over a sequence."""

    width: int = 2048  # channels (of each direction, where it has two)
    num_layers: int = 2  # layers
    dropout: float = 0.0  # dropout on the network's input


SequenceNet = LSTM | Transformer


@dataclass(frozen=True)
class DenseNet:
    """Densely connected convolutions over maps."""

    width: int = 512  # channels that its convolutions add together
    depth: int = 8  # convolutions


@dataclass(frozen=True)
class Mixture:
    """p(v) of a sequence: every number a mixture of logistics, autoregressive over time and channels."""

    net: SequenceNet  # what reads the positions before; the paper's is an LSTM
    num_mixtures: int = 27  # logistic components of each number
    channel_width: int = 64  # hidden units per channel of the network inside a position


@dataclass(frozen=True)
class CouplingLayers:
    """p(v) of a sequence: pairs of an invertible 1x1 and a coupling of logistic mixtures, down to a normal."""

    net: SequenceNet  # the network of a coupling; the paper's is a bidirectional LSTM
    num_flows: int = 8  # pairs
    num_mixtures: int = 8  # logistic components of a coupling


@dataclass(frozen=True)
class Levels:
    """p(v) of a map: levels of 1x1s and couplings with a squeeze between them, down to a normal (appendix B.2)."""

    net: DenseNet  # the network of a coupling
    num_levels: int = 4  # levels; each has half the rows and columns and four times the channels of the one before
    num_flows: int = 10  # pairs of an invertible 1x1 and a coupling in each level
    num_mixtures: int = 0  # logistic components of a coupling; 0 makes it affine, as in the paper


@dataclass(frozen=True)
class SequenceInverse:
    """q(u | x) of a sequence: a normal given features of x, with couplings behind it where asked."""

    width: int = 128  # features of x that q sees
    num_blocks: int = 1  # convolutions over neighbours in those features; 0 lets q(v | x) see one class only
    num_flows: int = 0  # pairs of an invertible 1x1 and an affine coupling; 0 is a diagonal normal, as in the paper


@dataclass(frozen=True)
class MapInverse:
    """q(u | x) of a map: one level of 1x1s and affine couplings, given features of x (appendix B.2)."""

    net: DenseNet  # the network of a coupling
    features: DenseNet  # the network that reads the features of x
    num_flows: int = 8  # pairs of an invertible 1x1 and an affine coupling; 0 is a diagonal normal


Density = Mixture | CouplingLayers | Levels
Inverse = SequenceInverse | MapInverse
