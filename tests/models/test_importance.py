"""Models that are trained on importance weights: what they share."""

import pytest
import torch

from unordinal.flows.actnorm import ActNorm
from unordinal.flows.bijection import Chain
from unordinal.flows.density import Flow, StandardLogistic, StandardNormal
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.importance import START_EXAMPLES
from unordinal.progress import Watcher, watching
from unordinal.surjections.cartesian import BinaryProduct


def test_actnorm_starts_from_the_first_batch_alone() -> None:
    """Its outputs on the batch that it began with have mean 0 and variance 1 in each channel."""
    norm = ActNorm(2)
    flow = Flow(Chain([norm]), StandardNormal((300, 2)))
    model = ArgmaxFlow(BinaryProduct(4, StandardLogistic((300, 2))), flow, event_shape=(300,))
    x = torch.randint(4, (START_EXAMPLES, 300), generator=torch.Generator().manual_seed(0))
    seen: list[torch.Tensor] = []
    handle = norm.register_forward_hook(lambda _, __, out: seen.append(out[0]))
    torch.manual_seed(0)
    model.eval().hooks.initialise(x)
    handle.remove()
    assert not model.training
    rows = seen[0].detach().reshape(-1, 2)
    torch.testing.assert_close(rows.mean(0), torch.zeros(2), rtol=0, atol=1e-4)
    torch.testing.assert_close(rows.var(0, correction=0), torch.ones(2), rtol=1e-3, atol=0)
    before = norm.shift.detach().clone()
    model.train().training_loss(x)
    assert torch.equal(norm.shift, before)  # and never again


def test_classes_are_checked_in_scores_and_not_in_the_loss() -> None:
    model = ArgmaxFlow(BinaryProduct(3, StandardLogistic((2, 2))), StandardNormal((2, 2)), event_shape=(2,))
    for score in (model.elbo, model.log_weight):
        with pytest.raises(ValueError, match="class 3, but num_classes=3"):
            score(torch.full((1, 2), 3))
    assert model.training_loss(torch.full((1, 2), 3)).shape == (1,)


def test_a_flow_without_steps_tells_of_its_samples_at_once() -> None:
    model = ArgmaxFlow(BinaryProduct(4, StandardLogistic((2, 2))), StandardNormal((2, 2)), event_shape=(2,))
    told: list[float] = []
    with watching(Watcher(told.append)):
        model.sample(7)
    assert told == [7]
