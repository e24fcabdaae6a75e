"""Gaps, filled by proposals that are ranked by their probability."""

import pytest
import torch
from contracts import all_events
from torch import Tensor, nn

from unordinal.data.spec import Vocabulary
from unordinal.diffusion.absorbing import MaskCountNoise
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.diffusion import Diffusion
from unordinal.nets.classes import ClassTransformer
from unordinal.tasks.filling import fill, fill_text, judge_of, read_gaps, seen_part

K, L = 3, 4
STATES = all_events(K, (L,))
DATA = torch.softmax(2 * torch.randn(K**L, generator=torch.Generator().manual_seed(1), dtype=torch.float64), 0)
LETTERS = Vocabulary("chars", "abc")


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
    filled = fill_text(exact_model(), "b__a", LETTERS, num=3, judge=judge)
    assert filled.kind == "exact, of the whole"
    assert [p.text for p in filled.proposals] == [LETTERS.decode(row) for row in x[:3]]
    causal = fill_text(judge, "b__a", LETTERS, num=2)
    assert causal.kind == "exact, of the whole"
    assert all(p.text[0] == "b" and p.text[3] == "a" for p in causal.proposals)


def test_only_gaps_change() -> None:
    text8 = Vocabulary.text8()
    reading, known = read_gaps("The c__, Zoë!", "_", text8)
    assert text8.decode(reading.x[: known.tolist().index(-1)]) == "the c"
    assert known.tolist().count(-1) == 2
    net = ClassTransformer(27, width=8, num_blocks=1, num_heads=1)
    model = AutoregressiveModel(net, event_shape=(16,))
    for proposal in fill_text(model, "The c__, Zoë!", text8, num=3).proposals:
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
        ("a_c", "__", "`gap` must be a single character"),
        ("abc", "a", "is a letter of the alphabet"),
        ("", "_", "the text has no gap"),
        ("_" + "a" * 30 + "_", "_", "the gaps lie 32 symbols apart, and this model sees 4 at a time"),
    ],
)
def test_what_cannot_be_filled_is_refused(text: str, gap: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fill_text(exact_model(), text, LETTERS, gap=gap)
    with pytest.raises(ValueError, match="`num` must be at least 1"):
        fill(exact_model(), torch.tensor([0, -1, 0, 0]), num=0)


def test_a_seed_reproduces_proposals() -> None:
    known = torch.tensor([-1, -1, -1, 0])
    (one, _), (two, _) = (fill(exact_model(), known, num=3, seed=5) for _ in range(2))
    assert torch.equal(one, two)
