"""The presets of maps at size paper against section 6.2 and appendix B.2, written down here a second time."""

import pytest

from unordinal.model_config import MapFlowConfig, MapMultinomialConfig, MapVaeConfig
from unordinal.presets import PRESETS, preset

WAYS = {
    "argmax-softplus": "softplus",
    "argmax-gumbel": "gumbel",
    "argmax-gumbel-threshold": "gumbel-threshold",
    "uniform-dequant": "round-uniform",
    "variational-dequant": "round-variational",
}


@pytest.mark.parametrize("way", [*WAYS, "vae"])
def test_flows_are_as_published(way: str) -> None:
    config = preset(f"cityscapes/{way}")
    model = config.model
    assert isinstance(model, MapVaeConfig if way == "vae" else MapFlowConfig)
    assert (model.num_levels, model.num_flows, model.num_mixtures, model.noise_flows) == (4, 10, 0, 8)
    if isinstance(model, MapFlowConfig):
        assert (model.surjection, model.base) == (WAYS[way], None)
    assert (config.train.batch_size, config.train.lr, config.train.epochs) == (64, 1e-3, 2000)
    assert (config.optim.optimizer, config.optim.decay_per_epoch, config.optim.ema) == ("adamax", 0.995, 0.0)
    assert config.optim.warmup == 391  # ten epochs of 2500 maps in batches of 64
    assert config.data.name == "cityscapes"


def test_the_diffusion_has_4000_steps() -> None:
    model = preset("cityscapes/multinomial").model
    assert isinstance(model, MapMultinomialConfig)
    assert (model.num_steps, model.width, model.num_levels) == (4000, 64, 4)


def test_all_seven_are_there() -> None:
    assert {name for name in PRESETS if name.startswith("cityscapes/")} == {
        *(f"cityscapes/{way}" for way in WAYS),
        "cityscapes/multinomial",
        "cityscapes/vae",
    }
