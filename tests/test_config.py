"""Configurations: saved and read, changed by name, compared, and refused where they make no sense."""

import json
from dataclasses import replace
from typing import Any

import pytest

from unordinal.config import (
    OWN,
    DataConfig,
    OwnModel,
    RunConfig,
    differences,
    from_plain,
    paths_of,
    to_plain,
    with_settings,
)
from unordinal.data.spec import DataSpec
from unordinal.recipes import RECIPES, SIZES, configured, experiments
from unordinal.recipes.arm import ArmSettings
from unordinal.recipes.settings import Ngrams, Transformer

OWN_RUN = RunConfig(OWN, OWN, "tiny", DataConfig("docs"), OwnModel("Mine"))


def saved(config: RunConfig) -> dict[str, Any]:
    """As it would be read from a file."""
    return json.loads(json.dumps(config.to_dict()))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [*RECIPES, *experiments()])
def test_what_is_saved_comes_back_the_same(name: str, size: str) -> None:
    for shape in RECIPES[name].takes if name in RECIPES else ("sequences",):
        config = configured(name, size, shape)
        again = RunConfig.from_dict(saved(config))
        assert again == config
        assert differences(config, again) == []
    assert RunConfig.from_dict(saved(OWN_RUN)) == OWN_RUN


def test_settings_are_changed_by_their_name_or_by_as_much_of_it_as_is_needed() -> None:
    config = configured("text8/argmax-ar")
    for name, path in (
        ("lr", "train.lr"),
        ("train.lr", "train.lr"),
        ("dropout", "model.density.net.dropout"),
        ("net.dropout", "model.density.net.dropout"),
        ("model.density.net.dropout", "model.density.net.dropout"),
        ("ema", "optim.ema"),
    ):
        changed = with_settings(config, {name: 0.25})
        assert differences(config, changed) == [f"{path}: {dotted(config, path)} -> 0.25"]
        assert dotted(changed, path) == 0.25
    both = with_settings(config, {"density.net.width": 8, "inverse.width": 4, "length": 32})
    assert (dotted(both, "model.density.net.width"), dotted(both, "model.inverse.width"), both.data.length) == (
        8,
        4,
        32,
    )
    assert dotted(config, "model.inverse.width") == 64  # what was given stays as it is


def dotted(config: RunConfig, path: str) -> Any:
    value: Any = config
    for name in path.split("."):
        value = getattr(value, name)
    return value


def test_a_name_that_several_settings_have_is_refused() -> None:
    config = configured("argmax-ar")
    with pytest.raises(ValueError, match="several settings are called 'width'") as caught:
        with_settings(config, {"width": 8})
    assert "model.density.net.width, model.inverse.width; give the whole name" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["stps", "net.widht", "name", "data.name", "idth", "preset", "size", ".lr", "train", ""]
)
def test_a_name_that_no_setting_has_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown setting '{name}'; known: .*model.net.width.*train.lr"):
        with_settings(configured("arm"), {name: 8})


def test_a_model_of_ones_own_has_no_settings_here_but_its_training_has() -> None:
    with pytest.raises(ValueError, match="unknown setting 'width'; a model of your own has no settings here"):
        with_settings(OWN_RUN, {"width": 8})
    assert with_settings(OWN_RUN, {"lr": 0.5, "ema": 0.5}).train.lr == 0.5
    with pytest.raises(ValueError, match="the model, a Mine, was made in Python; pass it"):
        OWN_RUN.model.build(DataSpec("docs", 3, (8,)))


