"""Means of autoregressive models, some of which read rows in reverse, against enumeration."""

import itertools
from typing import Any

import pytest
import torch
from contracts import chi_square_p_value
from torch import nn

from unordinal.data.labels import Label
from unordinal.data.spec import DataSpec
from unordinal.models.mixture import MixtureModel
from unordinal.nets.places import PlaceHeads
from unordinal.overrides import with_settings
from unordinal.recipes import configured

COLUMNS = (2, 3, 1, 4)
SPEC = DataSpec("rows", 4, (4,), columns=COLUMNS, has_places=True, labels=(Label("class", ("frog", "toad")),))
EVENTS = torch.tensor(list(itertools.product(*(range(k) for k in COLUMNS))))
SMALL: dict[str, Any] = {"net.width": 8, "net.num_blocks": 1, "net.num_heads": 1, "net.conv": 0, "order": "both"}


def built(**settings: Any) -> MixtureModel:
    torch.manual_seed(0)
    model = with_settings(configured("arm"), {**SMALL, **settings}).model.build_for(SPEC).double()
    for p in model.parameters():
        nn.init.normal_(p, std=0.7)
    assert isinstance(model, MixtureModel)
    return model.eval()


@pytest.mark.parametrize("settings", [{}, {"num_orders": 3, "sums": 5}])
@torch.no_grad()
def test_probabilities_sum_to_one_and_samples_follow_them(settings: dict[str, Any]) -> None:
    model = built(**settings)
    for label in (0, 1):
        cond = torch.tensor([label])
        p = model.log_prob(EVENTS, cond=cond.expand(len(EVENTS), -1)).exp()
        assert float(p.sum()) == pytest.approx(1, abs=1e-9)
        x = model.sample(6000, cond=cond, generator=torch.Generator().manual_seed(1))
        counts = (x.unsqueeze(1) == EVENTS).all(dim=-1).sum(dim=0)
        assert int(counts.sum()) == 6000
        assert chi_square_p_value(counts, p) > 1e-3


@torch.no_grad()
def test_every_second_member_reads_rows_in_reverse_and_rows_train_one_member_each() -> None:
    model = built(num_orders=2)
    cond = torch.zeros(len(EVENTS), 1, dtype=torch.long)
    one, other = model.each()
    both = torch.stack([one.log_prob(EVENTS, cond=cond), other.log_prob(EVENTS.flip(1), cond=cond)])
    torch.testing.assert_close(model.log_prob(EVENTS, cond=cond), both.exp().mean(dim=0).log())
    found = set()
    for seed in range(8):  # which member the first row trains is drawn
        torch.manual_seed(seed)
        losses, rows = model.training_loss(EVENTS, cond=cond), torch.arange(len(EVENTS))
        expected = [torch.where((rows + first) % 2 == 0, -both[0], -both[1]).float() for first in (0, 1)]
        found.add([torch.allclose(losses, each) for each in expected].index(True))
        single = model.training_loss(EVENTS[:1], cond=cond[:1])  # fewer rows than members
        assert any(float(single) == pytest.approx(float(each[0]), rel=1e-5) for each in expected)
    assert found == {0, 1}


def test_outputs_of_both_directions_start_at_the_frequencies() -> None:
    model = built(num_orders=2)
    x = torch.tensor([[0, 2, 0, 3], [0, 2, 0, 3], [1, 2, 0, 3]])
    for member, column in zip(model.each(), (3, 0), strict=True):  # column 3 is the first one in reverse
        heads = next(part for part in member.modules() if isinstance(part, PlaceHeads))
        heads.start_at(x)
        p = torch.softmax(heads.at(torch.zeros(1, 8, dtype=torch.float64), column), dim=-1)
        torch.testing.assert_close(p[0], torch.tensor([0.5, 0.5, 0.5, 3.5]).double() / 5)


def test_the_order_both_is_for_rows() -> None:
    with pytest.raises(ValueError, match=r"`model.order` both is for rows of places"):
        with_settings(configured("arm"), SMALL).model.build_for(DataSpec("text", 4, (8,)))
    with pytest.raises(ValueError, match=r"`model.sums` is for rows of places"):
        with_settings(configured("arm"), {**SMALL, "order": "given", "sums": 4}).model.build_for(
            DataSpec("text", 4, (8,))
        )
