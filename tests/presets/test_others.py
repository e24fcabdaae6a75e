"""The presets of the systems the paper compares with, at size paper, against those systems' papers."""

import pytest

from unordinal.data.spec import DataSpec
from unordinal.model_config import ArmConfig, CategoricalNfConfig, LatentConfig
from unordinal.models import build_model
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.latent_flow import LatentFlow
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
        assert config.model.num_segments == 4


@pytest.mark.parametrize("flow", ["af-af", "iaf-scf"])
def test_latent_flows_train_as_in_appendix_b4(flow: str) -> None:
    config = preset(f"text8/latent-{flow}")
    assert isinstance(config.model, LatentConfig)
    assert config.model.flow == flow
    assert (config.train.batch_size, config.train.epochs) == (32, 30)
    assert config.model.kl_flat * 30 == pytest.approx(2)
    assert config.model.kl_rise * 30 == pytest.approx(4)
    assert config.model.num_flows == {"af-af": 5, "iaf-scf": 3}[flow]
    assert (config.model.width, config.model.num_layers, config.model.latent_channels) == (500, 2, 50)


@pytest.mark.parametrize(("data", "symbols"), [("text8", 27), ("enwik8", 256)])
def test_categorical_nf_has_the_density_of_argmax_ar(data: str, symbols: int) -> None:
    for size in ("tiny", "small", "paper"):
        ours, theirs = preset(f"{data}/argmax-ar", size), preset(f"{data}/categorical-nf", size)
        assert isinstance(theirs.model, CategoricalNfConfig)
        for name in ("net", "width", "num_layers", "num_mixtures", "channel_width", "dropout"):
            assert getattr(ours.model, name) == getattr(theirs.model, name)
        assert ours.train.batch_size == theirs.train.batch_size
        assert (ours.train, ours.optim) == (theirs.train, theirs.optim)
    flow, nf = (
        build_model(preset(f"{data}/{name}", "tiny").model, DataSpec(data, symbols, (8,)))
        for name in ("argmax-ar", "categorical-nf")
    )
    assert isinstance(flow, ArgmaxFlow)
    assert isinstance(nf, LatentFlow)
    assert nf.num_channels == flow.surjection.num_channels
