"""Activation normalisation is initialised from its first batch."""

import torch

from unordinal.flows.actnorm import ActNorm


def test_actnorm_standardises_its_first_batch_and_only_that() -> None:
    norm = ActNorm(2)
    v = torch.randn(64, 5, 2) * torch.tensor([3.0, 0.1]) + torch.tensor([1.0, -2.0])
    norm.eval()
    assert torch.equal(norm(v)[0], v)  # a batch in evaluation mode does not initialise it
    norm.train()
    z, _ = norm(v)
    torch.testing.assert_close(z.flatten(0, 1).mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(z.flatten(0, 1).std(0, correction=0), torch.ones(2), atol=1e-5, rtol=0)
    before = norm.log_scale.clone()
    norm(7 * v)
    assert torch.equal(norm.log_scale, before)
    norm = ActNorm(2).train()
    norm(torch.ones(4, 3, 2))
    assert bool(torch.isfinite(norm.log_scale).all())