@pytest.mark.parametrize(
    ("preset", "settings", "message"),
    [
        ("multinomial", {"output": "denoisr"}, r"unknown output 'denoisr'; did you mean denoiser\?"),
        ("multinomial", {"times": "importanc"}, r"unknown times 'importanc'; did you mean importance\?"),
        ("argmax-ar", {"surjection": "binry"}, r"unknown surjection 'binry'; did you mean binary\?"),
        ("arm", {"optimizer": "adamq"}, "unknown optimizer 'adamq'; did you mean"),
        ("multinomial", {"output": 3}, "output cannot be 3"),
        ("arm", {"num_blocks": 2.5}, "num_blocks cannot be 2.5"),
        ("arm", {"num_blocks": "2"}, "num_blocks cannot be '2'"),
        ("arm", {"num_blocks": True}, "num_blocks cannot be True"),
        ("arm", {"num_blocks": None}, "num_blocks cannot be None"),
        ("arm", {"lr": "fast"}, "lr cannot be 'fast'"),
        ("arm", {"auxiliary": 1}, "auxiliary cannot be 1"),
        ("discrete-flow", {"net": "lst"}, r"unknown net 'lst'; did you mean lstm\? \(known: lstm, transformer\)"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(preset: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        with_settings(configured(preset), settings)


def test_values_take_the_type_of_their_setting() -> None:
    config = with_settings(configured("arm"), {"lr": 1, "ema": 0, "clip": None, "validate_every": 5})
    assert isinstance(config.train.lr, float)
    assert isinstance(config.optim.ema, float)
    assert config.optim.clip is None
    assert config.train.validate_every == 5


def test_a_budget_replaces_that_of_the_recipe() -> None:
    config = configured("arm")
    assert config.train.minutes == 2
    train = with_settings(config, {"steps": 7}).train
    assert (train.steps, train.minutes, train.epochs) == (7, None, None)
    paper = with_settings(configured("arm", "paper"), {"minutes": 3.0}).train
    assert (paper.steps, paper.minutes, paper.epochs) == (None, 3.0, None)
    assert with_settings(config, {"lr": 0.1}).train.minutes == 2


def test_a_network_is_exchanged_by_the_name_of_its_class_and_keeps_what_both_have() -> None:
    config = configured("discrete-flow")
    changed = with_settings(config, {"net": "lstm", "num_layers": 3})
    net = dotted(changed, "model.net")
    assert type(net).__name__ == "LSTM"
    assert (net.width, net.num_layers) == (dotted(config, "model.net.width"), 3)
    assert RunConfig.from_dict(saved(changed)) == changed
    assert any("model.net.kind: Transformer -> LSTM" in line for line in differences(config, changed))


def test_differences_are_those_of_every_setting_but_the_ignored() -> None:
    old = configured("arm")
    new = replace(with_settings(old, {"lr": 0.5, "net.width": 8, "length": 9}), size="small")
    assert differences(old, new) == [
        "size: tiny -> small",
        "data.length: None -> 9",
        f"model.net.width: {dotted(old, 'model.net.width')} -> 8",
        f"train.lr: {old.train.lr} -> 0.5",
    ]
    assert differences(old, new, ignore=("size", "model.net.width", "train.lr")) == ["data.length: None -> 9"]


def test_every_setting_has_a_dotted_name() -> None:
    found = paths_of(configured("argmax-ar").model)
    assert {"density", "density.net", "density.net.width", "inverse.num_flows", "surjection", "base"} <= found.keys()
    assert found["density.net"].width == found["density.net.width"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recipe": "arn"}, r"unknown recipe 'arn'; did you mean arm\?"),
        ({"recipe": None}, "recipe cannot be None"),
        ({"size": "huge"}, "unknown size 'huge'"),
        ({"train": 5}, "train cannot be 5"),
        ({"train": {"stps": 5}}, "not a run's configuration: 'stps'"),
        ({"train": {"steps": "5"}}, "train.steps cannot be '5'"),
        ({"optim": {"optimizer": "adamq"}}, "unknown optim.optimizer 'adamq'"),
        ({"model": {}}, "not a run's configuration: .*net"),
        ({"model": {"net": {"kind": "LSTM"}}}, "unknown kind of model.net 'LSTM'"),
        ({"model": {"net": {"width": 8.5}}}, "model.net.width cannot be 8.5"),
    ],
)
def test_damaged_configurations_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    values = saved(configured("arm"))
    with pytest.raises(ValueError, match=message):
        RunConfig.from_dict({**values, **change})
    for name in values:
        with pytest.raises(ValueError, match=f"not a run's configuration: '{name}'"):
            RunConfig.from_dict({key: value for key, value in values.items() if key != name})


def test_tuples_come_back_from_json() -> None:
    settings = ArmSettings(Transformer(), ngrams=Ngrams(orders=(3, 4)))
    again = from_plain(ArmSettings, json.loads(json.dumps(to_plain(settings))), "model")
    assert again == settings
    with pytest.raises(ValueError, match=r"model\.ngrams\.orders cannot be 'x'"):
        from_plain(ArmSettings, {**to_plain(settings), "ngrams": {"kind": "Ngrams", "orders": ["x"]}}, "model")
