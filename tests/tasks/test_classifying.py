"""Labels by Bayes' rule."""

from typing import Any

import numpy as np
import pytest
import torch
from forms import LABELS, built, events_of

from unordinal.api import fit
from unordinal.data.spec import DataSpec, Label
from unordinal.data.splits import Split
from unordinal.tasks.classifying import Classify, classify

COUNTS = Label("class", ("frog", "toad"), (8, 2)), LABELS[1]
SPEC = DataSpec("labelled", 2, (3,), labels=COUNTS, has_places=True)


@torch.no_grad()
def test_exact_models_follow_bayes_rule() -> None:
    model, x = built("arm", "labels"), events_of("labels")
    found = classify(model, SPEC, Split(x.numpy()), Classify(name="class", label=("colour=red",), batch_size=3))
    joint = torch.stack([model.elbo(x, cond=torch.tensor([value, 1]).expand(len(x), -1)) for value in (0, 1)], dim=1)
    joint = joint.exp().double() * torch.tensor([9 / 12, 3 / 12])
    torch.testing.assert_close(found.probabilities, joint / joint.sum(1, keepdim=True), rtol=1e-5, atol=1e-8)
    assert (found.kind, found.error, found.accuracy) == ("exact", None, None)


@torch.no_grad()
def test_bounds_are_compared_with_the_same_draws_and_an_error() -> None:
    model, x = built("absorbing", "labels"), events_of("labels")
    asked = Classify(name="class", repeats=64)
    found = classify(model, SPEC, Split(x.numpy()), asked)
    assert found.kind == "bounds compared"
    assert found.error is not None
    torch.testing.assert_close(found.probabilities.sum(1), torch.ones(len(x), dtype=torch.float64))
    assert torch.equal(found.probabilities, classify(model, SPEC, Split(x.numpy()), asked).probabilities)


def test_a_fitted_model_finds_labels_and_says_how_often_it_is_right() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    x = (rng.random((400, 6)) < np.where(labels, 0.9, 0.1)[:, None]).astype(int)
    settings: dict[str, Any] = {"net.width": 32}
    run = fit("arm", x, labels=np.array(["low", "high"])[labels], steps=150, progress=False, **settings)
    found = run.classify()
    assert found.accuracy is not None
    assert found.accuracy > 0.8
    assert set(found.values) <= {"low", "high"}
    other = run.classify(np.array([[1] * 6, [0] * 6]))
    assert other.values == ["high", "low"]
    assert other.accuracy is None


def test_what_has_no_labels_is_refused() -> None:
    model, x = built("arm", "labels"), Split(events_of("labels").numpy())
    with pytest.raises(ValueError, match="is for models that were trained with labels"):
        classify(built("arm", "ends"), DataSpec("plain", 2, (3,)), x, Classify())
    with pytest.raises(ValueError, match="which label\\? give its `name`: class, colour"):
        classify(model, SPEC, x, Classify())
    with pytest.raises(ValueError, match="unknown label 'color'; did you mean colour"):
        classify(model, SPEC, x, Classify(name="color"))
    with pytest.raises(ValueError, match="unknown value of the label colour 'gren'; did you mean green"):
        classify(model, SPEC, x, Classify(name="class", label=("colour=gren",)))
