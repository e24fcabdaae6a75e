"""The cosine schedule, compared with its formula."""

import math

import pytest
import torch

from unordinal.diffusion.schedules import cosine_schedule


@pytest.mark.parametrize("num_steps", [1, 2, 100, 1000, 4000])
def test_cosine_equals_that_of_the_paper_except_for_the_floor(num_steps: int) -> None:
    log_alpha = cosine_schedule(num_steps)
    f = [math.cos((t / num_steps + 0.008) / 1.008 * math.pi / 2) for t in range(num_steps + 1)]
    expected = torch.tensor([v / f[0] for v in f], dtype=torch.float64)
    assert log_alpha.dtype == torch.float64
    assert log_alpha[0] == 0
    assert (log_alpha.diff() < 0).all()
    torch.testing.assert_close(log_alpha.exp()[:-1], expected[:-1], rtol=1e-10, atol=0)
    assert 0 < float(log_alpha[-1].exp()) < 0.05
    assert float(log_alpha.diff().min().exp()) == pytest.approx(math.sqrt(1e-3), rel=1e-9)


def test_no_steps_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one step, got 0"):
        cosine_schedule(0)
