"""Recipes of absorbing and of continuous uniform noise."""

from dataclasses import replace

import pytest
import torch

from unordinal.data.spec import DataSpec
from unordinal.diffusion.absorbing import AbsorbingNoise, MaskCountNoise
from unordinal.models.diffusion import Diffusion
from unordinal.nets.settings import DiffusionTransformer, Transformer, UNet
from unordinal.recipes import configured
from unordinal.recipes.continuous import AbsorbingSettings, UniformSettings

TEXT, MAPS = DataSpec("text", 5, (8,)), DataSpec("maps", 5, (8, 16))
SMALL, TIMED = Transformer(16, 1, 2), DiffusionTransformer(16, 1, 2, 0)


def test_what_the_settings_build() -> None:
    counted = AbsorbingSettings(SMALL).build(TEXT)
    assert isinstance(counted.noise, MaskCountNoise)
    assert counted.complementary
    timed = AbsorbingSettings(TIMED, draws="time", complementary=False, schedule="cosine", num_steps=7).build(TEXT)
    assert type(timed.noise) is AbsorbingNoise
    assert (timed.noise.num_steps, timed.times.num) == (7, 7)
    assert timed.net(torch.full((1, 8), 5), torch.ones(1)).shape == (1, 8, 5)
    assert UniformSettings(TIMED).build(TEXT).times.num is None


@pytest.mark.parametrize("name", ["uniform", "absorbing"])
def test_networks_follow_the_data(name: str) -> None:
    for shape, spec in (("sequences", TEXT), ("maps", MAPS)):
        config = configured(name, "tiny", shape)  # type: ignore[arg-type]
        model = config.model.build(spec)
        assert isinstance(model, Diffusion)
        x = torch.randint(5, (2, *spec.event_shape))
        assert model.training_loss(x).shape == (2,)
        assert model.sample(2, steps=3).shape == (2, *spec.event_shape)


def test_a_network_without_time_does_not_depend_on_it() -> None:
    for net, spec in ((SMALL, TEXT), (UNet(8, 2, deep_blocks=1, reads_time=False), MAPS)):
        model = AbsorbingSettings(net).build(spec)
        for p in model.parameters():
            torch.nn.init.normal_(p)
        z = torch.randint(6, (2, *spec.event_shape))
        assert torch.equal(model.net(z, torch.zeros(2)), model.net(z, torch.ones(2)))


@pytest.mark.parametrize(
    "settings",
    [
        AbsorbingSettings(TIMED),
        AbsorbingSettings(UNet()),
        replace(AbsorbingSettings(SMALL), num_steps=10),
        AbsorbingSettings(SMALL, draws="time"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: AbsorbingSettings) -> None:
    with pytest.raises(ValueError, match=r"`model\.draws` count"):
        settings.build(MAPS if isinstance(settings.net, UNet) else TEXT)
