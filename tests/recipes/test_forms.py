"""Columns of classes of their own, ends and labels: the truth by enumeration, for every recipe that takes them."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from contracts import chi_square_p_value
from forms import COLUMNS, RECIPES_WITH_FORMS, SPECS, K, L, built, conditions, events_of, exact_log_prob
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import unordinal
from unordinal.api import fit
from unordinal.diffusion.absorbing import AbsorbingNoise, MaskCountNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.process import NoiseProcess
from unordinal.diffusion.schedules import Schedule, cosine, cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.model import CategoricalModel
from unordinal.nets.places import PlaceHeads
from unordinal.overrides import with_settings
from unordinal.recipes import RECIPES, configured

ENDED = [built(name, "ends") for name in ("arm", "absorbing")]


@pytest.mark.parametrize("form", SPECS)
@pytest.mark.parametrize("name", ["arm", "absorbing", "multinomial"])
@torch.no_grad()
def test_probabilities_of_valid_examples_sum_to_one_for_every_label(name: str, form: str) -> None:
    model, x = built(name, form), events_of(form)
    for cond in conditions(form):
        assert float(exact_log_prob(model, x, cond).exp().sum()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("form", SPECS)
@pytest.mark.parametrize("name", ["absorbing", "multinomial", "uniform"])
@torch.no_grad()
def test_mean_bounds_lie_below_the_truth_and_their_exponentials_sum_to_at_most_one(name: str, form: str) -> None:
    model, x = built(name, form), events_of(form)
    for cond in conditions(form):
        given: Any = {} if cond is None else {"cond": cond.expand(len(x) * 50, -1)}
        torch.manual_seed(1)
        draws = torch.stack([model.elbo(x.repeat(50, 1), **given).view(50, -1) for _ in range(40)]).flatten(0, 1)
        mean, error = draws.mean(0), draws.std(0) / len(draws) ** 0.5
        assert float((mean - 4 * error).exp().sum()) <= 1
        if name != "uniform":
            assert bool((mean <= exact_log_prob(model, x, cond) + 4.5 * error + 1e-5).all())


@pytest.mark.parametrize("form", SPECS)
@pytest.mark.parametrize("name", ["arm", "absorbing", "multinomial"])
@torch.no_grad()
def test_samples_follow_the_distribution_given_the_label(name: str, form: str) -> None:
    model, x = built(name, form), events_of(form)
    num = 8000
    index = {tuple(row): place for place, row in enumerate(x.tolist())}
    for cond in conditions(form):
        p = exact_log_prob(model, x, cond).exp()
        drawn = model.sample(num, cond=cond, generator=torch.Generator().manual_seed(0))
        counts = torch.bincount(torch.tensor([index[tuple(row)] for row in drawn.tolist()]), minlength=len(x)).double()
        is_rare = num * p < 5  # too rare by themselves for the test
        pooled, expected = (torch.cat([v[~is_rare], v[is_rare].sum().reshape(1) + 1e-9]) for v in (counts, p))
        assert chi_square_p_value(pooled, expected / expected.sum()) > 1e-4


@pytest.mark.parametrize("name", RECIPES_WITH_FORMS)
@torch.no_grad()
def test_scores_do_not_depend_on_the_other_examples_of_a_batch(name: str) -> None:
    """A short example alone, and next to longer ones, however far it is padded."""
    model = built(name, "ends and labels")
    x, cond = torch.tensor([[1, 2, 2], [0, 1, 1], [2, 2, 2]]), torch.tensor([[0, 1], [1, 3], [2, 0]])
    if model.times is not None:
        place = torch.full((3,), 0.3, dtype=torch.float64)

        def score(x: Tensor, cond: Tensor) -> Tensor:
            """The bound at one time; all positions masked or redrawn alike, since the noise is drawn row by row."""
            z = torch.where(x == K, K, model.noise.mask if model.noise.mask is not None else 1)  # type: ignore
            t = model.noise.time_at(place[: len(x)])  # type: ignore[operator,union-attr]
            return model.noise.loss(model.logits(z, t, cond), x, z, t)  # type: ignore[operator,union-attr]
    else:

        def score(x: Tensor, cond: Tensor) -> Tensor:
            return model.elbo(x, cond=cond)

    together = score(x, cond)
    for row, size in enumerate((1, 3, 1)):
        torch.testing.assert_close(score(x[row : row + 1, :size], cond[row : row + 1])[0], together[row])


NOISES: dict[str, Any] = {
    "uniform": lambda k, **ends: UniformNoise(k, cosine_schedule(5), **ends),
    "denoiser": lambda k, **ends: UniformNoise(k, cosine_schedule(5), output="denoiser", **ends),
    "continuous": ContinuousUniformNoise,
    "absorbing": lambda k, **ends: AbsorbingNoise(k, Schedule(cosine, 5), **ends),
}
CASES = [(name, t) for name in NOISES for t in ((1, 3, 5) if name != "continuous" else (0.2, 0.9))]


@pytest.mark.parametrize(("name", "t"), CASES)
def test_noise_of_columns_is_that_of_each_column_by_itself(name: str, t: float) -> None:
    noise, each = NOISES[name](COLUMNS), [NOISES[name](k) if k > 1 else None for k in COLUMNS]
    generator = torch.Generator().manual_seed(0)
    num = 40
    logits = torch.randn(num, sum(COLUMNS), dtype=torch.float64, generator=generator)
    x = noise.classes.uniform((num, len(COLUMNS)), torch.device("cpu"), generator)
    times = torch.full((num,), t)
    z = noise.corrupt(x, times, generator=generator)
    assert bool(((z < torch.tensor(COLUMNS)) | (z == noise.mask if noise.mask else False)).all())
    used = noise.predicted(logits, z, times)
    total = torch.zeros(num, dtype=torch.float64)
    for column, alone in enumerate(each):
        if alone is None:
            continue  # one class: nothing to learn, and nothing to pay
        part = noise.classes.at(logits, column).unsqueeze(1)
        own_z = (
            torch.where(z[:, column : column + 1] == noise.mask, alone.mask, z[:, column : column + 1])
            if (noise.mask is not None)
            else z[:, column : column + 1]
        )
        total += alone.loss(alone.predicted(part, own_z, times), x[:, column : column + 1], own_z, times)
    torch.testing.assert_close(noise.loss(used, x, z, times), total, rtol=1e-7, atol=1e-9)
    prior = sum((alone.prior_term(x[:, :1]) for alone in each if alone is not None), torch.zeros(num))
    torch.testing.assert_close(noise.prior_term(x).float(), prior.float())


@pytest.mark.parametrize(("name", "t"), CASES)
def test_noise_never_leaves_the_classes_of_a_column(name: str, t: float) -> None:
    noise = NOISES[name](COLUMNS)
    generator = torch.Generator().manual_seed(0)
    x = noise.classes.uniform((4000, len(COLUMNS)), torch.device("cpu"), generator)
    logits = torch.randn(4000, sum(COLUMNS), generator=generator)
    prior = noise.draw_prior((4000, len(COLUMNS)), torch.device("cpu"), generator=generator)
    z = noise.corrupt(x, torch.full((4000,), t), generator=generator)
    back = noise.step(logits, z, t, 0, generator=generator)
    for found in (prior, z, back, noise.redraw(logits, t, generator=generator)):
        inside = found < torch.tensor(COLUMNS)
        assert bool((inside if noise.mask is None else inside | (found == noise.mask)).all())
    assert bool((back < torch.tensor(COLUMNS)).all())


@pytest.mark.parametrize("name", [*NOISES, "count"])
def test_noise_with_ends_is_that_of_the_positions_before_them(name: str) -> None:
    make = {**NOISES, "count": MaskCountNoise}[name]
    noise, plain = make(3, ends=True), make(3)
    times = torch.full((6,), 0.5 if noise.num_steps is None else 3)
    generator = torch.Generator().manual_seed(0)
    for n in range(1, 5):
        x = torch.randint(3, (6, n), generator=generator)
        padded = torch.cat([x, torch.full((6, 4 - n), 3)], dim=1)
        z = noise.corrupt(padded, times, generator=generator)
        assert bool((z[:, n:] == 3).all())
        own = z[:, :n] if noise.mask is None else torch.where(z[:, :n] == noise.mask, plain.mask, z[:, :n])
        logits = torch.randn(6, 4, 3, dtype=torch.float64, generator=generator)
        torch.testing.assert_close(noise.loss(logits, padded, z, times), plain.loss(logits[:, :n], x, own, times))
        torch.testing.assert_close(noise.prior_term(padded), plain.prior_term(x))
        if name == "count":
            assert set((z == noise.mask).sum(1).tolist()) == {math.ceil(0.5 * n)}
            other = noise.complement(padded, z)
            assert bool((other[:, n:] == 3).all())
        back = noise.step(logits, z, float(times[0]) if noise.num_steps is None else 3, 0, generator=generator)
        assert bool((back[:, n:] == 3).all())
        assert bool((back[:, :n] < 3).all())


# What each recipe takes besides plain arrays; all others take none of it.
TAKES = {
    "arm": {"columns", "ends", "labels"},
    "absorbing": {"columns", "ends", "labels"},
    "block": {"ends", "labels"},
    "uniform": {"columns", "ends", "labels"},
    "multinomial": {"columns", "ends", "labels"},
    "argmax-ar": {"labels"},
    "uniform-dequant-ar": {"labels"},
    "variational-dequant-ar": {"labels"},
    "chow-liu": {"columns"},
    "independent": {"columns"},
}


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if "sequences" in recipe.takes])
def test_what_a_recipe_does_not_take_is_refused_by_name(name: str) -> None:
    words = {"columns": "columns with numbers of classes of their own", "ends": "examples that end early"}
    for form in ("columns", "ends", "labels"):
        settings = configured(name).model
        if form in TAKES.get(name, set()):
            assert settings.build_for(SPECS[form]).labels == (SPECS[form].label_sizes)
            continue
        with pytest.raises(ValueError, match=words.get(form, form)):
            settings.build_for(SPECS[form])


def test_argmax_flows_are_given_labels() -> None:
    torch.manual_seed(0)
    config = with_settings(configured("argmax-ar"), {"density.net.width": 8, "density.channel_width": 4})
    model = config.model.build_for(SPECS["labels"]).eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    x = events_of("labels")
    scores = []
    for cond in (torch.tensor([0, 2]), torch.tensor([1, 0]), None):
        torch.manual_seed(1)
        scores.append(model.elbo(x, cond=None if cond is None else cond.expand(len(x), -1)))
    assert not torch.allclose(scores[0], scores[1])
    assert not torch.allclose(scores[0], scores[2])
    assert model.sample(5, cond=torch.tensor([0, 1])).shape == (5, L)


def test_a_process_of_ones_own_has_equal_classes() -> None:
    noise: NoiseProcess = UniformNoise(5, cosine_schedule(3))
    assert noise.classes.columns == ()
    assert noise.pad is None


@pytest.mark.parametrize("name", ["arm", "absorbing", "multinomial", "uniform", "chow-liu"])
def test_all_mass_of_a_diagonal_stays_there(name: str) -> None:
    """Two columns of 5 classes that are always equal."""
    x = np.random.default_rng(0).integers(0, 5, 2000)
    settings: dict[str, Any] = {} if name == "chow-liu" else {"steps": 300, "net.width": 32, "net.num_blocks": 2}
    if name in ("arm", "absorbing"):
        settings["net.num_heads"] = 2
    run = fit(name, pd.DataFrame({"a": x, "b": x}), progress=False, **settings)
    drawn = run.sample(1000)
    assert float((drawn["a"] == drawn["b"]).mean()) >= 0.99


@pytest.mark.parametrize("name", ["arm", "absorbing", "multinomial", "uniform"])
def test_a_thousand_binary_columns_train_without_nan(name: str) -> None:
    x = (np.random.default_rng(0).random((60, 1000)) < 0.3).astype(np.int64)
    settings: dict[str, Any] = {"steps": 3, "batch_size": 2, "net.width": 16, "net.num_blocks": 1, "net.conv": 0}
    if name in ("arm", "absorbing"):
        settings["net.num_heads"] = 1
    run = fit(name, x, progress=False, validate_examples=2, **settings)
    assert math.isfinite(run.score(num_examples=1, split="val").bits_per_dim)
    assert bool((run.sample(1) < 2).all())


@pytest.mark.parametrize("name", ["arm", "absorbing", "multinomial"])
def test_outputs_grow_with_the_sum_of_the_classes(name: str) -> None:
    """One column of 1,000 classes and 49 of two: a row of logits has 1,098 numbers, not 50,000."""
    sizes = (1000, *[2] * 49)
    model = unordinal_model(name, sizes)
    seen: list[int] = []
    for part in model.modules():
        if isinstance(part, PlaceHeads):
            part.register_forward_hook(lambda _module, _given, out: seen.append(out.numel()))
    x = torch.zeros(3, 50, dtype=torch.long)
    model.training_loss(x).sum().backward()
    assert seen
    assert max(seen) <= 2 * 3 * sum(sizes)  # absorbing noise has two masks of each row


def unordinal_model(name: str, sizes: tuple[int, ...]) -> CategoricalModel:
    settings: dict[str, Any] = {"order": "any"} if name == "arm" else {}
    return getattr(unordinal, name)(sizes, len(sizes), **settings)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, K - 1), max_size=L), min_size=1, max_size=6))
@torch.no_grad()
def test_nothing_after_an_end_changes_a_score(strings: list[list[int]]) -> None:
    """Examples are scored alike alone and among longer ones, with all positions after their ends and without them."""
    arm, absorbing = ENDED
    x = torch.tensor([[*string, *[K] * (L - len(string))] for string in strings])
    together = arm.elbo(x)
    torch.testing.assert_close(arm.elbo(arm.trimmed(x)), together)
    order = torch.tensor([1, 0, 2])
    assert absorbing.orders is not None
    of_order = absorbing.orders(x, order)
    for row, string in enumerate(strings):
        alone = torch.tensor([string or [K]])
        torch.testing.assert_close(arm.elbo(alone)[0], together[row])
        torch.testing.assert_close(absorbing.orders(x[row : row + 1], order)[0], of_order[row])
        if len(string) == 2:
            torch.testing.assert_close(absorbing.orders(alone, order[:2])[0], of_order[row])
