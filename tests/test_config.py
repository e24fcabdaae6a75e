"""Configurations: saved and read, changed by name, compared, and refused where they make no sense."""

import json
from dataclasses import replace
from typing import Any

import pytest

from unordinal.config import (
    OWN,
    OptimConfig,
    OwnModel,
    RunConfig,
    TrainConfig,
    differences,
    from_plain,
    paths_of,
    to_plain,
)
from unordinal.data import DATASETS, source_of
from unordinal.data.arrays import ArraySource
from unordinal.data.docs import DocsSource
from unordinal.data.given import GivenSource
from unordinal.data.spec import DataSpec
from unordinal.data.text import TextSource
from unordinal.experiments import EXPERIMENTS
from unordinal.nets.settings import Ngrams, Transformer
from unordinal.overrides import with_settings
from unordinal.recipes import RECIPES, SIZES, configured
from unordinal.recipes.arm import ArmSettings

OWN_RUN = RunConfig(OWN, OWN, "tiny", DocsSource(), OwnModel("Mine"))


def saved(config: RunConfig) -> dict[str, Any]:
    """As it would be read from a file."""
    return json.loads(json.dumps(config.to_dict()))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [*RECIPES, *EXPERIMENTS])
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
    paths = ("model.density.net.width", "model.inverse.width", "data.length")
    assert tuple(dotted(both, path) for path in paths) == (8, 4, 32)
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
    "name",
    ["stps", "net.widht", "name", "data.name", "data.path", "path", "idth", "preset", "size", ".lr", "train", ""],
)
def test_a_name_that_no_setting_has_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"unknown setting '{name}'.*known: .*model\.net\.width.*train\.lr"):
        with_settings(configured("arm", data=TextSource("/book.txt")), {name: 8})


def test_a_name_that_is_almost_that_of_a_setting_is_corrected() -> None:
    for wrong, right in (("stps", "steps"), ("lenght", "length"), ("num_block", "num_blocks")):
        with pytest.raises(ValueError, match=rf"unknown setting '{wrong}'; did you mean {right}\?"):
            with_settings(configured("arm", data=DocsSource()), {wrong: 8})


