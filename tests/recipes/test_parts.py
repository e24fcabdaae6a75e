"""What the shared settings build: sizes against closed forms, shapes against what was asked for."""

import pytest
import torch

from unordinal.data.spec import DataSpec
from unordinal.nets.settings import LSTM, DenseNet
from unordinal.recipes.parts import (
    SURJECTIONS,
    build_density,
    build_surjection,
    context_net,
    noise,
    require_shape,
    side_multiple,
)
from unordinal.recipes.settings import CouplingLayers, Levels, MapInverse, Mixture, SequenceInverse

INVERSE = SequenceInverse(4)
LEVELS = Levels(DenseNet(4, 1), 3, 1)


@pytest.mark.parametrize(
    ("name", "base", "channels"),
    [
        ("binary", None, 5),  # the bits of 27 classes
        ("softplus", None, 27),
        ("softplus", 3, 9),  # three digits of three
        ("softplus", 27, 27),
        ("gumbel", 6, 12),
        ("gumbel-threshold", 2, 10),
        ("round-uniform", None, 27),
        ("round-variational", 3, 9),
        ("ordinal", None, 1),
    ],
)
def test_a_surjection_has_so_many_reals(name: str, base: int | None, channels: int) -> None:
    surjection = build_surjection(name, base, 27, INVERSE)
    assert surjection.num_channels == channels
    x = torch.arange(27).view(9, 3)
    surjection.train()
    v, log_q = surjection.lift(x, context_net(INVERSE, 27)(x))
    assert v.shape == (9, 3, channels)
    assert log_q.shape == (9,)
    assert torch.equal(surjection.quantize(v), x)


def test_every_surjection_is_known_by_name() -> None:
    assert set(SURJECTIONS) == {
        *("binary", "softplus", "gumbel", "gumbel-threshold", "round-uniform", "round-variational", "ordinal")
    }


@pytest.mark.parametrize(
    ("density", "shape"),
    [(Mixture(LSTM(4, 1), 2, 4), (6, 3)), (CouplingLayers(LSTM(4, 1), 2, 2), (6, 3)), (LEVELS, (8, 4, 2))],
)
def test_a_density_draws_what_it_was_built_for(
    density: Mixture | CouplingLayers | Levels, shape: tuple[int, ...]
) -> None:
    made = build_density(density, shape, [])
    v, log_p = made.sample(2)
    assert v.shape == (2, *shape)
    with torch.no_grad():
        torch.testing.assert_close(made.log_prob(v), log_p, rtol=1e-3, atol=1e-3)


def test_sides_must_be_halved_once_per_level_but_the_first() -> None:
    assert side_multiple(LEVELS) == 4
    assert side_multiple(CouplingLayers(LSTM())) == 1
    require_shape(DataSpec("tiny", 3, (8, 4)), LEVELS)
    for spec in (DataSpec("tiny", 3, (6, 4)), DataSpec("tiny", 3, (8,))):
        with pytest.raises(ValueError, match=r"`model\.density\.num_levels` is 3"):
            require_shape(spec, LEVELS)
    with pytest.raises(ValueError, match="takes sequences"):
        require_shape(DataSpec("tiny", 3, (8, 4)), CouplingLayers(LSTM()))


def test_noise_begins_where_it_is_told() -> None:
    """Its normal has the mean and scale asked for, whatever the context, until something is learned."""
    for inverse in (INVERSE, MapInverse(DenseNet(4, 1), DenseNet(4, 1), 0)):
        q = noise(inverse, 2, mean=3.0, log_scale=-1.0)
        shape = (4000, 1, 4) if inverse is INVERSE else (4000, 1, 1, 4)
        torch.manual_seed(0)
        with torch.no_grad():
            u, _ = q.sample(4000, torch.randn(shape))
        assert abs(float(u.mean()) - 3) < 4.5 * 0.368 / 8000**0.5
        assert float(u.std()) == pytest.approx(0.368, rel=0.05)
    with pytest.raises(ValueError, match="at least 2 channels; got 1 for 1"):
        noise(SequenceInverse(4, num_flows=1), 1)
