"""Settings of densities p(v) and inverses q(u | x); `parts.py` builds the modules that they describe."""

from dataclasses import dataclass

from unordinal.nets.settings import LSTM, DenseNet, Transformer


@dataclass(frozen=True)
class Mixture:
    """The density p(v) of a sequence: mixtures of logistics, autoregressive over positions and channels of v."""

    net: LSTM | Transformer
    """The network that reads the previous positions; an LSTM in the paper."""
    num_mixtures: int = 27
    """Number of logistic components of each mixture."""
    channel_width: int = 64
    """Hidden units per channel of v in the network that is autoregressive over channels."""


@dataclass(frozen=True)
class CouplingLayers:
    """The density p(v) of a sequence: a flow of 1x1 convolutions and logistic mixture couplings, with a normal base."""

    net: LSTM | Transformer
    """The network of each coupling; a bidirectional LSTM in the paper."""
    num_flows: int = 8
    """Number of pairs of an invertible 1x1 convolution and a coupling."""
    num_mixtures: int = 8
    """Number of logistic components of each mixture."""


@dataclass(frozen=True)
class Levels:
    """The density p(v) of a map: a multi-scale flow of 1x1 convolutions and couplings, with a normal base."""

    net: DenseNet
    """The network of each coupling."""
    num_levels: int = 4
    """Number of scales; each has half the rows and columns and four times the channels."""
    num_flows: int = 10
    """Number of pairs of an invertible 1x1 convolution and a coupling at each scale."""
    num_mixtures: int = 0
    """Number of logistic components of each coupling; 0 for affine couplings, as in the paper."""


@dataclass(frozen=True)
class SequenceInverse:
    """The noise q(u | x) of a sequence: a normal distribution given features of x, and couplings if set."""

    width: int = 128
    """Number of features of x at each position."""
    num_blocks: int = 1
    """Convolutions that compute the features; with 0 they depend on the class at the position only."""
    num_flows: int = 0
    """Pairs of an invertible 1x1 convolution and an affine coupling; 0 (the paper's) for a normal."""


@dataclass(frozen=True)
class MapInverse:
    """The noise q(u | x) of a map: a normal distribution given features of x, and affine couplings (appendix B.2)."""

    net: DenseNet
    """The network of each coupling."""
    features: DenseNet
    """The network that computes the features of x."""
    num_flows: int = 8
    """Number of pairs of an invertible 1x1 convolution and an affine coupling; 0 for a normal."""


SequenceNet = LSTM | Transformer
Density = Mixture | CouplingLayers | Levels
Inverse = SequenceInverse | MapInverse
