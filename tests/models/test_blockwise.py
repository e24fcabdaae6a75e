"""Block diffusion against enumeration: orders, bounds, ends and labels, with blocks of unequal size."""

import math

import pytest
import torch
from blocks import BLOCKS, FORMS, K, L, built, condition, examples, of_all_orders

from unordinal.evaluate.audit import audit


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
