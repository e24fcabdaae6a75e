"""Models of any order: the mean over orders is normalised, and conditions are exact for the order that results."""

import itertools
import math

import pytest
import torch
from contracts import chi_square_p_value
from torch import nn

import unordinal
from unordinal.models.any_order import AnyOrderModel
from unordinal.nets.orders import OrderTransformer

SIZES = (2, 3, 1, 2)
EVENTS = torch.tensor(list(itertools.product(*(range(k) for k in SIZES))))


def made(num_orders: int = 3, labels: tuple[int, ...] = (), num_blocks: int = 1) -> AnyOrderModel:
    torch.manual_seed(0)
    net = OrderTransformer(SIZES, 4, labels=labels, width=8, num_blocks=num_blocks, num_heads=2, conv=3)
    for p in net.parameters():
        nn.init.normal_(p, std=0.7)
    return AnyOrderModel(net, event_shape=(4,), num_orders=num_orders, labels=labels).double().eval()


@torch.no_grad()
def test_every_order_and_their_mean_sum_to_one() -> None:
    model = made()
    for order in itertools.permutations(range(4)):
        assert float(model.orders(EVENTS, torch.tensor(order)).exp().sum()) == pytest.approx(1)
    assert float(model.log_prob(EVENTS).exp().sum()) == pytest.approx(1)
    each = torch.stack([model.orders(EVENTS, order) for order in model.all_orders])
    torch.testing.assert_close(model.log_prob(EVENTS), each.logsumexp(0) - math.log(3))
    labelled = made(labels=(2,))
    for value in range(3):
        given = torch.full((len(EVENTS), 1), value)
        assert float(labelled.log_prob(EVENTS, cond=given).exp().sum()) == pytest.approx(1)


@pytest.mark.parametrize("num_blocks", [1, 3])
@torch.no_grad()
def test_steps_give_what_the_whole_pass_gives(num_blocks: int) -> None:
    model, order = made(num_blocks=num_blocks), [2, 0, 3, 1]
    x = EVENTS[:5]
    logits = model.net(x, torch.tensor(order).expand(5, -1))
    state, before = model.net.init_state(5), None
    for place in order:
        step, state = model.net.step(before, place, state)
        torch.testing.assert_close(step, model.classes.at(logits, place))
        before = (x[:, place], place)


@torch.no_grad()
def test_samples_follow_the_mean_over_orders() -> None:
    model = made()
    p = model.log_prob(EVENTS).exp()
    x = model.sample(20_000, generator=torch.Generator().manual_seed(0))
    index = {tuple(row): place for place, row in enumerate(EVENTS.tolist())}
    counts = torch.bincount(torch.tensor([index[tuple(row)] for row in x.tolist()]), minlength=len(EVENTS)).double()
    is_rare = 20_000 * p < 5
    pooled, expected = (torch.cat([v[~is_rare], v[is_rare].sum().reshape(1) + 1e-9]) for v in (counts, p))
    assert chi_square_p_value(pooled, expected / expected.sum()) > 1e-4


@torch.no_grad()
def test_known_places_come_first_and_conditions_are_exact_for_that_order() -> None:
    model = made(num_orders=1)
    known = torch.tensor([-1, 1, -1, 0])
    fits = ((known < 0) | (known == EVENTS)).all(dim=1)
    own = model.all_orders[0].tolist()
    order = torch.tensor([c for c in own if known[c] >= 0] + [c for c in own if known[c] < 0])
    joint = model.orders(EVENTS, order).exp()
    conditional = joint[fits] / joint[fits].sum()
    drawn = model.sample(20_000, known=known, generator=torch.Generator().manual_seed(0))
    share = (drawn.unsqueeze(1) == EVENTS[fits].unsqueeze(0)).all(-1).double().mean(0)
    assert float((share - conditional).abs().max()) < 4.5 * math.sqrt(0.25 / 20_000)
    assert float(model.log_prob_of_known(known.unsqueeze(0)).exp()) == pytest.approx(float(joint[fits].sum()))
    given = model.orders(EVENTS[fits], order, num_given=2)
    torch.testing.assert_close(given.exp(), conditional)


def test_the_recipe_takes_any_order_for_rows_only() -> None:
    assert isinstance(unordinal.arm(SIZES, 4, order="any"), AnyOrderModel)
    with pytest.raises(ValueError, match=r"`model\.order` any is for rows of places"):
        unordinal.arm(3, 8, order="any")
    model = unordinal.arm(SIZES, 4, order="any", num_orders=2)
    loss = model.training_loss(EVENTS)
    assert loss.shape == (len(EVENTS),)
    loss.mean().backward()


@torch.no_grad()
def test_the_distribution_of_a_place_given_others_follows_from_the_orders() -> None:
    """By Bayes' rule over the orders, each with the known places first and this place next."""
    model, known = made(), torch.tensor([[1, -1, 0, -1]])
    for place in (1, 3):
        total = torch.zeros(SIZES[place], dtype=torch.float64)
        for own in model.all_orders.tolist():
            first = [c for c in own if known[0, c] >= 0]
            order = torch.tensor([*first, place, *(c for c in own if c not in first and c != place)])
            joint = model.orders(EVENTS, order).exp()
            fits = ((known[0] < 0) | (known[0] == EVENTS)).all(dim=1)
            total += torch.stack([joint[fits & (EVENTS[:, place] == k)].sum() for k in range(SIZES[place])])
        torch.testing.assert_close(model.log_probs_given(known, [place])[0][0].exp(), total / total.sum())


@torch.no_grad()
def test_quick_answers_come_from_the_first_orders() -> None:
    many, few = made(num_orders=9), made(num_orders=4)
    known = torch.where(torch.arange(4) == 1, -1, EVENTS)
    assert many.conditional.quick is not None
    torch.testing.assert_close(many.conditional.quick(known, [1]), few.conditional.log_probs(known, [1]))


@torch.no_grad()
def test_all_free_places_are_predicted_in_one_pass_and_orders_differ_by_their_spread() -> None:
    model, known = made(), torch.tensor([[1, -1, 0, -1], [-1, 2, -1, -1]])
    both = model.log_probs_given(known, [1, 3])
    for place, found in zip((1, 3), both, strict=True):
        torch.testing.assert_close(found, model.log_probs_given(known, [place])[0])
        torch.testing.assert_close(found.exp().sum(dim=1), torch.ones(2, dtype=torch.float64))
    spread = model.conditional.spread
    assert spread is not None
    assert float(spread(known, 1).max()) > 0
    alone = made(num_orders=1)
    assert alone.conditional.spread is not None
    assert float(alone.conditional.spread(known, 1).max()) == 0
