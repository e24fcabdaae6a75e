"""A gap of any length: the probabilities of its fillings, by enumeration."""

import itertools

import pytest
import torch
from forms import built
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.tasks.filling import Fill
from unordinal.tasks.gaps import fill_gaps, known_of

SPEC = DataSpec("lines", 2, (3,), Vocabulary("chars", "ab"), lengths=((3, 1, 5, 2),))


def strings() -> dict[str, Tensor]:
    """All strings of up to three letters, padded."""
    every = ["".join(s) for n in range(4) for s in itertools.product("ab", repeat=n)]
    return {s: torch.tensor(["ab".index(c) for c in s] + [2] * (3 - len(s))) for s in every}


@pytest.mark.parametrize("text", ["a*", "*b", "a*b", "b*_", "_*a"])
@torch.no_grad()
def test_fillings_of_any_length_have_the_enumerated_conditional(text: str) -> None:
    model = built("arm", "ends")
    p = {s: float(model.elbo(x.unsqueeze(0)).exp()) for s, x in strings().items()}
    assert sum(p.values()) == pytest.approx(1, abs=1e-6)
    before, after = text.split("*")
    fits = {s: q for s, q in p.items() if len(s) >= len(before + after) and matches(s, before, after)}
    found = fill_gaps(model, SPEC, Fill(text, num=20))
    assert {proposal.text for proposal in found.proposals} == set(fits)
    for proposal in found.proposals:
        assert proposal.probability == pytest.approx(fits[proposal.text] / sum(fits.values()), rel=1e-5)
    assert found.proposals[0].text == max(fits, key=lambda s: fits[s])
    assert found.kind == "exact, of the whole line; all fillings were tried"


def matches(text: str, before: str, after: str) -> bool:
    ends = zip(before + after[::-1], text[: len(before)] + text[::-1][: len(after)], strict=True)
    return all(sign in ("_", letter) for sign, letter in ends)


@torch.no_grad()
def test_gaps_of_a_known_length_keep_it() -> None:
    model = built("arm", "ends")
    found = fill_gaps(model, SPEC, Fill("a_", num=5))
    assert {proposal.text for proposal in found.proposals} == {"aa", "ab"}


def test_known_letters_and_gaps() -> None:
    assert known_of("_ab_", "_", Vocabulary("chars", "ab")).tolist() == [-1, 0, 1, -1]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("absorbing", "a*", "a gap of any length, \\*, is for autoregressive models of lines"),
        ("arm", "a*b*", "there may be one gap of any length, got 2"),
        ("arm", "*_", "the text is all gaps"),
        ("arm", "aaaa*", "the text has 4 letters; lines of this model have at most 3"),
    ],
)
def test_what_cannot_be_filled_is_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fill_gaps(built(name, "ends"), SPEC, Fill(text))
