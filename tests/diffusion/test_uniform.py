"""Uniform noise, compared with the pseudo-code of the paper, with matrix products and with Bayes' rule."""

import pytest
import torch
from appendix_a import AppendixA, index_to_log_onehot
from torch import Tensor

from unordinal.diffusion.schedules import Schedule, cosine, cosine_schedule
from unordinal.diffusion.uniform import UniformNoise

SIZES = [(k, steps) for k in (2, 27, 256) for steps in (2, 100, 1000, 4000)]
PRECISIONS = [(torch.float64, 1e-9), (torch.float32, 1e-5)]


def processes(num_classes: int, num_steps: int) -> tuple[UniformNoise, AppendixA]:
    schedule = cosine_schedule(num_steps)
    alpha = schedule.log_alpha(torch.arange(num_steps + 1)).diff().exp()
    return UniformNoise(num_classes, schedule), AppendixA(num_classes, alpha.numpy(), torch.float64)


def problem(num_classes: int, num_steps: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Times (first, second, last and some between), data, noisy data and logits, some of which are good predictions."""
    generator = torch.Generator().manual_seed(num_classes * 7 + num_steps)
    spread = torch.linspace(1, num_steps, 9).round().long()
    t = torch.cat([spread, torch.tensor([1, min(2, num_steps), max(num_steps - 1, 1)])])
    x = torch.randint(num_classes, (len(t), 40), generator=generator)
    z = torch.randint(num_classes, x.shape, generator=generator)
    z = torch.where(torch.rand(x.shape, generator=generator) < 0.5, x, z)
    logits = 3 * torch.randn(*x.shape, num_classes, generator=generator, dtype=torch.float64)
    logits[:, ::3].scatter_add_(-1, x[:, ::3, None], torch.full_like(logits[:, ::3, :1], 9.0))
    return t, x, z, logits.to(dtype)


@pytest.mark.parametrize(("num_classes", "num_steps"), SIZES)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_loss_equals_appendix_a(num_classes: int, num_steps: int, dtype: torch.dtype, tolerance: float) -> None:
    ours, theirs = processes(num_classes, num_steps)
    t, x, z, logits = problem(num_classes, num_steps, dtype)
    for position in range(0, 40, 13):  # one position at a time, so that no error hides in a sum
        at = slice(position, position + 1)
        expected = theirs.compute_lt(logits[:, at].double(), x[:, at], z[:, at], t - 1)
        got = ours.loss(logits[:, at], x[:, at], z[:, at], t).double()
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
    expected = theirs.compute_lt(logits.double(), x, z, t - 1)
    torch.testing.assert_close(ours.loss(logits, x, z, t).double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("num_classes", "num_steps"), SIZES)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_marginal_and_posterior_equal_appendix_a(
    num_classes: int, num_steps: int, dtype: torch.dtype, tolerance: float
) -> None:
    ours, theirs = processes(num_classes, num_steps)
    t, x, z, logits = problem(num_classes, num_steps, dtype)
    log_x0, log_z = (index_to_log_onehot(c, num_classes, torch.float64) for c in (x, z))
    marginal = theirs.q_pred(log_x0, t - 1).movedim(1, -1).exp()
    torch.testing.assert_close(ours.marginal(x, t, dtype=dtype).double(), marginal, rtol=tolerance, atol=tolerance)
    log_r = torch.log_softmax(logits.double(), -1).movedim(-1, 1)
    onehot = torch.nn.functional.one_hot(x, num_classes).to(dtype)
    for log_start, r in ((log_x0, onehot), (log_r, torch.softmax(logits, -1))):
        expected = theirs.q_posterior(log_start, log_z, t - 1).movedim(1, -1).exp()
        got = ours.posterior(r, z, t, t - 1).double()
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


def test_loss_equals_the_kl_of_the_posteriors() -> None:
    ours, _ = processes(27, 100)
    t, x, z, logits = problem(27, 100, torch.float64)
    t = t.clamp(min=2)
    true = ours.posterior(torch.nn.functional.one_hot(x, 27).double(), z, t, t - 1)
    model = ours.posterior(torch.softmax(logits, -1), z, t, t - 1)
    kl = (true * (true.log() - model.log())).sum((-1, -2))
    torch.testing.assert_close(ours.loss(logits, x, z, t), kl, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("num_classes", [2, 5])
def test_one_step_matrices_multiply_up_to_the_marginal(num_classes: int) -> None:
    noise = UniformNoise(num_classes, cosine_schedule(20))
    x = torch.arange(num_classes).unsqueeze(0)
    product = torch.eye(num_classes, dtype=torch.float64)
    for t in range(1, 21):
        product = product @ one_step_matrix(noise, t - 1, t)
        torch.testing.assert_close(noise.marginal(x, torch.tensor([t]))[0], product, rtol=1e-12, atol=1e-14)


def one_step_matrix(noise: UniformNoise, s: int, t: int) -> Tensor:
    """q(x_t | x_s) for s = t - 1 as the paper defines it (eq:diff_categorical_forward), rows x_s."""
    k = noise.num_classes
    alpha = float(noise.schedule.log_alpha(torch.tensor([s, t])).diff().exp())
    return alpha * torch.eye(k, dtype=torch.float64) + (1 - alpha) / k


@pytest.mark.parametrize("num_classes", [2, 4])
def test_posterior_follows_bayes_rule_for_every_pair_of_times(num_classes: int) -> None:
    num_steps = 7
    noise = UniformNoise(num_classes, cosine_schedule(num_steps))
    x, z = (c.flatten().unsqueeze(1) for c in torch.meshgrid(*2 * [torch.arange(num_classes)], indexing="ij"))
    onehot = torch.nn.functional.one_hot(x, num_classes).double()
    ones = torch.ones(len(x), dtype=torch.long)
    for t in range(1, num_steps + 1):
        for s in range(t):
            transition = torch.eye(num_classes, dtype=torch.float64)
            for u in range(s + 1, t + 1):
                transition = transition @ one_step_matrix(noise, u - 1, u)
            start = torch.eye(num_classes, dtype=torch.float64)
            for u in range(1, s + 1):
                start = start @ one_step_matrix(noise, u - 1, u)
            joint = start[x.squeeze(1)] * transition[:, z.squeeze(1)].T  # q(x_s | x_0) q(x_t | x_s)
            expected = joint / joint.sum(-1, keepdim=True)
            got = noise.posterior(onehot, z, ones * t, ones * s).squeeze(1)
            torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)


def test_prior_kl_is_the_sum_over_classes() -> None:
    noise = UniformNoise(27, cosine_schedule(100))
    q = noise.marginal(torch.zeros(1, 1, dtype=torch.long), torch.tensor([100])).flatten()
    assert noise.prior_kl() == pytest.approx(float((q * (q * 27).log()).sum()), rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.0, 50.0])
def test_gradients_are_finite_at_extreme_logits(dtype: torch.dtype, scale: float) -> None:
    noise = UniformNoise(256, cosine_schedule(4000))
    generator = torch.Generator().manual_seed(0)
    t = torch.tensor([1, 2, 3, 2000, 3999, 4000])
    x = torch.randint(256, (6, 64), generator=generator)
    z = torch.where(torch.rand(x.shape, generator=generator) < 0.5, x, torch.randint(256, x.shape, generator=generator))
    sign = torch.randint(0, 2, (6, 64, 256), generator=generator) * 2 - 1
    logits = (scale * sign).to(dtype).requires_grad_()
    loss = noise.loss(logits, x, z, t)
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert logits.grad.abs().sum() > 0


@pytest.mark.parametrize("t", [1, 2, 60, 100])
def test_gradient_of_the_loss_equals_the_numerical_one(t: int) -> None:
    noise = UniformNoise(5, cosine_schedule(100))
    generator = torch.Generator().manual_seed(t)
    x, z = torch.randint(5, (2, 3), generator=generator), torch.randint(5, (2, 3), generator=generator)
    z[0] = x[0]
    logits = torch.randn(2, 3, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: noise.loss(v, x, z, torch.tensor([t, t])), (logits,), atol=1e-6)


def test_corrupt_follows_the_marginal() -> None:
    noise = UniformNoise(3, cosine_schedule(10))
    num = 200_000
    x = torch.full((1, num), 2)
    for t in (1, 4, 10):
        z = noise.corrupt(x, torch.tensor([t]), generator=torch.Generator().manual_seed(t))
        expected = noise.marginal(x[:, :1], torch.tensor([t])).flatten()
        got = torch.bincount(z.flatten(), minlength=3) / num
        error = (expected * (1 - expected) / num).sqrt()
        assert ((got - expected).abs() < 4.5 * error).all(), (t, got, expected)


@pytest.mark.parametrize(("t", "s"), [(1, 0), (4, 3), (10, 2), (10, 0)])
def test_step_follows_the_posterior(t: int, s: int) -> None:
    noise = UniformNoise(4, cosine_schedule(10))
    num = 100_000
    logits = torch.tensor([0.3, -1.0, 1.2, 0.0], dtype=torch.float64)
    for start in (0, 2):
        z = torch.full((1, num), start)
        got = noise.step(logits.expand(1, num, 4), z, t, s, generator=torch.Generator().manual_seed(s))
        r = torch.softmax(logits, -1).reshape(1, 1, 4)
        expected = noise.posterior(r, z[:, :1], torch.tensor([t]), torch.tensor([s])).flatten()
        frequency = torch.bincount(got.flatten(), minlength=4) / num
        error = (expected * (1 - expected) / num).sqrt().clamp(min=1e-12)
        assert ((frequency - expected).abs() < 4.5 * error).all(), (frequency, expected)


def test_log_reverse_is_the_posterior() -> None:
    noise = UniformNoise(4, cosine_schedule(10))
    logits = torch.randn(1, 1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    z = torch.tensor([[1]])
    for t, s in ((1, 0), (5, 4), (9, 2)):
        expected = noise.posterior(torch.softmax(logits, -1), z, torch.tensor([t]), torch.tensor([s])).flatten().log()
        got = torch.cat([noise.log_reverse(logits, z, torch.tensor([[k]]), t, s) for k in range(4)])
        torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


def test_the_loss_is_below_zero_only_by_rounding() -> None:
    """All terms are at least 0, but in float32 a perfect prediction may give a little less than 0 by rounding."""
    noise = UniformNoise(27, cosine_schedule(1000))
    t, x, z, logits = problem(27, 1000, torch.float32)
    perfect = 30.0 * torch.nn.functional.one_hot(x, 27).float()
    for prediction in (perfect, logits):
        assert float(noise.loss(prediction, x, z, t).min()) > -1e-5


def test_an_unknown_output_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown output 'denoisr'; did you mean denoiser"):
        UniformNoise(3, cosine_schedule(4), output="denoisr")


def test_uniform_noise_in_continuous_time_is_another_class() -> None:
    for output in ("leave-one-out", "denoiser"):
        with pytest.raises(ValueError, match="use `ContinuousUniformNoise` for continuous time"):
            UniformNoise(3, Schedule(cosine), output=output)
