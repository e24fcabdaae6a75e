"""Samples of block diffusions against their exact distribution; known positions, guidance, few calls."""

import itertools
import math
from typing import Any

import pytest
import torch
from blocks import BLOCKS, K, L, built, condition, examples, of_all_orders

from unordinal.diffusion.ordered import EntropyBounded, Ordered
from unordinal.evaluate.enumeration import chi_square


@pytest.mark.parametrize("form", ["plain", "ends", "labels"])
@pytest.mark.parametrize("block", BLOCKS)
def test_samples_with_one_position_per_call_follow_the_likelihood(form: str, block: int) -> None:
    model, x = built(form, block), examples(form)
    every = of_all_orders(model, x, form)
    p = (torch.logsumexp(every, dim=0) - math.log(len(every))).exp().numpy()
    place = {tuple(row): number for number, row in enumerate(x.tolist())}
    for sampler in ("first-hitting", "spread"):
        drawn = model.sample(4000, generator=torch.Generator().manual_seed(2), sampler=sampler, **condition(form))
        counts = torch.bincount(torch.tensor([place[tuple(row)] for row in drawn.tolist()]), minlength=len(x))
        assert chi_square(counts.numpy(), p) > 1e-4, sampler


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_fewer_calls_still_draw_strings(steps: int) -> None:
    model, x = built("ends", 3), examples("ends")
    rows = {tuple(row) for row in x.tolist()}
    for sampler in model.denoiser.samplers:
        if sampler == "corrected":
            continue
        drawn = model.sample(300, steps=steps, sampler=sampler, generator=torch.Generator().manual_seed(0))
        assert {tuple(row) for row in drawn.tolist()} <= rows, sampler
    whole = model.sample(100, event_shape=(L,), generator=torch.Generator().manual_seed(0))
    assert int(whole.max()) < K


def test_known_positions_of_the_current_block_are_respected() -> None:
    model, x = built("plain", 3), examples("plain")
    known = torch.tensor([1, -1, 0, -1, -1])
    drawn = model.sample(6000, known=known, generator=torch.Generator().manual_seed(0))
    assert bool((drawn[:, known >= 0] == known[known >= 0]).all())
    # first the known ones, then the free ones of the block, then the next block, in all orders
    orders = [(0, 2, 1, *rest) for rest in itertools.permutations((3, 4))]
    with torch.no_grad():
        every = torch.stack([model.log_prob_of_order(x, torch.tensor(order)) for order in orders])
    fits = ((x == known) | (known < 0)).all(dim=1)
    p = torch.where(fits, (torch.logsumexp(every, dim=0) - math.log(len(every))).exp(), 0.0)
    # given positions 0 and 2 the shares of the rest are p(x_1 | x_0, x_2) p(x_3, x_4 | ...): normalise
    place = {tuple(row): number for number, row in enumerate(x.tolist())}
    counts = torch.bincount(torch.tensor([place[tuple(row)] for row in drawn.tolist()]), minlength=len(x))
    assert chi_square(counts.numpy(), (p / p.sum()).numpy()) > 1e-4


@pytest.mark.parametrize("form", ["plain", "ends"])
@pytest.mark.parametrize("budget", [0.0, 0.7])
def test_a_budget_of_entropy_holds_in_every_block(form: str, budget: float) -> None:
    model, x = built(form, 3), examples(form)
    place = {tuple(row): number for number, row in enumerate(x.tolist())}
    p = model.log_prob_of_sampler(x, EntropyBounded(budget=budget)).exp()
    torch.testing.assert_close(p.sum(), torch.tensor(1.0, dtype=torch.float64))
    drawn = model.sample(3000, sampler="entropy-bounded", budget=budget, generator=torch.Generator().manual_seed(0))
    counts = torch.bincount(torch.tensor([place[tuple(row)] for row in drawn.tolist()]), minlength=len(x))
    assert chi_square(counts.numpy(), p.numpy()) > 1e-4
    with pytest.raises(ValueError, match="`budget` is for the sampler entropy-bounded, not spread"):
        model.sample(2, sampler="spread", budget=0.5)


def test_known_positions_of_later_blocks_are_refused() -> None:
    model = built("plain", 2)
    with pytest.raises(ValueError, match="known positions may be in the first block that has a free position"):
        model.sample(2, known=torch.tensor([0, -1, 1, -1, -1]))
    model.sample(2, known=torch.tensor([0, 1, 1, -1, -1]))


def test_guidance_of_one_changes_nothing_and_of_zero_drops_labels() -> None:
    model = built("labels", 2)
    settings: Any = {"cond": torch.tensor([1, 2])}
    one = model.sample(50, generator=torch.Generator().manual_seed(0), **settings)
    almost = model.sample(50, generator=torch.Generator().manual_seed(0), guidance=1 + 1e-12, **settings)
    assert torch.equal(one, almost)
    free = model.sample(50, generator=torch.Generator().manual_seed(0), guidance=0.0, **settings)
    dropped = model.sample(50, generator=torch.Generator().manual_seed(0))
    assert torch.equal(free, dropped)


@pytest.mark.parametrize("form", ["plain", "ends", "labels", "ends and labels"])
@pytest.mark.parametrize("block", [2, 3, 5])
def test_the_likelihood_of_a_sampler_sums_to_one_and_samples_follow_it(form: str, block: int) -> None:
    model, x = built(form, block), examples(form)
    place = {tuple(row): number for number, row in enumerate(x.tolist())}
    for calls, ranking in itertools.product((None, 1, 3), ("margin", "left-to-right")):
        given: Any = {} if "labels" not in form else {"cond": torch.tensor([1, 2]).expand(len(x), -1)}
        p = model.log_prob_of_sampler(x, Ordered(calls, ranking), **given).exp()  # type: ignore[arg-type]
        torch.testing.assert_close(p.sum(), torch.tensor(1.0, dtype=torch.float64))
        if ranking == "margin":
            settings: Any = {"steps": calls, "sampler": "margin", **condition(form)}
            drawn = model.sample(3000, generator=torch.Generator().manual_seed(0), **settings)
            counts = torch.bincount(torch.tensor([place[tuple(row)] for row in drawn.tolist()]), minlength=len(x))
            assert chi_square(counts.numpy(), p.numpy()) > 1e-4, calls
