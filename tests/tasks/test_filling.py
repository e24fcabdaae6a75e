"""Gaps, filled by proposals that are ranked by their probability."""

import pytest
import torch
from contracts import all_events
from torch import Tensor, nn

from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.diffusion.absorbing import MaskCountNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.diffusion import Diffusion
from unordinal.nets.classes import ClassTransformer
from unordinal.tasks.filling import (
    MOST_ENUMERATED,
    Fill,
    FillMap,
    fill,
    fill_map,
    fill_text,
    judge_of,
    read_gaps,
    seen_part,
)

K, L = 3, 4
STATES = all_events(K, (L,))
DATA = torch.softmax(2 * torch.randn(K**L, generator=torch.Generator().manual_seed(1), dtype=torch.float64), 0)
LETTERS = Vocabulary("chars", "abc")
SPEC = DataSpec("letters", K, (L,), LETTERS)
TEXT8 = DataSpec("text", 27, (16,), Vocabulary.text8())


class ExactNet(nn.Module):
    """Predicts masked positions from those that are shown, exactly, for data with the probabilities DATA."""

    reads_time = False

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        fits = ((z.unsqueeze(1) == K) | (z.unsqueeze(1) == STATES)).all(-1)  # (N, S)
        weight = fits * DATA
        onehot = torch.nn.functional.one_hot(STATES, K).double()
        return torch.einsum("ns,slk->nlk", weight / weight.sum(-1, keepdim=True), onehot).clamp(min=1e-300).log()


def exact_model() -> Diffusion:
    return Diffusion(ExactNet(), noise=MaskCountNoise(K), event_shape=(L,))


def test_proposals_are_ranked_by_their_enumerated_probability() -> None:
    known = torch.tensor([1, -1, -1, 0])
    x, log_p = fill(exact_model(), known, num=5)
    fits = (STATES[:, 0] == 1) & (STATES[:, 3] == 0)
    conditional = DATA[fits] / DATA[fits].sum()
    for row, value in zip(x, log_p, strict=True):
        at = (STATES[fits] == row).all(1)
        assert float(value) == pytest.approx(float(conditional[at].log()), abs=1e-6)
    assert torch.equal(x[0], STATES[fits][conditional.argmax()])
    assert bool((log_p.diff() <= 0).all())
    assert len(torch.unique(x, dim=0)) == len(x)


@torch.no_grad()
def test_another_model_ranks_by_the_probability_of_the_whole() -> None:
    torch.manual_seed(0)
    judge = AutoregressiveModel(ClassTransformer(K, width=8, num_blocks=1, num_heads=1), event_shape=(L,))
    nn.init.normal_(judge.net.out.weight)
    x, log_p = fill(exact_model(), torch.tensor([1, -1, -1, 0]), num=9, judge=judge_of(judge))
    torch.testing.assert_close(log_p, judge.log_prob(x).double())
    filled = fill_text(exact_model(), SPEC, Fill("b__a", num=3), judge)
    assert filled.kind == "exact, of the whole"
    assert [p.text for p in filled.proposals] == [LETTERS.decode(row) for row in x[:3]]
    causal = fill_text(judge, SPEC, Fill("b__a", num=2))
    assert causal.kind == "exact, of the whole"
    assert all(p.text[0] == "b" and p.text[3] == "a" for p in causal.proposals)


def test_only_gaps_change() -> None:
    text8 = Vocabulary.text8()
    reading, known = read_gaps("The c__, Zoë!", "_", text8)
    assert text8.decode(reading.x[: known.tolist().index(-1)]) == "the c"
    assert known.tolist().count(-1) == 2
    net = ClassTransformer(27, width=8, num_blocks=1, num_heads=1)
    model = AutoregressiveModel(net, event_shape=(16,))
    for proposal in fill_text(model, TEXT8, Fill("The c__, Zoë!", num=3)).proposals:
        assert proposal.text[:5] == "The c"
        assert proposal.text[7:] == ", Zoë!"
        assert proposal.text[5:7] == proposal.filling


