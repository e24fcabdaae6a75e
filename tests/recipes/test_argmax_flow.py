"""Argmax flows and dequantisation at size paper against the paper's tables, written down here a second time."""

import pytest

from unordinal.data.download import Text8Source
from unordinal.experiments import EXPERIMENTS
from unordinal.nets.settings import LSTM
from unordinal.recipes import configured
from unordinal.recipes.argmax_flow import ArgmaxFlowSettings
from unordinal.recipes.settings import CouplingLayers, Levels, MapInverse, Mixture

TEXT_WAYS = {"argmax": "binary", "uniform-dequant": "round-uniform", "variational-dequant": "round-variational"}
MAP_WAYS = {
    "argmax-softplus": "softplus",
    "argmax-gumbel": "gumbel",
    "argmax-gumbel-threshold": "gumbel-threshold",
    "uniform-dequant": "round-uniform",
    "variational-dequant": "round-variational",
}


@pytest.mark.parametrize("way", TEXT_WAYS)
@pytest.mark.parametrize(
    ("data", "kind", "width", "batch_size", "optimizer", "dropout", "epochs"),
    [
        ("text8", "ar", 2048, 64, "adam", 0.25, 40),
        ("enwik8", "ar", 2048, 64, "adam", 0.25, 40),
        ("text8", "coupling", 512, 16, "adamax", 0.05, 40),
        ("enwik8", "coupling", 768, 32, "adamax", 0.1, 20),
    ],
)
def test_text_is_as_published(
    way: str, data: str, kind: str, width: int, batch_size: int, optimizer: str, dropout: float, epochs: int
) -> None:
    config = configured(f"{data}/{way}-{kind}", "paper")
    model = config.model
    assert isinstance(model, ArgmaxFlowSettings)
    assert isinstance(model.density, Mixture if kind == "ar" else CouplingLayers)
    assert isinstance(model.density, Mixture | CouplingLayers)
    net = model.density.net
    assert isinstance(net, LSTM)
    assert (model.surjection, model.base) == (TEXT_WAYS[way], None)
    assert (net.width, net.num_layers, net.dropout) == (width, 2, dropout)
    if isinstance(model.density, CouplingLayers):
        assert model.density.num_flows == 8
    assert (config.train.batch_size, config.train.lr, config.train.epochs) == (batch_size, 1e-3, epochs)
    assert (config.optim.optimizer, config.optim.decay_per_epoch, config.optim.ema) == (optimizer, 0.995, 0.0)
    assert isinstance(config.data, Text8Source)  # or enwik8, which is one too
    assert (config.data.name, config.data.length) == (data, 256 if data == "text8" else 320)
    assert config.data.alphabet == ("text8" if data == "text8" else "bytes")


@pytest.mark.parametrize("way", [*MAP_WAYS, "vae"])
def test_maps_are_as_published(way: str) -> None:
    config = configured(f"cityscapes/{way}", "paper")
    density, inverse = config.model.density, config.model.inverse  # type: ignore[attr-defined]
    assert isinstance(density, Levels)
    assert isinstance(inverse, MapInverse)
    assert (density.num_levels, density.num_flows, density.num_mixtures, inverse.num_flows) == (4, 10, 0, 8)
    if isinstance(config.model, ArgmaxFlowSettings):
        assert (config.model.surjection, config.model.base) == (MAP_WAYS[way], None)
    assert (config.train.batch_size, config.train.lr, config.train.epochs) == (64, 1e-3, 2000)
    assert (config.optim.optimizer, config.optim.decay_per_epoch, config.optim.ema) == ("adamax", 0.995, 0.0)
    assert config.optim.warmup == 391  # ten epochs of 2500 maps in batches of 64
    assert config.data.name == "cityscapes"


def test_all_seven_of_the_table_are_there() -> None:
    assert {name for name in EXPERIMENTS if name.startswith("cityscapes/")} == {
        *(f"cityscapes/{way}" for way in MAP_WAYS),
        "cityscapes/multinomial",
        "cityscapes/vae",
    }
