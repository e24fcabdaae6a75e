"""The uniform process against the paper's pseudo-code, against matrix products and against brute-force Bayes."""

import pytest
import torch
from appendix_a import AppendixA

from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise


def processes(num_classes: int, num_steps: int, dtype: torch.dtype) -> tuple[UniformNoise, AppendixA]:
    log_alpha = cosine_schedule(num_steps)
    alphas = log_alpha.diff().exp().numpy()
    return UniformNoise(num_classes, log_alpha), AppendixA(num_classes, alphas, dtype)


def times(num_steps: int) -> torch.Tensor:
    """First, second, last and some between."""
    spread = torch.linspace(1, num_steps, 9).round().long()
    return torch.cat([spread, torch.tensor([1, min(2, num_steps), max(num_steps - 1, 1)])])


def problem(num_classes: int, num_steps: int, dtype: torch.dtype, scale: float = 3.0):
    generator = torch.Generator().manual_seed(num_classes * 7 + num_steps)
    t = times(num_steps)
    x = torch.randint(num_classes, (len(t), 40), generator=generator)
    z = torch.where(
        torch.rand(x.shape, generator=generator) < 0.5, x, torch.randint(num_classes, x.shape, generator=generator)
    )
    logits = scale * torch.randn(*x.shape, num_classes, generator=generator, dtype=torch.float64)
    logits[:, ::3].scatter_add_(-1, x[:, ::3, None], torch.full_like(logits[:, ::3, :1], 9.0))  # some good predictions
    return t, x, z, logits.to(dtype)


@pytest.mark.parametrize("num_classes", [2, 27, 256])
@pytest.mark.parametrize("num_steps", [2, 100, 1000, 4000])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_loss_is_appendix_a(num_classes: int, num_steps: int, dtype: torch.dtype, tolerance: float) -> None:
    ours, theirs = processes(num_classes, num_steps, torch.float64)
    t, x, z, logits = problem(num_classes, num_steps, dtype)
    expected = theirs.compute_lt(logits.double(), x, z, t - 1) / x.shape[1]
    got = ours.loss(logits, x, z, t).double() / x.shape[1]
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
