"""Latent flows and categorical normalizing flows at size paper against appendices B.4 and D."""

import pytest

from unordinal.data.spec import DataSpec
from unordinal.experiments import EXPERIMENTS
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.latent_flow import LatentFlow
from unordinal.recipes import configured
from unordinal.recipes.argmax_flow import ArgmaxFlowSettings
from unordinal.recipes.latent_flow import CategoricalNfSettings, LatentFlowSettings

SYSTEMS = ("arm", "arm-xl", "discrete-flow", "latent-af-af", "latent-iaf-scf", "categorical-nf")


@pytest.mark.parametrize("data", ["text8", "enwik8"])
def test_all_six_systems_of_the_comparison_are_there(data: str) -> None:
    assert {f"{data}/{system}" for system in SYSTEMS} <= set(EXPERIMENTS)


@pytest.mark.parametrize("flow", ["af-af", "iaf-scf"])
def test_latent_flows_train_as_in_appendix_b4(flow: str) -> None:
    config = configured(f"text8/latent-{flow}", "paper")
    model = config.model
    assert isinstance(model, LatentFlowSettings)
    assert model.flow == flow
    assert (config.train.batch_size, config.train.epochs) == (32, 30)
    assert model.kl_flat * 30 == pytest.approx(2)
    assert model.kl_rise * 30 == pytest.approx(4)
    assert model.num_flows == {"af-af": 5, "iaf-scf": 3}[flow]
    assert (model.net.width, model.net.num_layers, model.latent_channels) == (500, 2, 50)


@pytest.mark.parametrize(("data", "symbols"), [("text8", 27), ("enwik8", 256)])
def test_categorical_nf_has_the_density_of_argmax_ar(data: str, symbols: int) -> None:
    for size in ("tiny", "small", "paper"):
        ours, theirs = configured(f"{data}/argmax-ar", size), configured(f"{data}/categorical-nf", size)
        assert isinstance(ours.model, ArgmaxFlowSettings)
        assert isinstance(theirs.model, CategoricalNfSettings)
        assert ours.model.density == theirs.model.density
        assert (ours.train, ours.optim) == (theirs.train, theirs.optim)
    flow, nf = (
        configured(f"{data}/{name}", "tiny").model.build(DataSpec(data, symbols, (8,)))
        for name in ("argmax-ar", "categorical-nf")
    )
    assert isinstance(flow, ArgmaxFlow)
    assert isinstance(nf, LatentFlow)
    assert nf.num_channels == flow.surjection.num_channels
