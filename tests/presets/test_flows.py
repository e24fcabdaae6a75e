"""The flow presets at size paper against the paper's tables, written down here a second time."""

import pytest

from unordinal.model_config import ArgmaxFlowConfig
from unordinal.presets import PRESETS, preset

WAYS = {"argmax": "binary", "uniform-dequant": "round-uniform", "variational-dequant": "round-variational"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("data", "kind", "width", "batch_size", "optimizer", "dropout", "epochs"),
    [
        ("text8", "ar", 2048, 64, "adam", 0.25, 40),
        ("enwik8", "ar", 2048, 64, "adam", 0.25, 40),
        ("text8", "coupling", 512, 16, "adamax", 0.05, 40),
        ("enwik8", "coupling", 768, 32, "adamax", 0.1, 20),
    ],
)
def test_flows_are_as_published(
    way: str, data: str, kind: str, width: int, batch_size: int, optimizer: str, dropout: float, epochs: int
) -> None:
    config = preset(f"{data}/{way}-{kind}")
    model = config.model
    assert isinstance(model, ArgmaxFlowConfig)
    assert (model.flow, model.surjection, model.base, model.net) == (kind, WAYS[way], None, "lstm")
    assert (model.width, model.num_layers, model.dropout) == (width, 2, dropout)
    if kind == "coupling":
        assert model.num_flows == 8
    assert (config.train.batch_size, config.train.lr, config.train.epochs) == (batch_size, 1e-3, epochs)
    assert (config.optim.optimizer, config.optim.decay_per_epoch, config.optim.ema) == (optimizer, 0.995, 0.0)
    assert (config.data.name, config.data.length) == (data, 256 if data == "text8" else 320)
    assert config.data.alphabet == ("text8" if data == "text8" else "bytes")


def test_every_preset_says_what_it_is() -> None:
    for make in PRESETS.values():
        assert make.__doc__
