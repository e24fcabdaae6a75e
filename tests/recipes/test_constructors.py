"""Every model in one line: what is built, with which settings, and what is refused."""

import inspect

import pytest
import torch
from conftest import LEARNED

import unordinal
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel
from unordinal.overrides import with_settings
from unordinal.recipes import RECIPES, configured, constructors


@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name in LEARNED for shape in RECIPES[name].takes])
def test_a_model_is_that_of_its_recipe(name: str, shape: str) -> None:
    build = getattr(unordinal, name.replace("-", "_"))
    sides = {"length": 8} if shape == "sequences" else {"height": 8, "width": 16}
    event_shape = tuple(sides.values())
    model = build(5, **sides)
    assert isinstance(model, CategoricalModel)
    assert (model.num_classes, tuple(model.event_shape)) == (5, event_shape)
    config = configured(name, "tiny", "sequences" if shape == "sequences" else "maps")
    expected = config.model.build(DataSpec(name, 5, event_shape))
    assert type(model) is type(expected)
    assert {key: value.shape for key, value in model.state_dict().items()} == {
        key: value.shape for key, value in expected.state_dict().items()
    }


def test_sizes_and_settings_are_those_of_the_recipe() -> None:
    small = unordinal.arm(27, 16, size="small", **{"net.num_blocks": 1})
    config = with_settings(configured("arm", "small", "sequences"), {"net.num_blocks": 1})
    expected = config.model.build(DataSpec("arm", 27, (16,)))
    count = [sum(p.numel() for p in model.parameters()) for model in (small, expected, unordinal.arm(27, 16))]
    assert count[0] == count[1] != count[2]
    x = torch.randint(27, (2, 16))
    assert small.training_loss(x).shape == (2,)


def test_a_constructor_is_named_and_described() -> None:
    build = constructors.constructor("argmax-ar")
    assert build.__name__ == "argmax_ar"
    assert RECIPES["argmax-ar"].description in (inspect.getdoc(build) or "")


def test_what_makes_no_sense_is_refused() -> None:
    for call in (
        lambda: unordinal.multinomial(5),
        lambda: unordinal.multinomial(5, height=8),
        lambda: unordinal.multinomial(5, 8, height=8, width=8),
    ):
        with pytest.raises(ValueError, match="give the `length` of sequences, or the `height` and `width` of maps"):
            call()
    with pytest.raises(ValueError, match="arm is a model of sequences, but the data are maps"):
        unordinal.arm(5, height=8, width=8)
    with pytest.raises(ValueError, match=r"unknown setting 'widht'; did you mean width"):
        unordinal.arm(5, 8, widht=4)
    with pytest.raises(ValueError, match="unknown size 'huge'"):
        unordinal.arm(5, 8, size="huge")
    with pytest.raises(AttributeError, match="there is no model 'amr'"):
        constructors.amr  # noqa: B018


def test_columns_ends_labels_and_places() -> None:
    rows = unordinal.absorbing((2, 3, 2), 3)
    assert rows.classes.columns == (2, 3, 2)
    assert rows.has_places
    lines = unordinal.arm(4, 6, ends=True, labels=(3,))
    assert (lines.ends, lines.labels, lines.has_places) == (True, (3,), False)
    assert lines.sample(2, cond=[1]).shape == (2, 6)
    assert unordinal.arm(4, 6, places=True).has_places
