"""Densely connected convolutions: the inputs of each layer and the receptive field of each pixel."""

import pytest
import torch
from torch import Tensor, nn

from unordinal.nets.densenet import DenseNet, MapContext


def randomised(net: nn.Module, seed: int = 0) -> nn.Module:
    """The network with all weights random, including those that are initialised to zero, in float64."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in net.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator)
    return net.double().eval().requires_grad_(False)


def random_map(*shape: int, num_classes: int = 5) -> Tensor:
    return torch.randint(num_classes, shape, generator=torch.Generator().manual_seed(1))


def test_densenet_starts_at_zero_and_every_layer_reads_all_before() -> None:
    net = DenseNet(4, 6, width=7, depth=3, num_sharp=2).requires_grad_(False)
    assert [conv.in_channels for conv in net.convs] == [6, 9, 11]
    assert [conv.out_channels for conv in net.convs] == [3, 2, 2]
    h = torch.randn(2, 4, 6, 4)
    assert float(net(h).abs().max()) == 0
    assert net(h).shape == (2, 4, 6, 6)


def test_context_depends_on_the_neighbours() -> None:
    net = randomised(MapContext(5, width=6, depth=2))
    x = random_map(1, 9, 9)
    y = x.clone()
    y[0, 4, 4] = (y[0, 4, 4] + 1) % 5
    changed = ((net(x) - net(y)).abs().amax(-1) > 1e-12)[0].nonzero()
    assert changed.min() == 2
    assert changed.max() == 6


@pytest.mark.parametrize(("make", "message"), [(lambda: DenseNet(3, 3, width=1, depth=2), "depth 2 and width 1")])
def test_impossible_sizes_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
