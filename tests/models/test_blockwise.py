"""Block diffusion against enumeration: orders, bounds, samples, ends and labels, with blocks of unequal size."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from unordinal.evaluate.audit import audit, chi_square, every_example
from unordinal.models.blockwise import BlockDiffusion
from unordinal.nets.blockwise import BlockTransformer

K, L = 2, 5
FORMS = ["plain", "ends", "labels", "ends and labels", "places"]
BLOCKS = [1, 2, 3, 5]


def built(form: str = "plain", block: int = 2, conv: int = 3) -> BlockDiffusion:
    """Return a small model with random weights, in float64."""
    torch.manual_seed(0)
    labels = (2, 3) if "labels" in form else ()
    length = L if form == "places" else None
    net = BlockTransformer(
        K + ("ends" in form), length=length, labels=labels, width=8, num_blocks=2, num_heads=2, conv=conv
    )
    for weights in net.parameters():
        torch.nn.init.normal_(weights, std=0.6)
    model = BlockDiffusion(net, event_shape=(L,), block=block, ends="ends" in form, labels=labels)
    return model.double().eval()


def examples(form: str) -> Tensor:
    return every_example(K, L, ends="ends" in form)


def condition(form: str) -> Any:
    return {"cond": torch.tensor([1, 2])} if "labels" in form else {}


def orders_of(block: int) -> list[tuple[int, ...]]:
    """Return all orders in which the positions of every block can be shown, blocks one after another."""
    parts = [list(itertools.permutations(range(start, min(L, start + block)))) for start in range(0, L, block)]
    return [tuple(itertools.chain(*choice)) for choice in itertools.product(*parts)]


@torch.no_grad()
def of_all_orders(model: BlockDiffusion, x: Tensor, form: str) -> Tensor:
    """Return the log-probability of each x for all orders, (orders, N)."""
    orders = orders_of(model.block)
    return torch.stack([model.log_prob_of_order(x, torch.tensor(order), **condition(form)) for order in orders])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", BLOCKS)
def test_the_likelihood_of_an_order_sums_to_one(form: str, block: int) -> None:
    model, x = built(form, block), examples(form)
    generator = torch.Generator().manual_seed(1)
    for order in (torch.arange(L), torch.arange(L - 1, -1, -1), torch.randperm(L, generator=generator)):
        log_p = model.log_prob_of_order(x, order, **condition(form))
        torch.testing.assert_close(log_p.exp().sum(), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", [1, 2, 3])
def test_the_sum_over_subsets_is_the_mean_over_orders(form: str, block: int) -> None:
    model, x = built(form, block), examples(form)
    every = of_all_orders(model, x, form)
    mean = torch.logsumexp(every, dim=0) - math.log(len(every))
    exact = model.log_prob_of_random_order(x, **condition(form))
    torch.testing.assert_close(exact, mean)
    torch.testing.assert_close(exact.exp().sum(), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", BLOCKS)
def test_the_bound_is_the_mean_over_orders_and_below_the_likelihood(form: str, block: int) -> None:
    """The masked bound equals the mean of the log-likelihoods of all orders, and its draws have that mean."""
    model, x = built(form, block), examples(form)
    every = of_all_orders(model, x, form)
    expected = every.mean(dim=0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        draws = torch.stack([model.elbo(x, generator=generator, **condition(form)) for _ in range(600)])
    error = (draws.std(dim=0) / len(draws) ** 0.5).clamp(min=1e-7)  # 0 at block 1, where the bound is exact
    assert float(((draws.mean(dim=0) - expected).abs() / error).max()) < 5
    exact = torch.logsumexp(every, dim=0) - math.log(len(every))
    assert bool((expected <= exact + 1e-9).all())


@torch.no_grad()
@pytest.mark.parametrize("form", ["plain", "ends"])
def test_training_minimises_the_bound(form: str) -> None:
    model, x = built(form, 2), examples(form)
    torch.manual_seed(0)
    losses = torch.stack([model.training_loss(x) for _ in range(600)])
    draws = torch.stack([model.elbo(x) for _ in range(600)])
    error = (losses.var(dim=0) / 600 + draws.var(dim=0) / 600).sqrt()
    assert float(((losses.mean(dim=0) + draws.mean(dim=0)).abs() / error.clamp(min=1e-9)).max()) < 5


@pytest.mark.parametrize("block", [2, 5])
def test_examples_may_be_trimmed(block: int) -> None:
    model = built("ends", block)
    x = examples("ends")
    short = x[(x[:, 2:] == K).all(dim=1)]
    whole = model.log_prob_of_order(short, torch.arange(L))
    torch.testing.assert_close(model.log_prob_of_order(short[:, :2], torch.arange(2)), whole)


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


@pytest.mark.parametrize("form", ["plain", "ends"])
def test_the_audit_passes(form: str) -> None:
    found = audit(built(form, 2), draws=300, num_samples=4000)
    assert found.passed, found


def test_wrong_sizes_of_blocks_are_refused() -> None:
    for block in (0, L + 1):
        with pytest.raises(
            ValueError, match=f"`block` must be between 1 and {L}, the length of an example; got {block}"
        ):
            built("plain", block)
    with pytest.raises(ValueError, match="at most 4 positions, got 5"):
        built("plain", 5).log_prob_of_random_order(examples("plain"))
