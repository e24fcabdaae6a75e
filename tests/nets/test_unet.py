"""The U-Net: rows and columns are not confused, sizes are free, and attention reaches the whole map."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.unet import UNet, upsample


def randomised(net: nn.Module, seed: int = 0) -> nn.Module:
    """The network with all weights random, including those that are initialised to zero, in float64."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in net.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator)
    return net.double().eval().requires_grad_(False)


def random_map(*shape: int, num_classes: int = 5) -> Tensor:
    return torch.randint(num_classes, shape, generator=torch.Generator().manual_seed(1))


def changed_places(net: nn.Module, row: int, column: int, height: int, width: int) -> Tensor:
    """Where the output changes when the class of one pixel changes: (height, width) bool."""
    x = random_map(1, height, width)
    y = x.clone()
    y[0, row, column] = (y[0, row, column] + 1) % 5
    time = torch.tensor([0.3])
    return ((net(x, time) - net(y, time)).abs().amax(-1) > 1e-12)[0]


def test_rows_and_columns_are_not_swapped() -> None:
    net = randomised(UNet(5, width=8, num_levels=2, deep_blocks=2, num_heads=2))
    x, time = random_map(2, 8, 8), torch.tensor([0.2, 0.7])
    out = net(x, time)
    turned = net(x.transpose(1, 2), time).transpose(1, 2)
    assert out.shape == (2, 8, 8, 5)
    assert float((out - turned).abs().max()) > 0.01  # a map and its transpose differ


def test_a_pixel_has_influence_around_its_own_position() -> None:
    """Without attention (one deep block) influence is local, around (row, column) and not around (column, row)."""
    net = randomised(UNet(5, width=4, num_levels=2, num_blocks=1, deep_blocks=1, num_heads=1))
    for row, column in ((3, 24), (12, 5)):
        places = changed_places(net, row, column, 16, 32).nonzero()
        assert len(places) > 0
        middle = places.double().mean(0)
        assert abs(float(middle[0]) - row) < 4
        assert abs(float(middle[1]) - column) < 4
        assert (places[:, 0].max() - places[:, 0].min()) < 32
        assert (places[:, 1] - column).abs().max() < 16
    assert changed_places(net, 3, 24, 16, 32)[3, 24]


def test_attention_reaches_the_whole_map() -> None:
    net = randomised(UNet(5, width=4, num_levels=2, deep_blocks=2, num_heads=2))
    assert bool(changed_places(net, 0, 0, 16, 32).all())


@pytest.mark.parametrize("shape", [(2, 2), (6, 10), (4, 30), (32, 64), (14, 6)])
def test_maps_may_have_any_even_size(shape: tuple[int, int]) -> None:
    net = UNet(3, width=8, num_levels=4, deep_blocks=2)
    assert net(random_map(2, *shape, num_classes=3), torch.tensor([0.1, 1.0])).shape == (2, *shape, 3)


def test_time_matters_and_the_first_prediction_is_uniform() -> None:
    net = UNet(5, width=8, num_levels=2, num_heads=2).requires_grad_(False)
    x = random_map(2, 4, 6)
    assert float(net(x, torch.tensor([0.1, 0.9])).abs().max()) == 0
    net = randomised(net)  # type: ignore[assignment]
    early, late = net(x, torch.tensor([0.1, 0.1])), net(x, torch.tensor([0.9, 0.9]))
    assert float((early - late).abs().max()) > 1e-3


def test_upsample_repeats_every_pixel() -> None:
    h = torch.arange(6.0).reshape(1, 2, 3, 1)
    expected = F.interpolate(h.permute(0, 3, 1, 2), scale_factor=2).permute(0, 2, 3, 1)
    assert torch.equal(upsample(h, 4, 6), expected)
    assert torch.equal(upsample(h, 3, 5), expected[:, :3, :5])


def test_noise_may_have_a_class_more_than_data() -> None:
    net = randomised(UNet(3, width=4, num_levels=2, num_heads=2, num_input_classes=4))
    x = random_map(1, 4, 6, num_classes=3)
    masked = x.clone()
    masked[0, 1, 2] = 3
    time = torch.tensor([0.3])
    assert net(masked, time).shape == (1, 4, 6, 3)
    assert float((net(masked, time) - net(x, time)).abs().max()) > 1e-6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UNet(3, width=0), "at least 1; got 0"),
        (lambda: UNet(3, width=6, num_levels=1, num_heads=4), "a multiple of num_heads 4"),
    ],
)
def test_impossible_sizes_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
