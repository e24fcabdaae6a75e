"""Texts as tokens: splits of the same text as those of characters, scores per character."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unordinal.api import fit, load
from unordinal.data import load_data
from unordinal.tasks.exporting import metadata_of
from unordinal.web.answers import tasks_of

TEXT = "".join(f"the frog of pond {k % 17} sat on stone {k % 23}, waiting. " for k in range(900))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "pond.txt"
    found.write_text(TEXT)
    return found


def test_splits_hold_the_same_text_as_those_of_characters(path: Path) -> None:
    tokens, characters = (load_data(path, alphabet=a, length=16) for a in ("bpe:300", "chars"))
    for name in ("train", "val", "test"):
        one, other = (data.spec.vocabulary.decode(data.split(name).symbols) for data in (tokens, characters))  # type: ignore[union-attr]
        assert one == other
    assert sum(tokens.spec.split_sizes) < 0.6 * sum(characters.spec.split_sizes)
    assert tokens.spec.num_classes == 300
    assert tokens.mean_characters > 1.5 * tokens.mean_symbols
    again = load_data(path, alphabet="bpe:300", length=16)
    assert again.spec == tokens.spec
    by_model = load_data(path, vocabulary=tokens.spec.vocabulary, length=16)
    assert np.array_equal(by_model.train.symbols, tokens.train.symbols)


def test_tokens_are_learned_from_the_training_split_only(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    path.write_text("frog " * 2000 + "toad " * 2000)
    vocabulary = load_data(path, alphabet="bpe:300", length=8, split="0.4,0.3,0.3").spec.vocabulary
    assert vocabulary is not None
    assert "frog" in "|".join(vocabulary)
    assert "toad" not in "|".join(vocabulary)


@pytest.mark.parametrize("model", ["arm", "absorbing"])
def test_scores_are_per_character_and_per_token(path: Path, model: str) -> None:
    settings: dict[str, Any] = {"net.width": 16}
    run = fit(model, path, alphabet="bpe:300", length=16, steps=2, progress=False, **settings)
    score = run.score()
    assert score.unit == "bits per character"
    assert score.bits_per_token is not None
    assert run.data is not None
    assert run.spec.vocabulary is not None
    num = len(run.data.test)
    text = run.spec.vocabulary.decode(run.data.test.symbols[: 16 * num])
    total = score.bits_per_token * 16 * num
    assert score.bits_per_dim == pytest.approx(total / len(text))
    assert score.kind == ("exact of the tokens" if model == "arm" else "elbo")
    assert "bits per token" in str(score)
    assert score.to_dict()["bits_per_token"] == score.bits_per_token
    assert all(isinstance(text, str) for text in run.sample(2))


def test_a_text_of_fewer_tokens_than_a_sequence_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("frog")
    with pytest.raises(ValueError, match="fewer than one sequence of 128"):
        load_data(tmp_path / "short.txt", alphabet="bpe:256")


def test_tokens_travel_with_a_run(path: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"net.width": 16}
    run = fit("arm", path, alphabet="bpe:300", length=16, steps=2, progress=False, **settings)
    run.save(tmp_path / "saved")
    path.unlink()
    again = load(tmp_path / "saved")
    assert again.vocabulary == run.vocabulary
    assert again.sample(2, prompt="the frog") == run.sample(2, prompt="the frog")
    assert again.sample(1, prompt="the frog")[0].startswith("the frog")
    (line,) = again.bits("the frog sat, étang")
    assert line.num_symbols == len("the frog sat, étang")
    assert line.positions is not None
    assert len(line.positions) == line.num_symbols
    assert sum(line.positions) == pytest.approx(line.bits)
    whole = again.model.elbo(again.vocabulary.encode("the frog sat, étang")[:16].unsqueeze(0))  # type: ignore[union-attr]
    assert line.bits >= -float(whole.detach()) / math.log(2) - 1e-4
    with pytest.raises(ValueError, match="needs a model of characters or bytes; this one reads tokens"):
        again.correct("the frg")
    assert len(again.fill("the fr_g").text) == len("the fr_g")
    assert metadata_of(again.model, again.spec)["tokenizer"] == again.vocabulary.tokenizer  # type: ignore[union-attr]
    tasks = {task for task, is_able in tasks_of(again).items() if is_able}
    assert tasks == {"sample", "bits", "fill"}
