"""The part of the loss of uniform noise that reads all classes, with a backward pass that saves memory."""

from typing import Any

import torch
from torch import Tensor


class ClassTerms(torch.autograd.Function):
    """log r_x, log r_z and sum_k log1p(ratio r_k) for r = softmax(logits): (B, *D, K) -> three (B, *D).

    This is the only part of the loss that reads all K classes, and its backward pass is written by hand to save memory.
    The only (B, *D, K) tensor that it keeps is the logits, which the last layer of the network holds anyway. The
    backward pass makes two tensors of this size, one of which is the result.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ratio: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        most = logits.amax(dim=-1, keepdim=True)
        share = (logits - most).exp_()  # of the largest; the one tensor of this size
        total = share.sum(dim=-1)
        sum_log1p = share.mul_((ratio / total).unsqueeze(-1)).log1p_().sum(dim=-1)
        log_norm = most.squeeze(-1) + total.log()
        ctx.save_for_backward(logits, log_norm, (log_norm - ratio.log()).unsqueeze(-1), x, z)
        log_r_x, log_r_z = (logits.gather(-1, c.unsqueeze(-1)).squeeze(-1) - log_norm for c in (x, z))
        return log_r_x, log_r_z, sum_log1p

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_x: Tensor, grad_z: Tensor, grad_sum: Tensor) -> tuple[Tensor, None, None, None]:
        logits, log_norm, log_odds, x, z = ctx.saved_tensors
        share = (logits - log_odds).sigmoid_()  # ratio r_k / (1 + ratio r_k)
        weight = grad_x + grad_z + grad_sum * share.sum(dim=-1)
        grad = (logits - log_norm.unsqueeze(-1)).exp_().mul_(-weight.unsqueeze(-1))
        grad.addcmul_(share, grad_sum.unsqueeze(-1))
        grad.scatter_add_(-1, x.unsqueeze(-1), grad_x.unsqueeze(-1))
        grad.scatter_add_(-1, z.unsqueeze(-1), grad_z.unsqueeze(-1))
        return grad, None, None, None
