"""Gaps of models of tokens: a masked diffusion, compared with all ways to fill them."""

import itertools
import math
import re

import pytest
import torch

from unordinal.data.tokens import TokenVocabulary
from unordinal.model import CategoricalModel
from unordinal.recipes import constructors
from unordinal.tasks.filling import Fill
from unordinal.tasks.patterns import FREE, Book, Pattern, matches
from unordinal.tasks.token_gaps import MaskedStepper, Span, fill_tokens, masked_matches, spans

PIECES = [b"a", b"b", b"ab", b" ", b" a"]
SMALL = {"net.width": 8, "net.num_blocks": 1, "net.num_heads": 1}


def masked_model(num_classes: int, length: int) -> CategoricalModel:
    torch.manual_seed(0)
    model = constructors.absorbing(num_classes, length=length, **SMALL)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


@torch.no_grad()
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_full_beam_finds_every_filling_of_a_number_of_tokens(size: int) -> None:
    model = masked_model(len(PIECES), 8)
    left, right = torch.tensor([1, 0]), torch.tensor([4, 1])
    pattern = Pattern((32, FREE, FREE))
    assert model.orders is not None
    places = [*range(2), *range(2 + size, 4 + size)]
    order = torch.tensor([*places, *range(2, 2 + size)])
    expected: dict[bytes, float] = {}
    for tokens in itertools.product(range(len(PIECES)), repeat=size):
        text = b"".join(PIECES[token] for token in tokens)
        if re.fullmatch("[ ][a-z ]{2}", text.decode()):
            x = torch.cat([left, torch.tensor(tokens), right]).unsqueeze(0)
            log_p = float(model.orders(x, order, num_given=4))
            expected[text] = max(expected.get(text, -math.inf), log_p)
    stepper = MaskedStepper(model, left, size, right)
    found = matches(stepper, Book(PIECES, pattern), num_tokens=size, beam=10**6, drop=math.inf)
    assert {match.text: pytest.approx(match.log_prob, abs=1e-4) for match in found} == expected
    assert expected or size == 1


def test_words_with_gaps_are_cut_out() -> None:
    def cut(text: str, gap: int | None = None) -> list[tuple[str, int | None]]:
        letters = tuple(FREE if c == "_" else ord(c) for c in text)
        found = spans(Pattern(letters, gap))
        return [("".join("_" if c == FREE else chr(c) for c in part.letters), part.gap) for part in found]

    assert cut("the _at on a m_t") == [("the", None), (" _at", None), (" on a", None), (" m_t", None)]
    assert cut("_at _n it") == [("_at _n", None), (" it", None)]
    assert cut("the  sat", 4) == [("the", None), (" ", 1), (" sat", None)]
    assert cut("the _at on", 10) == [("the", None), (" _at on", 7)]
    assert cut(" sat on", 0) == [(" sat", 0), (" on", None)]
    assert not Span((97,), None).is_open


@torch.no_grad()
def test_a_masked_diffusion_of_tokens_fills_gaps_in_the_text_as_it_was_written() -> None:
    words = "the cat sat on the mat and the dog sat on the log "
    vocabulary = TokenVocabulary.learned([words * 20], 280)
    model = masked_model(280, 24)
    found = fill_tokens(model, vocabulary, Fill("The ___, on _ mats", num=3))
    assert len(found.proposals) == 3
    assert "numbers of tokens" in found.kind
    for proposal in found.proposals:
        assert proposal.text == f"The {proposal.filling[:3]}, on {proposal.filling[3]} mats"
    scores = [proposal.log_prob for proposal in found.proposals]
    assert scores == sorted(scores, reverse=True)
    (any_length,) = fill_tokens(model, vocabulary, Fill("the * sat", num=1)).proposals
    assert any_length.text == f"the {any_length.filling} sat"
    with pytest.raises(ValueError, match="this model sees 24; fill it in parts"):
        fill_tokens(model, vocabulary, Fill("the ___ " + "xyz " * 20))


@torch.no_grad()
def test_fillings_of_several_words_add_up() -> None:
    vocabulary = TokenVocabulary.learned(["ab ba " * 20], 258)
    model = masked_model(258, 8)
    pattern = Pattern((97, FREE, 32, 98, 98, 32, FREE))
    best = masked_matches(model, vocabulary, pattern, beam=10**6, drop=math.inf, kept=10**6)[0]
    assert re.fullmatch("a[a-z ] bb [a-z ]", best.text.decode())
    middle, hidden = vocabulary.encode(" bb"), torch.tensor([-1])

    def scores(left: str, letters: tuple[int, ...], right: torch.Tensor) -> dict[bytes, float]:
        """Return the score of every filling, by the best number of its tokens."""
        book, found = Book(vocabulary.pieces, Pattern(letters)), dict[bytes, float]()
        for size in (1, 2):
            stepper = MaskedStepper(model, vocabulary.encode(left), size, right)
            for match in matches(stepper, book, num_tokens=size, beam=10**6, drop=math.inf):
                found[match.text] = max(found.get(match.text, -math.inf), match.log_prob)
        return found

    first = scores("", (97, FREE), torch.cat([middle, hidden]))[best.text[:2]]
    second = scores(best.text[:5].decode(), (32, FREE), torch.zeros(0, dtype=torch.long))
    assert best.log_prob == pytest.approx(first + second[best.text[5:]], abs=1e-4)
    assert second[best.text[5:]] == max(second.values())


def test_other_models_of_tokens_are_refused() -> None:
    vocabulary = TokenVocabulary.learned(["ab ba " * 20], 258)
    model = constructors.uniform(258, length=8)
    with pytest.raises(ValueError, match=r"needs an autoregressive model \(arm\), or a masked diffusion"):
        fill_tokens(model, vocabulary, Fill("a_"))
