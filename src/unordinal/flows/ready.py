"""Functions that build complete flows from the parts of this folder.

The networks are arguments, so that the same flow works with LSTMs, Transformers or convolutions.
"""

from collections.abc import Callable, Sequence

from torch import nn

from unordinal.flows.autoregressive import AutoregressiveMixture
from unordinal.flows.bijection import Bijection, Chain, Inverse
from unordinal.flows.coupling import Coupling, split_of
from unordinal.flows.density import Density, Flow, StandardNormal
from unordinal.flows.elementwise import Affine, ElementwiseTransform, LogisticMixture
from unordinal.flows.linear import InvertibleLinear
from unordinal.flows.reshape import Squeeze
from unordinal.nets.channels import ChannelNet

MakeNet = Callable[[int, int], nn.Module]
"""A function that builds the network of a coupling, given its numbers of input and output channels."""


def autoregressive_flow(
    net: nn.Module,
    *,
    width: int,
    event_shape: tuple[int, int],
    num_mixtures: int = 8,
    channel_width: int = 64,
    front: Sequence[Bijection] = (),
) -> Density:
    """Build an autoregressive flow over sequences, in which every value has a mixture of logistics as its distribution.

    The mixture depends on all earlier positions and on the earlier channels of the same position.

    Args:
        net: a causal network, such as `CausalLSTM` or `CausalTransformer`, from (B, L, C) to (B, L, width).
        width: the number of features that `net` returns at each position.
        event_shape: (L, C), the length of a sequence and its number of channels.
        num_mixtures: the number of components of a mixture.
        channel_width: the hidden units per channel of the small network that is autoregressive over channels.
        front: bijections that the data pass before all others, such as an `ActNorm`.

    Returns:
        The density over (L, C).

    >>> from unordinal.nets.recurrent import CausalLSTM
    >>> flow = autoregressive_flow(CausalLSTM(3, width=8), width=8, event_shape=(5, 3))
    >>> flow.sample(2)[0].shape
    torch.Size([2, 5, 3])
    """
    family, num_channels = LogisticMixture(num_mixtures), event_shape[1]
    head = ChannelNet(width, num_channels, family.num_parameters, width=channel_width)
    mixture = AutoregressiveMixture(net, head, family, event_shape=event_shape)
    return Flow(Chain(front), mixture) if front else mixture


def coupling_flow(
    make_net: MakeNet,
    *,
    event_shape: tuple[int, ...],
    num_flows: int = 8,
    num_mixtures: int = 8,
    num_levels: int = 1,
    front: Sequence[Bijection] = (),
) -> Density:
    """Build a coupling flow over sequences or maps with standard normal noise.

    It alternates invertible 1x1 convolutions and couplings. Between two levels there is a squeeze, which halves every
    side and multiplies the number of channels by 2 (sequences) or 4 (maps). The squeezes are undone at the end, so that
    the noise has the shape of the data and samples may have another size than the training data.

    Args:
        make_net: a function that builds the network of a coupling, given its numbers of input and output channels.
        event_shape: the shape (*D, C) of an example.
        num_flows: the number of couplings per level, at least 1.
        num_mixtures: the number of components of the mixtures of logistics that transform the values; 0 for affine
            transformations.
        num_levels: the number of levels, at least 1.
        front: bijections that the data pass before all others, such as an `ActNorm`.

    Returns:
        The density over (*D, C).

    >>> from unordinal.nets.context import Mlp
    >>> flow = coupling_flow(lambda read, write: Mlp(read, write, width=8), event_shape=(5, 3), num_flows=2)
    >>> flow.sample(2)[0].shape
    torch.Size([2, 5, 3])
    """
    for name, value in (("num_levels", num_levels), ("num_flows", num_flows)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    family: ElementwiseTransform = LogisticMixture(num_mixtures) if num_mixtures else Affine()
    layers, channels = list(front), event_shape[-1]
    for level in range(num_levels):
        if level:
            layers.append(Squeeze())
            channels *= 2 ** (len(event_shape) - 1)
        layers += coupling_layers(make_net, family, num_channels=channels, num_flows=num_flows)
    layers += [Inverse(Squeeze()) for _ in range(num_levels - 1)]
    return Flow(Chain(layers), StandardNormal(event_shape))


def conditional_flow(base: Density, make_net: MakeNet, *, num_channels: int, num_flows: int) -> Density:
    """Build a conditional flow q(u | cond): noise from `base` passes invertible 1x1 convolutions and affine couplings.

    Args:
        base: the conditional density of the noise.
        make_net: a function that builds the network of a coupling, given its numbers of input channels (not counting
            those of the condition, which the network reads too) and output channels.
        num_channels: the number of channels of u.
        num_flows: the number of couplings; 0 returns `base` itself.

    Returns:
        The conditional density of u.
    """
    if num_flows < 0:
        raise ValueError(f"num_flows must be at least 0, got {num_flows}")
    layers = coupling_layers(make_net, Affine(), num_channels=num_channels, num_flows=num_flows)
    # Training goes from noise to u, so this is the direction that needs no inverse.
    return Flow(Inverse(Chain(layers)), base) if layers else base


def coupling_layers(
    make_net: MakeNet, family: ElementwiseTransform, *, num_channels: int, num_flows: int
) -> list[Bijection]:
    """Return `num_flows` pairs of an invertible 1x1 convolution and a coupling."""
    layers: list[Bijection] = []
    for _ in range(num_flows):
        fixed = split_of(num_channels)
        net = make_net(fixed, family.num_parameters * (num_channels - fixed))
        layers += [InvertibleLinear(num_channels), Coupling(net, family, num_channels=num_channels)]
    return layers
