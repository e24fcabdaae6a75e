"""Samples in batches: the same as the model's own, and what is told of how they came about."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from contracts import TableNet

from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.flows.density import StandardLogistic, StandardNormal
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.diffusion import Diffusion
from unordinal.progress import Advance
from unordinal.surjections.cartesian import BinaryProduct
from unordinal.tasks.drawing import draw

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
    generator = torch.Generator().manual_seed(3)
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
    expected = list(model.chain(2, generator=torch.Generator().manual_seed(1)))
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
