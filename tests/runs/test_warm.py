"""Starting from another run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unordinal.api import fit, load, prepared, warm_start
from unordinal.run import Run
from unordinal.runs.warm import special_rows
from unordinal.train.start import build_model

TEXT = "the frog sat on the bank of the pond and the toad sat in the mud " * 60
SMALL: dict[str, Any] = {"net.width": 16, "net.num_blocks": 1, "length": 16, "steps": 3, "progress": False}
NGRAMS: dict[str, Any] = {"ngrams.orders": (2, 3), "ngrams.rows": 50}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture(params=["arm", "arm with n-grams", "absorbing", "multinomial"])
def ancestor(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    settings = {**SMALL, **(NGRAMS if "n-grams" in request.param else {})}
    return fit(request.param.split()[0], written(tmp_path, "old.txt", TEXT), out=tmp_path / "old", **settings)


def started(ancestor: Run, data: Any, **settings: Any) -> Any:
    """A model with the weights of its ancestor, before any step, and the description of its data."""
    warm = warm_start(ancestor)
    config, loaded = prepared(ancestor.config.recipe, data, "tiny", settings, settings.pop("labels", None), warm)
    model = build_model(config, loaded.spec, None)
    warm.transfer(model, loaded.spec)
    return model.eval(), loaded, config


def test_without_a_step_and_with_the_same_classes_it_scores_as_its_ancestor(ancestor: Run, tmp_path: Path) -> None:
    model, loaded, config = started(ancestor, written(tmp_path, "new.txt", TEXT[:2000]))
    assert loaded.spec.vocabulary == ancestor.vocabulary
    assert loaded.spec.event_shape == (16,)
    for name, value in ancestor.model.state_dict().items():
        assert torch.equal(value, model.state_dict()[name]), name
    assert config.init is not None
    assert len(config.init.sha256) == 64


@torch.no_grad()
def test_new_classes_leave_the_ratios_of_old_ones_as_they_were(ancestor: Run, tmp_path: Path) -> None:
    model, loaded, _ = started(ancestor, written(tmp_path, "new.txt", TEXT[:2000] + "Frogs! Newts?" * 9))
    assert loaded.spec.vocabulary.symbols.startswith(ancestor.vocabulary.symbols)  # type: ignore[union-attr]
    assert loaded.spec.num_classes == 27 + len("F!N?")
    both: list[Any] = [ancestor.model, model]
    x = ancestor.vocabulary.encode(TEXT[:16]).unsqueeze(0)  # type: ignore[union-attr]
    if model.stepper is not None:
        old, new = (one.net(x)[..., :27] for one in both)
    else:
        t = torch.tensor([0.5]) if model.noise.num_steps is None else torch.tensor([10])
        hidden = [x if one.noise.mask is None else x.index_fill(1, torch.arange(8, 16), one.noise.mask) for one in both]
        old, new = (one.evaluated_logits(z, t)[..., :27] for one, z in zip(both, hidden, strict=True))
    torch.testing.assert_close(old.diff(dim=-1), new.diff(dim=-1), rtol=1e-4, atol=1e-5)


def test_tokens_are_those_of_the_ancestor(tmp_path: Path) -> None:
    tokens: Any = {**SMALL, "alphabet": "bpe:260"}
    old = fit("arm", written(tmp_path, "old.txt", TEXT), **tokens)
    model, loaded, _ = started(old, written(tmp_path, "new.txt", TEXT.upper()))
    assert loaded.spec.vocabulary == old.vocabulary
    assert torch.equal(model.state_dict()["net.embed.weight"], old.model.state_dict()["net.embed.weight"])


def test_labels_ends_and_other_lengths_are_added(tmp_path: Path) -> None:
    old = fit("arm", written(tmp_path, "old.txt", TEXT), **SMALL)
    names, kinds = ["frog", "toad", "newt bank"] * 20, ["a", "b", "c"] * 20
    model, loaded, _ = started(old, names, labels=kinds)
    assert loaded.spec.ends
    assert model.labels == (3,)
    assert loaded.spec.event_shape == (9,)
    state, before = model.state_dict(), old.model.state_dict()
    assert torch.equal(state["net.embed.weight"][:27], before["net.embed.weight"][:27])
    assert torch.equal(state["net.embed.weight"][28], before["net.embed.weight"][27])  # the start sign
    torch.testing.assert_close(state["net.embed.weight"][27], before["net.embed.weight"][:27].mean(0))
    assert not state["net.labels.table.weight"].any()


def test_a_run_records_its_ancestor_and_resumes(tmp_path: Path) -> None:
    data = written(tmp_path, "old.txt", TEXT)
    fit("arm", data, out=tmp_path / "old", **SMALL)
    run = fit("arm", data, out=tmp_path / "new", init=tmp_path / "old", steps=2, progress=False)
    again = load(tmp_path / "new")
    assert again.config.init is not None
    assert again.config.init.reference == str(tmp_path / "old")
    assert run.config.model == again.config.model
    longer = fit("arm", data, out=tmp_path / "new", init=tmp_path / "old", steps=3, resume=True, progress=False)
    assert longer.folder.published_step == 3


def test_frozen_parts_stay_as_they_are(tmp_path: Path) -> None:
    data = written(tmp_path, "old.txt", TEXT)
    old = fit("arm", data, out=tmp_path / "old", **SMALL)
    new = fit("arm", data, init=tmp_path / "old", steps=3, progress=False, freeze=("net.blocks", "net.embed"))
    before, after = old.model.state_dict(), new.model.state_dict()
    same = {name: torch.equal(before[name], after[name]) for name in before}
    assert all(same[name] for name in same if name.startswith(("net.blocks", "net.embed")))
    assert not same["net.out.weight"]
    with pytest.raises(ValueError, match=r"unknown part of the model 'net.block'; did you mean net.blocks"):
        fit("arm", data, steps=1, progress=False, freeze=("net.block",), length=16)
    with pytest.raises(ValueError, match="`freeze` leaves nothing to train"):
        fit("arm", data, steps=1, progress=False, freeze=("net",), length=16)


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    old = fit("arm", written(tmp_path, "old.txt", TEXT), out=tmp_path / "old", **SMALL)
    wider: dict[str, Any] = {"net.width": 32}
    with pytest.raises(ValueError, match="was trained as arm; absorbing cannot start from it"):
        fit("absorbing", TEXT.split(), init=old, progress=False)
    with pytest.raises(ValueError, match=r"has another size: net\.width is 16 there, 32 here"):
        fit("arm", tmp_path / "old.txt", init=old, steps=1, progress=False, **wider)
    with pytest.raises(ValueError, match="is a model of text sequences; the data are classes sequences"):
        fit("arm", np.zeros((50, 4), int) + np.eye(2, 4, dtype=int)[[0, 1] * 25], init=old, progress=False)
    tokens: Any = {**SMALL, "alphabet": "bpe:260"}
    with pytest.raises(ValueError, match="has other tokens; leave out `alphabet`"):
        fit("arm", tmp_path / "old.txt", init=old, **tokens)
    many = "".join(chr(256 + k) for k in range(400))
    with pytest.raises(ValueError, match="too many different characters"):
        fit("arm", [TEXT[:20], many] * 20, init=old, progress=False)
    rows = fit("arm", np.arange(200).reshape(50, 4) % 5, steps=1, progress=False, places=False)
    with pytest.raises(ValueError, match=r"has 5 classes, and array only 2; give `num_classes` 5"):
        fit("arm", np.arange(200).reshape(50, 4) % 2, init=rows, progress=False, places=False)


def test_special_rows() -> None:
    assert special_rows(0, ends=True) == []
    assert special_rows(1, ends=True) == ["end"]
    assert special_rows(1, ends=False) == ["other"]
    assert special_rows(2, ends=True) == ["end", "other"]
