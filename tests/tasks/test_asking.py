"""What a request for samples means for a model."""

from typing import Any

import pytest
import torch
from forms import SPECS, built

from unordinal.tasks.asking import Sample, chosen_steps, model_settings


def test_labels_and_guidance_reach_the_model() -> None:
    model, spec = built("arm", "labels"), SPECS["labels"]
    found = model_settings(model, spec, Sample(label=("class=toad",), guidance=2.0))
    assert found["cond"].tolist() == [1, 3]
    assert found["guidance"] == 2.0
    assert "guidance" not in model_settings(model, spec, Sample(label={"class": "frog"}))
    assert torch.equal(model_settings(model, spec, Sample(label=[[0, 1]]))["cond"], torch.tensor([[0, 1]]))


@pytest.mark.parametrize(
    ("form", "asked", "message"),
    [
        ("ends", {"label": ("class=frog",)}, "`label` is for models that were trained with labels"),
        ("labels", {"label": ("class=frogg",)}, "unknown value of the label class 'frogg'; did you mean frog"),
        ("labels", {"guidance": 2.0}, "`guidance` says how much labels count; give labels with `label`"),
        ("labels", {"steps": 4}, "`steps` is for diffusions"),
        ("ends", {"length": 2}, "samples of this model end by themselves; leave out `length`"),
    ],
)
def test_what_has_no_use_is_refused(form: str, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_settings(built("arm", form), SPECS[form], Sample(**asked))


def test_the_number_of_steps() -> None:
    assert chosen_steps("all", 1000) == 1000
    assert chosen_steps(None, 1000) == 256
    assert chosen_steps(7, None) == 7
    with pytest.raises(ValueError, match="in continuous time give a number"):
        chosen_steps("all", None)
