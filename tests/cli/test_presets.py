"""`unordinal presets`: which models and experiments are listed."""

import pytest
from conftest import Cli

from unordinal.cli.presets import num_parameters
from unordinal.data.spec import DataSpec
from unordinal.recipes import configured


def test_models_and_experiments_are_listed(cli: Cli) -> None:
    listed = cli("presets", "--parameters", "--json").json["presets"]
    assert listed["text8/multinomial"]["parameters"]["tiny"] < listed["text8/multinomial"]["parameters"]["paper"]
    assert "text8/multinomial" in cli("presets").out
    assert "pretrained:text8-arm" in cli("presets").out


@pytest.mark.parametrize(
    ("preset", "num_classes", "event_shape"),
    [("text8/arm", 27, (256,)), ("toy/eight-gaussians", 91, (2,)), ("cityscapes/vae", 8, (32, 64))],
)
def test_parameters_are_counted_without_the_model(preset: str, num_classes: int, event_shape: tuple[int, ...]) -> None:
    config = configured(preset, "tiny")
    model = config.model.build(DataSpec("", num_classes, event_shape))
    assert num_parameters(config) == sum(p.numel() for p in model.parameters())
