"""The presets of the systems the paper compares with, at size paper, against those systems' papers."""

import pytest

from unordinal.model_config import ArmConfig, CategoricalNfConfig, LatentConfig
from unordinal.presets import PRESETS, preset

SYSTEMS = ("arm", "arm-xl", "discrete-flow", "latent-af-af", "latent-iaf-scf", "categorical-nf")


@pytest.mark.parametrize("data", ["text8", "enwik8"])
def test_all_six_are_there(data: str) -> None:
    assert {f"{data}/{system}" for system in SYSTEMS} <= set(PRESETS)


def test_the_64_layers() -> None:
    model = preset("text8/arm").model
    assert isinstance(model, ArmConfig)
    assert (model.num_blocks, model.width, model.num_heads, model.dropout) == (64, 512, 2, 0.55)
    assert model.auxiliary


def test_segments_are_a_quarter_of_a_crop() -> None:
    for size in ("tiny", "small", "paper"):
        config = preset("text8/arm-xl", size)
        assert isinstance(config.model, ArmConfig)
        assert config.data.length == 4 * config.model.segment
        assert config.model.segment + config.model.memory == config.data.length  # no distance that training lacks


@pytest.mark.parametrize("flow", ["af-af", "iaf-scf"])
def test_latent_flows_train_as_in_appendix_b4(flow: str) -> None:
    config = preset(f"text8/latent-{flow}")
    assert isinstance(config.model, LatentConfig)
    assert config.model.flow == flow
    assert (config.train.batch_size, config.train.epochs) == (32, 30)
    assert (config.model.kl_flat, config.model.kl_rise, config.model.kl_by_budget) == (2, 4, False)


def test_categorical_nf_has_the_density_of_argmax_ar() -> None:
    for size in ("tiny", "small", "paper"):
        ours, theirs = preset("text8/argmax-ar", size), preset("text8/categorical-nf", size)
        assert isinstance(theirs.model, CategoricalNfConfig)
        for name in ("net", "width", "num_layers", "num_mixtures", "channel_width", "dropout"):
            assert getattr(ours.model, name) == getattr(theirs.model, name)
        assert ours.train.batch_size == theirs.train.batch_size