def test_a_model_sees_what_is_around_the_gaps() -> None:
    known = torch.zeros(100, dtype=torch.long)
    for place, expected in ((0, (0, 16)), (50, (42, 58)), (99, (84, 100))):
        known = torch.zeros(100, dtype=torch.long)
        known[place] = -1
        assert seen_part(known, 16) == expected
    assert seen_part(known, 100) == (0, 100)


@pytest.mark.parametrize(
    ("text", "gap", "message"),
    [
        ("abc", "_", "the text has no gap; write '_'"),
        ("____", "_", "the text is all gaps"),
        ("a_c", "__", "`gap` must be one character, got '__'"),
        ("abc", "a", "is a letter of the alphabet"),
        ("", "_", "`text` must be a text with a length of at least 1"),
        ("_" + "a" * 30 + "_", "_", "the gaps lie 32 symbols apart, and this model sees 4 at a time"),
    ],
)
def test_what_cannot_be_filled_is_refused(text: str, gap: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fill_text(exact_model(), SPEC, Fill(text, gap=gap))


def test_a_seed_reproduces_proposals() -> None:
    known = torch.tensor([-1, -1, -1, 0])
    (one, _), (two, _) = (fill(exact_model(), known, num=3, seed=5) for _ in range(2))
    assert torch.equal(one, two)


@pytest.mark.parametrize("free", [1, 2, 3])
def test_few_ways_are_all_ranked(free: int) -> None:
    """Every way to fill the gaps is found, with its exact probability, however unlikely it is."""
    known = torch.tensor([-1, -1, -1, 1])
    known[free:] = torch.tensor([1, 2, 0, 1])[free:]
    assert K**free <= MOST_ENUMERATED
    x, log_p = fill(exact_model(), known, num=100)
    fits = ((known < 0) | (known == STATES)).all(1)
    assert len(x) == K**free
    order = DATA[fits].argsort(descending=True)
    assert torch.equal(x, STATES[fits][order])
    torch.testing.assert_close(log_p, (DATA[fits] / DATA[fits].sum())[order].log(), rtol=1e-5, atol=1e-6)
    assert len(fill(exact_model(), known, num=2)[0]) == 2


def uniform_arm(num_classes: int, length: int = 16) -> AutoregressiveModel:
    torch.manual_seed(0)
    net = ClassTransformer(num_classes, width=8, num_blocks=1, num_heads=1)
    nn.init.normal_(net.out.weight)
    return AutoregressiveModel(net, event_shape=(length,))


@pytest.mark.parametrize("symbols", ["0123456789", "01 ", " 0123", ".-", "+-*/ ", "αβγ"])
def test_alphabets_without_letters_are_filled_too(symbols: str) -> None:
    vocabulary = Vocabulary("chars", symbols)
    spec = DataSpec("signs", len(symbols), (16,), vocabulary)
    text = f"{symbols[0]}_{symbols[1]}{symbols[0]}"
    filled = fill_text(uniform_arm(len(symbols)), spec, Fill(text, num=20))
    assert sorted(p.filling for p in filled.proposals) == sorted(symbols)  # every way to fill one gap
    assert sorted(p.text for p in filled.proposals) == sorted(text.replace("_", symbol) for symbol in symbols)
    assert [p.log_prob for p in filled.proposals] == sorted((p.log_prob for p in filled.proposals), reverse=True)


@pytest.mark.parametrize(("text", "gap"), [("the c_t sat", "_"), ("Zoë _nd I", "_"), ("a•c\n", "•")])
def test_bytes_are_filled(text: str, gap: str) -> None:
    spec = DataSpec("bytes", 256, (32,), Vocabulary.bytes())
    _, known = read_gaps(text, gap, Vocabulary.bytes())
    assert known.tolist().count(-1) == text.count(gap)
    model = uniform_arm(256, 32)
    with torch.no_grad():
        model.net.out.bias[:128] += 30.0  # ASCII, which can be shown
    filled = fill_text(model, spec, Fill(text, gap=gap, num=4))
    before, after = text.split(gap)
    for proposal in filled.proposals:
        assert proposal.text == before + proposal.filling + after
    assert len({p.text for p in filled.proposals}) == len(filled.proposals) == 4


def test_all_letters_of_one_gap_are_found() -> None:
    filled = fill_text(uniform_arm(27), TEXT8, Fill("the c_t sat", num=27))
    assert sorted(p.filling for p in filled.proposals) == sorted(Vocabulary.text8().symbols)


class FlatMaps(nn.Module):
    """Predicts the second class at every pixel with a probability that grows with its column."""

    reads_time = False

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        column = torch.arange(z.shape[2]).expand(z.shape).unsqueeze(-1)
        return torch.cat([torch.zeros_like(column), column], -1).double()


def test_holes_of_maps_are_filled_and_ranked() -> None:
    model = Diffusion(FlatMaps(), noise=MaskCountNoise(2), event_shape=(2, 3))
    spec = DataSpec("maps", 2, (2, 3))
    given: list[list[int]] = [[0, 1, -1], [1, -1, 0]]
    for known in (given, torch.tensor(given)):
        x, log_p = fill_map(model, spec, FillMap(known, num=8))
        assert x.shape == (4, 2, 3)  # all ways
        assert x[:, 0, :2].tolist() == [[0, 1]] * 4
        assert (int(x[0, 0, 2]), int(x[0, 1, 1])) == (1, 1)
        assert log_p is not None
        assert float(log_p.exp().sum()) == pytest.approx(1)
    for wrong, message in (
        ([[0, 1, -1]], "the maps of this model have 2 x 3 pixels, got 1 x 3"),
        ([[0, 1, 0], [1, 1, 0]], "leaves nothing free"),
        ([[0, 1, 7], [1, -1, 0]], "class 7"),
        ([[0, 1], [1]], "`map` must be .* lists of equal length"),
    ):
        with pytest.raises(ValueError, match=message):
            fill_map(model, spec, FillMap(wrong))
    with pytest.raises(ValueError, match="`map` needs a model of maps"):
        fill_map(exact_model(), SPEC, FillMap([[0, -1]]))


def test_large_holes_of_maps_are_drawn_and_not_ranked() -> None:
    model = Diffusion(FlatMaps(), noise=MaskCountNoise(2), event_shape=(4, 6))
    given = torch.full((4, 6), -1)
    given[0] = torch.arange(6) % 2
    x, log_p = fill_map(model, DataSpec("maps", 2, (4, 6)), FillMap(given, num=400, steps=3))
    assert log_p is None
    assert torch.equal(x[:, 0], given[:1].expand(400, -1))
    truth = torch.sigmoid(torch.arange(6.0))  # of the second class, by column
    assert torch.allclose(x[:, 1:].double().mean(dim=(0, 1)), truth.double(), atol=0.06)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num": 0}, "`num` must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "`seed` must be a whole number between 0 and"),
        ({"text": None}, "`text` must be a text"),
    ],
)
def test_impossible_requests_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Fill(**{"text": "a_b", **settings})  # type: ignore[arg-type]


def test_a_model_that_cannot_rank_or_draw_is_refused() -> None:
    uniform = Diffusion(FlatMaps(), noise=ContinuousUniformNoise(2), event_shape=(2, 3))
    with pytest.raises(ValueError, match="cannot rank proposals"):
        fill(uniform, torch.tensor([[0, 1, -1], [1, -1, 0]]))


def test_the_kind_says_if_the_model_sees_a_part_of_the_text() -> None:
    model = AutoregressiveModel(ClassTransformer(27, width=8, num_blocks=1, num_heads=1), event_shape=(16,))
    assert fill_text(model, TEXT8, Fill("the c_t sat")).kind == "exact, of the whole"
    assert fill_text(model, TEXT8, Fill("the c_t sat on the mat")).kind == "exact, of the part that the model sees"
