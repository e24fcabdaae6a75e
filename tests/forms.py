"""Small models of columns, ends and labels, and the truth about them by enumeration."""

import itertools
import math
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.data.spec import DataSpec, Label
from unordinal.model import CategoricalModel
from unordinal.models.diffusion import Diffusion
from unordinal.overrides import with_settings
from unordinal.recipes import configured

COLUMNS, K, L = (2, 3, 1, 2), 2, 3
LENGTHS = (3, 1, 5, 2)
LABELS = (Label("class", ("frog", "toad")), Label("colour", ("green", "red", "blue")))
SPECS = {
    "columns": DataSpec("rows", 3, (len(COLUMNS),), columns=COLUMNS, has_places=True),
    "ends": DataSpec("lines", K, (L,), lengths=(LENGTHS,)),
    "labels": DataSpec("labelled", K, (L,), labels=LABELS, has_places=True),
    "ends and labels": DataSpec("both", K, (L,), lengths=(LENGTHS, (1, 1, 1, 7), LENGTHS), labels=LABELS),
}
RECIPES_WITH_FORMS = ("arm", "absorbing", "uniform", "multinomial")
SMALL: dict[str, Any] = {"net.width": 8, "net.num_blocks": 1, "net.conv": 3}


def built(name: str, form: str, **settings: Any) -> CategoricalModel:
    """A small model with random weights, in float64."""
    heads = {"net.global_heads": 1} if name in ("uniform", "multinomial") else {"net.num_heads": 1}
    steps = {"num_steps": 4} if name == "multinomial" else {}
    config = with_settings(configured(name), {**SMALL, **heads, **steps, **settings})
    torch.manual_seed(0)
    model = config.model.build_for(SPECS[form]).double()
    for p in model.parameters():
        nn.init.normal_(p, std=0.7)
    return model.eval()


def events_of(form: str) -> Tensor:
    """Every x of the space; positions after an end hold the number of classes."""
    if form == "columns":
        return torch.tensor(list(itertools.product(*(range(k) for k in COLUMNS))))
    strings = [s for n in range(L + 1) for s in itertools.product(range(K), repeat=n) if "ends" in form or n == L]
    return torch.tensor([[*s, *[K] * (L - len(s))] for s in strings])


def conditions(form: str) -> list[Tensor | None]:
    """Some labels, a missing one among them."""
    return [torch.tensor([0, 2]), torch.tensor([2, 1]), None] if "labels" in form else [None]


def exact_log_prob(model: CategoricalModel, x: Tensor, cond: Tensor | None) -> Tensor:
    """log P(x) of every x of the space, whatever the model."""
    given: Any = {} if cond is None else {"cond": cond.expand(len(x), -1)}
    if model.is_exact:
        return model.elbo(x, **given)
    assert isinstance(model, Diffusion)
    if model.orders is not None:
        orders = itertools.permutations(range(x.shape[1]))
        return torch.stack([model.orders(x, torch.tensor(order), **given) for order in orders]).logsumexp(0) - math.log(
            math.factorial(x.shape[1])
        )
    return chain_log_prob(model, x, given.get("cond"))


def chain_log_prob(model: Diffusion, x: Tensor, cond: Tensor | None) -> Tensor:
    """log P(x) of a diffusion in discrete steps, by enumeration of all chains; checks that every step is normalised."""
    noise: Any = model.noise
    full = model.checked_cond(None if cond is None else cond[:1], len(x))
    log_p = model.log_length(x, full) + noise.log_prior(x)
    same_length = (model.num_symbols(x).unsqueeze(0) == model.num_symbols(x).unsqueeze(1)).double()
    p = (noise.log_prior(x).double().exp()).expand(len(x), -1) * same_length  # of x_T, for each length
    log_length = log_p - noise.log_prior(x)
    current = p
    for t in range(noise.num_steps, 0, -1):
        logits = model.evaluated_logits(x, torch.full((len(x),), t), full)
        step = (
            torch.stack(
                [noise.log_reverse(logits, x, target.expand_as(x), t, t - 1).exp() for target in x], dim=1
            ).double()
            * same_length
        )  # (x_t, x_s)
        torch.testing.assert_close(step.sum(1), torch.ones(len(x), dtype=torch.float64), rtol=1e-9, atol=1e-9)
        current = current @ step
    return log_length + torch.diagonal(current).log()
