"""Samplers that choose their order: their likelihood sums to 1, and samples follow it."""

from typing import Any, get_args

import pytest
import torch
from contracts import TableNet
from torch import Tensor

from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.ordered import Ordered, Ranking
from unordinal.evaluate.enumeration import chi_square, every_example
from unordinal.models.diffusion import Diffusion

K, L = 2, 5
RANKINGS: tuple[Any, ...] = get_args(Ranking)


class OnMaps(torch.nn.Module):
    """A network of maps of 2 x 2."""

    reads_time = False

    def __init__(self, num_classes: int = 3) -> None:
        super().__init__()
        self.net, self.num_classes = TableNet(num_classes, 4, 0, num_input_classes=num_classes + 1), num_classes

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return self.net(z.flatten(1), time).view(*z.shape, self.num_classes)


def masked_model() -> Diffusion:
    net = TableNet(K, L, 0, num_input_classes=K + 1)
    net.reads_time = False  # type: ignore[assignment]
    return Diffusion(net, noise=AbsorbingNoise(K), event_shape=(L,))


@pytest.mark.parametrize("ranking", RANKINGS)
@pytest.mark.parametrize("calls", [None, 1, 2, 3, 4])
def test_the_likelihood_of_a_sampler_sums_to_one(ranking: Any, calls: int | None) -> None:
    log_p = masked_model().log_prob_of_sampler(every_example(K, L), Ordered(calls, ranking))
    torch.testing.assert_close(log_p.exp().sum(), torch.tensor(1.0, dtype=torch.float64))
    maps = Diffusion(OnMaps(), noise=AbsorbingNoise(3), event_shape=(2, 2))
    log_p = maps.log_prob_of_sampler(every_example(3, 4).view(-1, 2, 2), Ordered(calls, ranking))
    torch.testing.assert_close(log_p.exp().sum(), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize("ranking", RANKINGS)
@pytest.mark.parametrize("calls", [2, None])
def test_samples_follow_the_likelihood(ranking: Any, calls: int | None) -> None:
    model, x, sampler = masked_model(), every_example(K, L), Ordered(calls, ranking)
    p = model.log_prob_of_sampler(x, sampler).exp()
    drawn = model.sample(8000, sampler=sampler, generator=torch.Generator().manual_seed(0))
    number = (drawn * K ** torch.arange(L - 1, -1, -1)).sum(dim=1)
    counts = torch.bincount(number, minlength=K**L).numpy()
    assert chi_square(counts, p.numpy()) > 1e-4
    other = model.log_prob_of_sampler(x, Ordered(1)).exp()
    assert chi_square(counts, other.numpy()) < 1e-4  # the test can fail


@pytest.mark.parametrize("ranking", RANKINGS)
def test_with_known_positions_it_is_the_conditional_of_the_sampler(ranking: Any) -> None:
    model, x, sampler = masked_model(), every_example(K, L), Ordered(2, ranking)
    known = torch.tensor([-1, 1, -1, -1, 0])
    fits = x[((x == known) | (known < 0)).all(dim=1)]
    log_p = model.log_prob_of_sampler(fits, sampler, known=known.expand(len(fits), -1))
    torch.testing.assert_close(log_p.exp().sum(), torch.tensor(1.0, dtype=torch.float64))
    drawn = model.sample(6000, sampler=sampler, known=known, generator=torch.Generator().manual_seed(0))
    place = {tuple(row): number for number, row in enumerate(fits.tolist())}
    counts = torch.bincount(torch.tensor([place[tuple(row)] for row in drawn.tolist()]), minlength=len(fits))
    assert chi_square(counts.numpy(), log_p.exp().numpy()) > 1e-4


def test_left_to_right_with_one_position_per_call_is_that_order() -> None:
    model, x = masked_model(), every_example(K, L)
    with torch.no_grad():
        expected = model.log_prob_of_order(x, torch.arange(L))
    torch.testing.assert_close(model.log_prob_of_sampler(x, Ordered(None, "left-to-right")), expected)


def test_ties_go_to_the_lowest_number() -> None:
    is_masked = torch.tensor([[True, True, False, True]])
    urgency = torch.tensor([[0.5, 0.5 + 1e-9, 0.9, 0.2]])
    shown = Ordered().shown_next(urgency, is_masked, torch.tensor([1]), None)
    assert shown.tolist() == [[True, False, False, False]]
    shown = Ordered().shown_next(urgency, is_masked, torch.tensor([2]), None)
    assert shown.tolist() == [[True, True, False, False]]


def test_rankings_read_whole_distributions() -> None:
    logits = torch.tensor([[[0.0, 0.0, 5.0], [1.0, 1.0, 1.0], [4.0, 4.0, 0.0]]])
    margin = Ordered(ranking="margin").urgency(logits)[0]
    p = torch.softmax(logits[0], dim=-1).sort(descending=True).values
    torch.testing.assert_close(margin, p[:, 0] - p[:, 1])
    assert int(Ordered(ranking="entropy").urgency(logits).argmin()) == 1
    assert int(Ordered(ranking="confidence").urgency(logits).argmax()) == 0


def test_wrong_rankings_are_refused() -> None:
    wrong: Any = "random"
    with pytest.raises(ValueError, match="unknown ranking 'random'"):
        Ordered(2, wrong)
