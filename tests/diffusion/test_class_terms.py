"""The one part of the loss that reads all classes: its values and its gradient."""

import torch
from torch import Tensor

from unordinal.diffusion.class_terms import ClassTerms


def inputs() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    return logits, torch.rand(2, 3, dtype=torch.float64) + 0.1, torch.randint(4, (2, 3)), torch.randint(4, (2, 3))


def test_values_are_those_of_the_definition() -> None:
    logits, ratio, x, z = inputs()
    log_r = torch.log_softmax(logits, dim=-1)
    log_r_x, log_r_z, total = ClassTerms.apply(logits, ratio, x, z)
    torch.testing.assert_close(log_r_x, log_r.gather(-1, x.unsqueeze(-1)).squeeze(-1))
    torch.testing.assert_close(log_r_z, log_r.gather(-1, z.unsqueeze(-1)).squeeze(-1))
    torch.testing.assert_close(total, torch.log1p(ratio.unsqueeze(-1) * log_r.exp()).sum(-1))


def test_the_gradient_is_the_numerical_one() -> None:
    logits, ratio, x, z = inputs()
    assert torch.autograd.gradcheck(lambda values: ClassTerms.apply(values, ratio, x, z), (logits,))
