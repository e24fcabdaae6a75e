"""A gap of any length: the probabilities of its fillings, by enumeration."""

import itertools

import pytest
import torch
from forms import built
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.data.tokens import TokenVocabulary
from unordinal.data.vocabularies import Vocabulary
from unordinal.recipes import constructors
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


def test_gaps_of_token_models_are_filled_in_the_text_as_it_was_written() -> None:
    words = "the cat sat on the mat and the dog sat on the log "
    vocabulary = TokenVocabulary.learned([words * 20], 280)
    assert vocabulary.is_plain
    torch.manual_seed(0)
    model = constructors.arm(280, length=32, **{"net.width": 8, "net.num_blocks": 1, "net.num_heads": 1})
    spec = DataSpec("words", 280, (32,), vocabulary)
    found = fill_gaps(model, spec, Fill("The ___, on 9 mats", num=3))
    assert len(found.proposals) == 3
    for proposal in found.proposals:
        assert proposal.text == f"The {proposal.filling}, on 9 mats"
        assert len(proposal.filling) == 3
        tokens = vocabulary.encode(f"the {proposal.filling} on mats")
        own = float(model.elbo(tokens.unsqueeze(0)).detach())
        assert proposal.log_prob >= own - 1e-4  # other tokens may be likelier than the tokenizer's
    assert found.kind == "exact of the tokens, of the whole"
    (any_length,) = fill_gaps(model, spec, Fill("the * sat", num=1)).proposals
    assert any_length.text == f"the {any_length.filling} sat"
    for text, message in (
        ("no gap", "write '_' for every letter, or '\\*' for any number"),
        ("a * b *", "there may be one gap of any length, got 2"),
        ("___", "the text is all gaps"),
        ("a_" * 400, "has 800 letters; at most 600"),
    ):
        with pytest.raises(ValueError, match=message):
            fill_gaps(model, spec, Fill(text))
