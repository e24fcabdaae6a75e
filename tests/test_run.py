"""A trained run: its methods have the fields of their requests as arguments."""

import gc
import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unordinal.api import fit
from unordinal.evaluate.likelihood import Evaluate
from unordinal.run import Run, TemporaryFolder, folder_of, load
from unordinal.settings import Request
from unordinal.tasks.asking import Sample
from unordinal.tasks.correcting import Correct
from unordinal.tasks.filling import Fill, FillMap
from unordinal.tasks.lines import Measure

METHODS: dict[str, type[Request]] = {
    "sample": Sample,
    "score": Evaluate,
    "correct": Correct,
    "fill": Fill,
    "fill_map": FillMap,
    "bits": Measure,
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_real_signatures(name: str) -> None:
    """Names, order, defaults and documentation are those of the request."""
    call, kind = getattr(Run, name), METHODS[name]
    parameters = inspect.signature(call).parameters
    declared = sorted(fields(kind), key=lambda f: bool(f.kw_only))
    assert list(parameters) == ["self", *(f.name for f in declared)]
    text = inspect.getdoc(call) or ""
    assert text.startswith(inspect.getdoc(kind) or "-")
    for field in declared:
        assert f"{field.name}: " in text
        assert parameters["progress"].kind is inspect.Parameter.KEYWORD_ONLY
    assert call.__doc__.count("Args:") == 1


@pytest.fixture(scope="module")
def absorbing(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An absorbing diffusion of more than 256 positions."""
    x = np.random.default_rng(0).integers(0, 3, (40, 300))
    settings: dict[str, Any] = {"net.width": 16, "net.num_blocks": 1, "net.num_heads": 2}
    out = tmp_path_factory.mktemp("run") / "absorbing"
    return fit(
        "absorbing", x, out=out, steps=1, batch_size=2, validate_examples=2, places=False, progress=False, **settings
    )


def test_known_positions_and_lengths_work_with_default_steps(absorbing: Run) -> None:
    known = np.full(300, -1)
    known[:100] = 2
    x = absorbing.sample(1, known=known)
    assert x[0, :100].tolist() == [2] * 100
    assert absorbing.sample(1, known=known.tolist()).shape == (1, 300)
    known[:299] = 1
    assert absorbing.sample(2, known=known)[:, :299].min() == 1
    for length in (5, 200, 290):
        assert absorbing.sample(1, length=length).shape == (1, length)
    for sampler in ("ancestral", "corrected"):
        assert absorbing.sample(1, sampler=sampler, length=20).shape == (1, 20)
    with pytest.raises(ValueError, match=r"`known` must be .* lists of equal length") as error:
        absorbing.sample(2, known=[[0, -1], [0]])
    assert "\n" not in str(error.value)


def test_arguments_may_be_given_by_position_and_by_name(absorbing: Run) -> None:
    first = absorbing.sample(2, 4, seed=3)
    assert torch.equal(first, absorbing.sample(num=2, steps=4, seed=3))
    for call in (lambda: absorbing.sample(2, nmu=3), lambda: absorbing.sample(2, num=3)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="`num` must be a whole number of at least 1, got 0"):
        absorbing.sample(0)
    with pytest.raises(ValueError, match="`fill` is for text"):
        absorbing.fill("a_b")
    with pytest.raises(ValueError, match="the probabilities of array are not known"):
        absorbing.score(split="exact")


def test_a_run_is_its_model_and_not_a_pair(absorbing: Run) -> None:
    with pytest.raises(TypeError, match=r"iterable|unpack"):
        _model, _vocabulary = absorbing  # type: ignore[misc]
    lines = repr(absorbing).splitlines()
    assert len(lines) == 3
    assert "3 classes, examples of 300" in lines[1]


def test_a_loaded_run_draws_the_same(absorbing: Run) -> None:
    again = load(absorbing.folder.path)
    assert torch.equal(again.sample(2, 4, seed=3), absorbing.sample(2, 4, seed=3))
    assert not again.model.training
    assert again.data is None


def test_references_mean_folders(tmp_path: Path) -> None:
    assert folder_of(tmp_path / "x").path == tmp_path / "x"
    assert folder_of("pretrained:text8-arm").is_run
    with pytest.raises(ValueError, match="text8-arm"):
        folder_of("pretrained:text8-amr")


def test_a_temporary_folder_goes_with_its_last_reference() -> None:
    made = TemporaryFolder()
    path, other = made.path, made
    (path / "file").touch()
    del made
    gc.collect()
    assert path.exists()
    del other
    gc.collect()
    assert not path.exists()


def test_a_second_model_weighs_corrections() -> None:
    arm = load("pretrained:text8-arm")
    text = "he went to the cinma"
    assert arm.correct(text).text == "he went to the cinema"
    assert arm.correct(text, judge="pretrained:english-arm") == arm.correct(text)
    assert arm.correct(text, judge=arm, threshold=0.0) != arm.correct(text, threshold=0.0)
    with pytest.raises(ValueError, match="text8-uniform cannot weigh corrections: expected an autoregressive model"):
        arm.correct(text, judge="pretrained:text8-uniform")
    with pytest.raises(ValueError, match="`judge` is for `method` beam"):
        load("pretrained:text8-uniform").correct(text, method="pass", judge=arm)


def test_texts_are_corrected_filled_and_measured(tmp_path: Path) -> None:
    arm, path = load("pretrained:text8-arm"), tmp_path / "mats.txt"
    path.write_text("the cat sat on the mat " * 200)
    absorbing = fit("absorbing", path, alphabet="text8", length=32, steps=2, progress=False)
    filled = absorbing.fill("the c_t sat on the mat", num=27)
    assert len({p.filling for p in filled.proposals}) == 27  # all ways of one gap
    judged = absorbing.fill("the c_t sat on the mat", num=3, judge=arm)
    assert judged.kind == "exact, of the whole"
    with pytest.raises(ValueError, match="cannot rank: expected an exact model"):
        absorbing.fill("the c_t", judge=absorbing)
    found = arm.correct("the united ststes of america")
    assert found.text == "the united states of america"
    usual, strange = arm.bits("the united states of america\nxqzj vkpw qqxz jjkvw pqxz")
    assert usual.per_symbol < strange.per_symbol
    against = arm.bits("the united states", against=arm)
    assert len(against) == 1
