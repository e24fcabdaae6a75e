"""Ready-made flows: densities over (B, *D, C) of the parts of this folder, for networks of any kind.

Each takes a function that makes the network of a layer, so that one flow serves an LSTM, a Transformer or convolutions.
`front` are layers before all others, an ActNorm say.
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
"""The network of a coupling, from how many channels it reads and how many numbers it writes at each position."""


def autoregressive_flow(
    net: nn.Module,
    *,
    width: int,
    event_shape: tuple[int, int],
    num_mixtures: int = 8,
    channel_width: int = 64,
    front: Sequence[Bijection] = (),
) -> Density:
    """Every number of (L, C) a mixture of logistics, given all positions before and the channels before.

    `net` is a causal network with features of size `width`; `channel_width` are the hidden units per channel of the
    small network inside a position.

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
    """Pairs of an invertible 1x1 and a coupling over (*D, C), down to a standard normal.

    A coupling maps each number through a mixture of logistics, or affinely where `num_mixtures` is 0. With more levels
    than one there is a squeeze between them: half of every side, and 2 or 4 times the channels. The squeezes are undone
    at the end, so that noise has the shape of the data and any size can be sampled.

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
    """q(u | condition): what `base` draws, through pairs of an invertible 1x1 and an affine coupling.

    A coupling's network reads the condition beside its channels, which `make_net` must allow for.
    """
    if num_flows < 0:
        raise ValueError(f"num_flows must be at least 0, got {num_flows}")
    layers = coupling_layers(make_net, Affine(), num_channels=num_channels, num_flows=num_flows)
    # noise -> u is the direction of training, so nothing is inverted there
    return Flow(Inverse(Chain(layers)), base) if layers else base


def coupling_layers(
    make_net: MakeNet, family: ElementwiseTransform, *, num_channels: int, num_flows: int
) -> list[Bijection]:
    """So many pairs of an invertible 1x1 and a coupling."""
    layers: list[Bijection] = []
    for _ in range(num_flows):
        fixed = split_of(num_channels)
        net = make_net(fixed, family.num_parameters * (num_channels - fixed))
        layers += [InvertibleLinear(num_channels), Coupling(net, family, num_channels=num_channels)]
    return layers