def test_a_model_of_ones_own_has_no_settings_here_but_its_training_has() -> None:
    with pytest.raises(ValueError, match="unknown setting 'width'") as caught:
        with_settings(OWN_RUN, {"width": 8})
    assert "train.lr" in str(caught.value)
    assert "net" not in str(caught.value)
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
        ("arm", {"lr": float("nan")}, "`lr` must be a number above 0, got nan"),
        ("arm", {"batch_size": 0}, "`batch_size` must be a whole number of at least 1, got 0"),
        ("arm", {"strategy": "ddp"}, r"unknown strategy 'ddp'.*\(known: replicate, fsdp\)"),
        ("arm", {"length": 0}, "`length` must be a whole number of at least 1, got 0"),
        ("discrete-flow", {"net": "lst"}, r"unknown net 'lst'; did you mean lstm\? \(known: lstm, transformer\)"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(preset: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        with_settings(configured(preset, data=DocsSource()), settings)


def test_values_take_the_type_of_their_setting() -> None:
    config = with_settings(configured("arm"), {"lr": 1, "ema": 0, "clip": None, "validate_every": 5})
    assert isinstance(config.train.lr, float)
    assert isinstance(config.optim.ema, float)
    assert config.optim.clip is None
    assert config.train.validate_every == 5


def test_a_budget_replaces_that_of_the_recipe() -> None:
    config = configured("arm")
    assert config.train.minutes == 2
    both = with_settings(config, {"steps": 7, "minutes": 3}).train
    assert (both.steps, both.minutes, both.epochs) == (7, 3, None)  # the first that is spent ends training
    train = with_settings(config, {"steps": 7}).train
    assert (train.steps, train.minutes, train.epochs) == (7, None, None)
    paper = with_settings(configured("arm", "paper"), {"minutes": 3.0}).train
    assert (paper.steps, paper.minutes, paper.epochs) == (None, 3.0, None)
    assert with_settings(config, {"lr": 0.1}).train.minutes == 2


def test_settings_that_depend_on_each_other_are_changed_together_in_any_order() -> None:
    config = with_settings(configured("multinomial", data=source_of("streets")), {"batch_size": 8, "accumulate": 2})
    for settings in (
        {"batch_size": 3, "accumulate": 3},
        {"accumulate": 3, "batch_size": 3},
        {"train.accumulate": 5, "train.batch_size": 15, "lr": 0.5},
    ):
        train = with_settings(config, settings).train
        assert [train.batch_size % (train.accumulate or 1), train.accumulate in (3, 5)] == [0, True]
    arm = configured("arm", data=DocsSource())
    for names in (("net.width", "net.num_heads"), ("net.num_heads", "net.width")):
        values = {"net.width": 12, "net.num_heads": 3}
        changed = with_settings(arm, {name: values[name] for name in names})
        assert (dotted(changed, "model.net.width"), dotted(changed, "model.net.num_heads")) == (12, 3)


def test_a_network_is_exchanged_by_the_name_of_its_class_and_keeps_what_both_have() -> None:
    config = configured("discrete-flow")
    changed = with_settings(config, {"net": "lstm", "num_layers": 3})
    net = dotted(changed, "model.net")
    assert type(net).__name__ == "LSTM"
    assert (net.width, net.num_layers) == (dotted(config, "model.net.width"), 3)
    assert RunConfig.from_dict(saved(changed)) == changed
    assert any("model.net.kind: Transformer -> LSTM" in line for line in differences(config, changed))


def test_differences_are_those_of_every_setting_but_the_ignored() -> None:
    old = configured("arm", data=DocsSource())
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
        ({"train": {"stps": 5}}, r"unknown setting of train 'stps'; did you mean steps\?"),
        ({"train": {"steps": 0}}, "`steps` must be a whole number of at least 1, got 0"),
        ({"data": "docs"}, "data cannot be 'docs'"),
        ({"data": {"kind": "DocSource"}}, r"unknown kind of data 'DocSource'; did you mean DocsSource\?"),
        ({"data": {"kind": "DocsSource", "letters": "ab"}}, "unknown setting of data 'letters'"),
        ({"data": {"kind": "TextSource"}}, "not a run's configuration: .*path"),
        ({"data": {"kind": "DocsSource", "length": "9"}}, "data.length cannot be '9'"),
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
    for name in values.keys() - {"init"}:  # which most runs lack
        with pytest.raises(ValueError, match=f"not a run's configuration: '{name}'"):
            RunConfig.from_dict({key: value for key, value in values.items() if key != name})


def test_tuples_come_back_from_json() -> None:
    settings = ArmSettings(Transformer(), ngrams=Ngrams(orders=(3, 4)))
    again = from_plain(ArmSettings, json.loads(json.dumps(to_plain(settings))), "model")
    assert again == settings
    with pytest.raises(ValueError, match=r"model\.ngrams\.orders cannot be 'x'"):
        from_plain(ArmSettings, {**to_plain(settings), "ngrams": {"kind": "Ngrams", "orders": ["x"]}}, "model")


@pytest.mark.parametrize(
    "source",
    [
        *(kind("/folder/file") if kind.usage.endswith(":PATH") else kind() for kind in DATASETS.values()),  # type: ignore[call-arg]
        TextSource("/a.txt", alphabet="chars", length=32, split="0.8,0.1,0.1"),
        ArraySource("/a.npy", num_classes=9, letters="abcdefghi", flips=True),
        GivenSource(None, num_classes=5, length=9),
    ],
    ids=lambda source: source.name,
)
def test_data_of_every_kind_come_back_the_same(source: Any) -> None:
    config = replace(OWN_RUN, data=source)
    assert RunConfig.from_dict(saved(config)) == config


def test_an_array_is_not_saved_but_its_settings_are() -> None:
    config = replace(OWN_RUN, data=replace(source_of([[0, 1], [1, 0]]), num_classes=3))  # type: ignore[call-arg]
    assert RunConfig.from_dict(saved(config)).data == GivenSource(None, num_classes=3)


@pytest.mark.parametrize(
    ("kind", "name", "wrong", "message"),
    [
        (TrainConfig, "steps", 0, "`steps` must be a whole number of at least 1, got 0"),
        (TrainConfig, "steps", 2.5, "`steps` must be a whole number of at least 1, got 2.5"),
        (TrainConfig, "minutes", 0, "`minutes` must be a number above 0, got 0"),
        (TrainConfig, "minutes", float("inf"), "`minutes` must be a number above 0, got inf"),
        (TrainConfig, "epochs", -1, "`epochs` must be a number above 0, got -1"),
        (TrainConfig, "batch_size", True, "`batch_size` must be a whole number of at least 1, got True"),
        (TrainConfig, "accumulate", 3, "`batch_size` 32 must be a positive multiple of `accumulate` 3"),
        (TrainConfig, "accumulate", 0, "`accumulate` must be a whole number of at least 1, got 0"),
        (TrainConfig, "mutate", 1, "`mutate` must be a number of at least 0 and below 1, got 1"),
        (TrainConfig, "lr", 0.0, "`lr` must be a number above 0, got 0"),
        (TrainConfig, "lr", float("nan"), "`lr` must be a number above 0, got nan"),
        (TrainConfig, "seed", -1, "`seed` must be a whole number between 0 and 9223372036854775807, got -1"),
        (TrainConfig, "seed", 2**63, "`seed` must be a whole number between 0 and 9223372036854775807, got 92"),
        (TrainConfig, "keep", "worst", "`keep` must be one of best, last, got 'worst'"),
        (TrainConfig, "validate_every", 0, "`validate_every` must be a whole number of at least 1, got 0"),
        (OptimConfig, "beta2", 1.0, "`beta2` must be a number of at least 0 and below 1, got 1"),
        (OptimConfig, "warmup", -1, "`warmup` must be a whole number of at least 0, got -1"),
        (OptimConfig, "decay_per_epoch", 1.5, "`decay_per_epoch` must be a number above 0 and of at most 1, got 1.5"),
        (OptimConfig, "clip", 0, "`clip` must be a number above 0, got 0"),
        (OptimConfig, "ema", 1, "`ema` must be a number of at least 0 and below 1, got 1"),
        (OptimConfig, "optimizer", "sgd", "`optimizer` must be one of adam, adamw, adamax, muon, got 'sgd'"),
    ],
)
def test_values_out_of_range_are_refused_when_a_configuration_is_made(
    kind: type, name: str, wrong: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**{name: wrong})
