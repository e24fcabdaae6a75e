"""Samplers that choose their order: their likelihood sums to 1, and samples follow it."""

from typing import Any, get_args

import pytest
import torch
from contracts import TableNet
from torch import Tensor

from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.ordered import EntropyBounded, Ordered, Ranking
from unordinal.evaluate.enumeration import chi_square, every_example
from unordinal.models.diffusion import Diffusion
from unordinal.progress import Watcher, watching

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


BUDGETS = [0.0, 0.3, 0.8, 100.0]


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_budget_of_entropy_shows_the_largest_set_that_it_allows(budget: float) -> None:
    """Compared with every set of the surest positions, one size after another."""
    generator = torch.Generator().manual_seed(1)
    logits = 3 * torch.randn(40, 6, 3, generator=generator, dtype=torch.float64)
    is_masked = torch.rand(40, 6, generator=generator) < 0.7
    sampler = EntropyBounded(budget=budget)
    shown = sampler.shown_next(sampler.urgency(logits), is_masked, torch.ones(40, dtype=torch.long), None)
    entropy = torch.distributions.Categorical(logits=logits).entropy()
    for row in range(40):
        surest = sorted(torch.nonzero(is_masked[row]).flatten().tolist(), key=lambda i: float(entropy[row, i]))
        sets = [surest[:size] for size in range(len(surest) + 1)]
        fits: list[list[int]] = [
            s for s in sets if not s or float(entropy[row, s].sum() - entropy[row, s].max()) <= budget + 1e-4
        ]
        assert set(torch.nonzero(shown[row]).flatten().tolist()) == set(fits[-1])


@pytest.mark.parametrize("steps", [None, 2])
@pytest.mark.parametrize("budget", BUDGETS)
def test_the_likelihood_of_an_entropy_bounded_sampler_sums_to_one_and_samples_follow_it(
    budget: float, steps: int | None
) -> None:
    model, x, sampler = masked_model(), every_example(K, L), EntropyBounded(steps, budget=budget)
    p = model.log_prob_of_sampler(x, sampler).exp()
    torch.testing.assert_close(p.sum(), torch.tensor(1.0, dtype=torch.float64))
    with watching(Watcher()) as watcher:
        drawn = model.sample(
            6000, sampler="entropy-bounded", budget=budget, steps=steps, generator=torch.Generator().manual_seed(0)
        )
    counts = torch.bincount((drawn * K ** torch.arange(L - 1, -1, -1)).sum(dim=1), minlength=K**L)
    assert chi_square(counts.numpy(), p.numpy()) > 1e-4
    calls = watcher.network_calls / 6000
    assert calls <= (steps or L)
    if budget in (0.0, 100.0) and steps is None:
        assert calls == (L if budget == 0.0 else 1)


def test_a_budget_bounds_what_a_call_loses() -> None:
    """In one call, with exact predictions, the divergence from the joint distribution is at most the budget."""
    torch.manual_seed(0)
    joint = torch.softmax(2 * torch.randn(3, 3, 3, dtype=torch.float64), dim=-1).flatten().softmax(0).view(3, 3, 3)
    marginals = [joint.sum(dim=tuple(j for j in range(3) if j != i)) for i in range(3)]
    logits = torch.stack(marginals).log().unsqueeze(0)
    for budget in (0.2, 1.2, 3.0):
        sampler, is_masked = EntropyBounded(budget=budget), torch.ones(1, 3, dtype=torch.bool)
        shown = sampler.shown_next(sampler.urgency(logits), is_masked, torch.tensor([1]), None)[0]
        places = torch.nonzero(shown).flatten().tolist()
        of_shown = joint.sum(dim=tuple(j for j in range(3) if j not in places)) if len(places) < 3 else joint
        product = torch.ones((), dtype=torch.float64)
        for place in places:
            product = product.unsqueeze(-1) * marginals[place]
        assert float((of_shown * (of_shown / product).log()).sum()) <= budget + 1e-4


def test_wrong_budgets_are_refused() -> None:
    with pytest.raises(ValueError, match="`budget` is for the ranking entropy, not margin"):
        Ordered(ranking="margin", budget=0.1)
    with pytest.raises(ValueError, match="`budget` must be a number of nats of at least 0, got -1"):
        EntropyBounded(budget=-1.0)
    with pytest.raises(ValueError, match="`budget` is for the sampler entropy-bounded, not spread"):
        masked_model().sample(2, sampler="spread", budget=0.1)
    with pytest.raises(ValueError, match="`budget` is for a sampler that is given by its name"):
        masked_model().sample(2, sampler=EntropyBounded(), budget=0.1)


def test_wrong_rankings_are_refused() -> None:
    wrong: Any = "random"
    with pytest.raises(ValueError, match="unknown ranking 'random'"):
        Ordered(2, wrong)
