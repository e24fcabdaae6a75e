"""The search, compared with every clean text that can be behind a typed one."""

import itertools
import math
from typing import Any

import pytest
import torch
from mistyping import causal_model, light_channel, random_channel
from torch import Tensor

from unordinal.tasks.channel import NO_LETTER, substitutions
from unordinal.tasks.search import search
from unordinal.tasks.weighing import padded

EVERYTHING: Any = {"beam": 10**6, "drop": math.inf, "band": None}


def all_texts(k: int, longest: int) -> list[Tensor]:
    """Return every text of up to this many letters."""
    sizes = (itertools.product(range(k), repeat=size) for size in range(longest + 1))
    return [torch.tensor(text, dtype=torch.long) for texts in sizes for text in texts]


@torch.no_grad()
@pytest.mark.parametrize("ends", [False, True])
def test_a_full_beam_holds_every_clean_text_with_its_exact_score(ends: bool) -> None:
    longest = 6 if ends else 8  # 3 M + 2, which the channel cannot exceed
    model, channel = causal_model(2, longest, ends=ends), random_channel(2)
    typed = torch.tensor([[0, 1], [1, 1], [1, NO_LETTER]])
    found = search(model, channel, typed, **EVERYTHING)
    clean = all_texts(2, longest)
    x = padded(clean, 2)
    assert model.stepper is not None
    sizes = torch.tensor([len(text) for text in clean])
    if ends:
        log_p = model.log_prob(x)
    else:
        log_p = model.stepper.log_probs(x.clamp(max=1))
        log_p = torch.where(torch.arange(longest) < sizes.unsqueeze(1), log_p, 0.0).sum(1)
    for row, one in zip(typed, found, strict=True):
        exact = log_p + channel.log_prob(row.expand(len(clean), -1), padded(clean))
        possible = torch.isfinite(exact)
        best = exact.argmax()
        assert torch.equal(one.texts[0], clean[int(best)])
        torch.testing.assert_close(one.scores, exact[possible].sort(descending=True).values)
        shares = {tuple(y.tolist()): p for y, p in zip(one.texts, torch.softmax(one.scores, 0).tolist(), strict=True)}
        for text, share in zip(clean, torch.softmax(exact, 0).tolist(), strict=True):
            assert shares.get(tuple(text.tolist()), 0.0) == pytest.approx(share, abs=1e-12)


@torch.no_grad()
def test_a_beam_and_a_drop_lose_little() -> None:
    model, channel = causal_model(2, 12), light_channel(2, 0.2, seed=2)
    typed = torch.tensor([[0, 1, 1]])
    whole = search(model, channel, typed, **EVERYTHING)[0]
    narrow = search(model, channel, typed, beam=8, drop=12.0)[0]
    assert torch.equal(narrow.texts[0], whole.texts[0])
    assert float(narrow.scores[0]) == pytest.approx(float(whole.scores[0]), abs=0.05)
    assert len(narrow.texts) <= 8


@torch.no_grad()
def test_a_channel_of_substitutions_keeps_the_length_and_fixed_positions() -> None:
    model, typed = causal_model(3, 4), torch.tensor([[0, 2, 1, 1]])
    fixed = torch.tensor([[True, False, False, True]])
    found = search(model, substitutions(3, 0.2), typed, is_fixed=fixed, **EVERYTHING)[0]
    assert len(found.texts) == 9
    assert all(len(text) == 4 and text[0] == 0 and text[3] == 1 for text in found.texts)


@torch.no_grad()
def test_texts_of_a_batch_do_not_depend_on_each_other() -> None:
    model, channel = causal_model(3, 12), random_channel(3)
    typed = torch.tensor([[0, 2, 1, 1, 0], [2, 2, 0, NO_LETTER, NO_LETTER]])
    both = search(model, channel, typed, beam=4)
    for row, one in zip(typed, both, strict=True):
        alone = search(model, channel, row[row != NO_LETTER].unsqueeze(0), beam=4)[0]
        assert [y.tolist() for y in alone.texts] == [y.tolist() for y in one.texts]
        torch.testing.assert_close(alone.scores, one.scores)


def test_an_empty_beam_is_refused() -> None:
    with pytest.raises(ValueError, match="`beam` must be at least 1, got 0"):
        search(causal_model(2, 4), random_channel(2), torch.tensor([[0]]), beam=0)
