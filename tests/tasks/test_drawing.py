"""Samples in batches: the same as the model's own, and what is told of how they came about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from contracts import TableNet

from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.diffusion.absorbing import AbsorbingNoise, MaskCountNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.schedules import Schedule, cosine, cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.flows.density import StandardLogistic, StandardNormal
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.diffusion import Diffusion
from unordinal.nets.classes import ClassTransformer
from unordinal.nets.sequence import DenoisingTransformer
from unordinal.parallel.randomness import generator_of
from unordinal.progress import Advance
from unordinal.surjections.cartesian import BinaryProduct
from unordinal.tasks.asking import MOST_STEPS, Sample, chosen_steps, model_settings
from unordinal.tasks.drawing import draw, sample

K, L, T = 3, 2, 4


def diffusion() -> Diffusion:
    return Diffusion(TableNet(K, L, T), noise=UniformNoise(K, cosine_schedule(T)), event_shape=(L,))


def coins() -> ArgmaxFlow:
    """Three classes in two bits, all codes alike: a quarter of them means nothing."""
    model = ArgmaxFlow(BinaryProduct(3, StandardLogistic((5, 2))), StandardNormal((5, 2)), event_shape=(5,))
    model.register_parameter("any", torch.nn.Parameter(torch.zeros(1)))  # a device to live on
    return model


@pytest.mark.parametrize("steps", [None, 2])
def test_batches_are_the_models_own_samples_one_after_another(steps: int | None) -> None:
    model = diffusion()
    drawn = draw(model, 20, seed=3, batch_size=8, steps=steps)
    generator = generator_of(3)
    assert torch.equal(drawn.x, torch.cat([model.sample(n, generator=generator, steps=steps) for n in (8, 8, 4)]))
    assert torch.equal(drawn.x, draw(model, 20, seed=3, batch_size=8, steps=steps).x)
    assert not torch.equal(drawn.x, draw(model, 20, seed=4, batch_size=8, steps=steps).x)
    assert drawn.network_calls == (steps or T)
    assert drawn.chain == []
    assert drawn.num_invalid == 0
    assert drawn.seconds > 0


def test_the_chain_is_that_of_the_first_sample_and_changes_nothing() -> None:
    model = diffusion()
    plain, drawn = draw(model, 5, seed=1, batch_size=2), draw(model, 5, seed=1, batch_size=2, with_chain=True)
    assert torch.equal(plain.x, drawn.x)
    expected = list(model.denoiser.chain(2, generator=generator_of(1)))
    assert [t for t, _ in drawn.chain] == [t for t, _ in expected] == [4, 3, 2, 1, 0]
    for (_, x), (_, z) in zip(drawn.chain, expected, strict=True):
        assert torch.equal(x, z[0])
    assert torch.equal(drawn.chain[-1][1], drawn.x[0])


def test_codes_that_mean_no_class_are_counted() -> None:
    drawn = draw(coins(), 400)
    assert drawn.num_invalid == int((drawn.x == 3).sum())
    assert abs(drawn.num_invalid / 2000 - 0.25) < 4.5 * (0.25 * 0.75 / 2000) ** 0.5
    assert drawn.network_calls is None  # it does not count them


@pytest.mark.parametrize("model", [diffusion(), coins()], ids=lambda model: type(model).__name__)
def test_progress_adds_up_to_the_number_of_samples(model: Diffusion | ArgmaxFlow) -> None:
    told: list[float] = []
    asked: list[tuple[str, float | None]] = []

    @contextmanager
    def progress(what: str, total: float | None) -> Iterator[Advance]:
        asked.append((what, total))
        yield told.append

    draw(model, 20, batch_size=8, progress=progress)
    assert asked == [("Sampling", 20)]
    assert sum(told) == pytest.approx(20)
    assert len(told) > 1


def test_what_a_model_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match="ArgmaxFlow draws a sample without a chain of steps"):
        draw(coins(), 2, with_chain=True)
    with pytest.raises(ValueError, match="sampling from ArgmaxFlow has no setting steps"):
        draw(coins(), 2, steps=4)
    with pytest.raises(ValueError, match="`steps` must be between 1 and 4"):
        draw(diffusion(), 2, steps=5)


def masked(length: int) -> Diffusion:
    net = DenoisingTransformer(K, width=8, num_blocks=1, num_heads=1, num_input_classes=K + 1)
    return Diffusion(net, noise=MaskCountNoise(K), event_shape=(length,))


def spec_of(length: int = L, num_classes: int = K) -> DataSpec:
    return DataSpec("letters", num_classes, (length,), Vocabulary("chars", "abcdefg"[:num_classes]))


def test_a_diffusion_takes_at_most_256_steps_unless_told() -> None:
    assert [chosen_steps(None, whole) for whole in (20, 256, 257, 4000, None)] == [20, 256, 256, 256, 256]
    assert chosen_steps("all", 4000) == 4000
    assert chosen_steps(7, 4000) == 7
    with pytest.raises(ValueError, match="in continuous time give a number"):
        chosen_steps("all", None)


@pytest.mark.parametrize("length", [20, 256, 300])
def test_known_positions_and_lengths_work_with_the_default_steps(length: int) -> None:
    """With more than 256 positions the default is 256 calls; with few free ones it is one call for each of them."""
    model, spec = masked(length), spec_of(length)
    for free in (1, 19, length):
        known = torch.zeros(length, dtype=torch.long)
        known[torch.randperm(length)[:free]] = -1
        for given in (known, known.expand(2, length), known.tolist(), known.numpy()):
            drawn = sample(model, spec, Sample(2, known=given))
            assert drawn.steps == min(free, MOST_STEPS)
            assert bool((drawn.x[:, known >= 0] == 0).all())
            assert int(drawn.x.max()) < K
    for other in (1, 7, 280):
        drawn = sample(model, spec, Sample(2, length=other))
        assert drawn.x.shape == (2, other)
        assert drawn.steps == min(other, MOST_STEPS)
    assert drawn.network_calls == 256


def test_the_sample_with_the_most_free_positions_decides_the_steps() -> None:
    known = torch.zeros(2, 12, dtype=torch.long)
    known[0, :3], known[1, :5] = -1, -1
    drawn = sample(masked(12), spec_of(12), Sample(2, known=known))
    assert drawn.steps == 5
    assert bool((drawn.x[:, 5:] == 0).all())
    assert bool((drawn.x[0, 3:] == 0).all())


@pytest.mark.parametrize("sampler", ["ancestral", "corrected"])
@pytest.mark.parametrize("length", [6, 256])
def test_samplers_without_a_number_of_calls_take_256_in_continuous_time(sampler: Any, length: int) -> None:
    model = masked(length)
    drawn = sample(model, spec_of(length), Sample(2, sampler=sampler))
    assert drawn.steps == MOST_STEPS
    assert drawn.whole_steps is None
    assert int(drawn.x.max()) < K
    with pytest.raises(ValueError, match="in continuous time give a number"):
        sample(model, spec_of(length), Sample(2, sampler=sampler, steps="all"))


def test_steps_are_all_or_a_number() -> None:
    assert sample(masked(300), spec_of(300), Sample(1, steps="all")).network_calls == 300
    assert sample(masked(300), spec_of(300), Sample(1, steps=3)).network_calls == 3
    stepped = Diffusion(TableNet(K, L, T), noise=UniformNoise(K, cosine_schedule(300)), event_shape=(L,))
    assert sample(stepped, spec_of(), Sample(1)).network_calls == 256
    assert sample(stepped, spec_of(), Sample(1, steps="all")).network_calls == 300
    discrete = Diffusion(
        TableNet(K, L, 1, num_input_classes=K + 1), noise=AbsorbingNoise(K, Schedule(cosine, 9)), event_shape=(L,)
    )
    drawn = sample(discrete, spec_of(), Sample(1, sampler="corrected", steps="all"))
    assert drawn.steps == drawn.whole_steps == 17


def test_known_positions_of_each_sample_are_cut_into_batches() -> None:
    known = torch.full((10, 8), -1)
    known[:, 0] = torch.arange(10) % K
    drawn = sample(masked(8), spec_of(8), Sample(10, known=known, batch_size=4))
    assert drawn.x[:, 0].tolist() == known[:, 0].tolist()


def test_a_request_is_the_models_own_sample() -> None:
    model = masked(8)
    asked = Sample(3, steps=4, sampler="entropy", temperature=0.5, top_p=0.9, greedy_tail=0.25, seed=5)
    settings: dict[str, Any] = {"sampler": "entropy", "temperature": 0.5, "top_p": 0.9, "greedy_tail": 0.25}
    expected = model.sample(3, steps=4, generator=generator_of(5), **settings)
    assert torch.equal(sample(model, spec_of(8), asked).x, expected)
    assert model_settings(model, spec_of(8), asked) == {"steps": 4, **settings}


def arm() -> AutoregressiveModel:
    torch.manual_seed(0)
    return AutoregressiveModel(ClassTransformer(K, width=8, num_blocks=1, num_heads=1), event_shape=(6,))


@pytest.mark.parametrize("prompt", ["cab", "CAB", [2, 0, 1], np.array([2, 0, 1]), torch.tensor([2, 0, 1])])
def test_a_prompt_is_text_or_classes(prompt: Any) -> None:
    drawn = sample(arm(), spec_of(6), Sample(4, prompt=prompt))
    assert drawn.x[:, :3].tolist() == [[2, 0, 1]] * 4
    with pytest.raises(ValueError, match="`prompt` as text needs a model of text"):
        sample(arm(), DataSpec("codes", K, (6,)), Sample(prompt="cab"))


def test_tiny_temperatures_take_the_likeliest_class() -> None:
    for model in (arm(), masked(6)):
        for p in model.parameters():
            torch.nn.init.normal_(p, generator=torch.Generator().manual_seed(p.numel()))
        sampler = None if isinstance(model, AutoregressiveModel) else "entropy"
        cold = [sample(model, spec_of(6), Sample(5, temperature=t, sampler=sampler)).x for t in (0.0, 1e-40)]  # type: ignore[arg-type]
        assert torch.equal(cold[0], cold[1])
        assert len(cold[0].unique(dim=0)) == 1


@pytest.mark.parametrize(
    ("model", "asked", "message"),
    [
        (arm(), {"steps": 3}, "`steps` is for diffusions, .* and this model is not one of them"),
        (arm(), {"sampler": "spread"}, "`sampler` is for diffusions"),
        (arm(), {"top_p": 0.5}, "`top_p` is for diffusions"),
        (arm(), {"greedy_tail": 0.5}, "`greedy_tail` is for diffusions"),
        (coins(), {"temperature": 0.5}, "`temperature` is for diffusions and autoregressive models"),
        (coins(), {"known": [0, -1, -1, -1, -1]}, "`known` is for diffusions and autoregressive models"),
        (masked(6), {"prompt": "a"}, "`prompt` is for autoregressive models"),
        (masked(6), {"height": 3}, "`height` is for maps; the examples of letters are sequences, give `length`"),
        (masked(6), {"known": [[0, -1], [0]]}, "`known` must be .* lists of equal length, got list"),
        (masked(6), {"known": [0, -1]}, r"`known` must hold integers of shape \(6,\)"),
        (arm(), {"prompt": [[0], [0, 1]]}, "`prompt` must be .* lists of equal length"),
    ],
)
def test_settings_that_a_model_has_no_use_for_are_refused(model: Any, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        sample(model, spec_of(model.event_shape[0]), Sample(2, **asked))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"num": 0}, "`num` must be a whole number of at least 1, got 0"),
        ({"num": True}, "`num` must be a whole number of at least 1, got True"),
        ({"steps": 0}, "`steps` must be a whole number of at least 1 or all, got 0"),
        ({"steps": "al"}, "`steps` must be a whole number of at least 1 or all, got 'al'"),
        ({"temperature": -1}, "`temperature` must be a number of at least 0, got -1"),
        ({"temperature": float("inf")}, "`temperature` must be a number of at least 0, got inf"),
        ({"top_p": 0}, "`top_p` must be a number above 0 and of at most 1, got 0"),
        ({"greedy_tail": 1.5}, "`greedy_tail` must be a number between 0 and 1, got 1.5"),
        ({"sampler": "entropi"}, "`sampler` must be one of ancestral, spread"),
        ({"length": 0}, "`length` must be a whole number of at least 1, got 0"),
        ({"particles": 0}, "`particles` must be a whole number of at least 1"),
        ({"invalid": "drop"}, "`invalid` must be one of keep, resample"),
        ({"seed": -1}, "`seed` must be a whole number between 0 and"),
    ],
)
def test_impossible_requests_are_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sample(**asked)


def test_maps_have_a_height_and_a_width() -> None:
    net = TableNet(2, 4, 0, num_input_classes=3)

    class Flat(TableNet):
        def forward(self, z: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
            return torch.zeros(*z.shape, 2) + net.table.sum() * 0

    model = Diffusion(Flat(2, 4, 0, num_input_classes=3), noise=MaskCountNoise(2), event_shape=(2, 2))
    spec = DataSpec("maps", 2, (2, 2))
    assert sample(model, spec, Sample(1, height=3)).x.shape == (1, 3, 2)
    assert sample(model, spec, Sample(1, height=3, width=5)).x.shape == (1, 3, 5)
    drawn = sample(model, spec, Sample(1, known=[[0, -1], [-1, 1]]))
    assert drawn.steps == 2
    assert (int(drawn.x[0, 0, 0]), int(drawn.x[0, 1, 1])) == (0, 1)
    with pytest.raises(ValueError, match="`length` is for sequences; give `height` and `width` for maps"):
        sample(model, spec, Sample(1, length=3))


def test_uniform_noise_in_continuous_time_keeps_known_positions() -> None:
    model = Diffusion(TableNet(K, L, 0), noise=ContinuousUniformNoise(K), event_shape=(L,))
    drawn = sample(model, spec_of(), Sample(5, known=[-1, 2]))
    assert drawn.x[:, 1].tolist() == [2] * 5
    assert drawn.steps == MOST_STEPS


def test_batches_with_fewer_free_positions_take_fewer_steps_by_default() -> None:
    known = torch.full((6, 8), -1)
    known[2:, :5] = 1  # three free positions in the second and third batch, eight in the first
    drawn = sample(masked(8), spec_of(8), Sample(6, known=known, batch_size=2))
    assert bool((drawn.x[2:, :5] == 1).all())
    with pytest.raises(ValueError, match="`steps` must be between 1 and 3"):
        sample(masked(8), spec_of(8), Sample(6, known=known, batch_size=2, steps=5))
