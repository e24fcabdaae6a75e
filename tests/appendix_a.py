"""Appendix A of the paper, transcribed: multinomial diffusion in log space with one-hot tensors, the class axis at 1.

Only what the listing leaves open is filled in: times are 0-based as there (t = 0 is the first noising step) and `t`
is a batch of them. The listing's 1e-40 is subnormal in float32, where 1e-30 stands in for it.
"""

import numpy as np
import torch
from torch import Tensor


def log_add_exp(a: Tensor, b: Tensor) -> Tensor:
    maximum = torch.max(a, b)
    return maximum + torch.log(torch.exp(a - maximum) + torch.exp(b - maximum))


def log_sum_exp(x: Tensor) -> Tensor:
    maximum = torch.max(x, dim=1, keepdim=True).values
    return maximum + torch.log(torch.exp(x - maximum).sum(dim=1, keepdim=True))


def index_to_log_onehot(x: Tensor, num_classes: int, dtype: torch.dtype) -> Tensor:
    onehot = torch.nn.functional.one_hot(x, num_classes).movedim(-1, 1).to(dtype)
    return torch.log(onehot.clamp(min=1e-40 if dtype == torch.float64 else 1e-30))


def log_1_min_a(a: np.ndarray) -> np.ndarray:
    return np.log(1 - np.exp(a) + 1e-40)


class AppendixA:
    def __init__(self, num_classes: int, alphas: np.ndarray, dtype: torch.dtype):
        self.num_classes, self.dtype = num_classes, dtype
        log_alpha = np.log(alphas)
        log_cumprod_alpha = np.cumsum(log_alpha)
        self.log_alpha = torch.tensor(log_alpha, dtype=dtype)
        self.log_1_min_alpha = torch.tensor(log_1_min_a(log_alpha), dtype=dtype)
        self.log_cumprod_alpha = torch.tensor(log_cumprod_alpha, dtype=dtype)
        self.log_1_min_cumprod_alpha = torch.tensor(log_1_min_a(log_cumprod_alpha), dtype=dtype)

    def at(self, table: Tensor, t: Tensor, like: Tensor) -> Tensor:
        return table[t].reshape(-1, *([1] * (like.dim() - 1)))

    def q_pred_one_timestep(self, log_x_t: Tensor, t: Tensor) -> Tensor:
        return log_add_exp(
            log_x_t + self.at(self.log_alpha, t, log_x_t),
            self.at(self.log_1_min_alpha, t, log_x_t) - np.log(self.num_classes),
        )

    def q_pred(self, log_x0: Tensor, t: Tensor) -> Tensor:
        return log_add_exp(
            log_x0 + self.at(self.log_cumprod_alpha, t, log_x0),
            self.at(self.log_1_min_cumprod_alpha, t, log_x0) - np.log(self.num_classes),
        )

    def q_posterior(self, log_x0: Tensor, log_x_t: Tensor, t: Tensor) -> Tensor:
        is_first = (t == 0).reshape(-1, *([1] * (log_x0.dim() - 1)))
        log_probs_xtmin = torch.where(is_first, log_x0, self.q_pred(log_x0, (t - 1).clamp(min=0)))
        unnormed_logprobs = log_probs_xtmin + self.q_pred_one_timestep(log_x_t, t)
        return unnormed_logprobs - log_sum_exp(unnormed_logprobs)

    def categorical_kl(self, log_prob_a: Tensor, log_prob_b: Tensor) -> Tensor:
        return (log_prob_a.exp() * (log_prob_a - log_prob_b)).sum(dim=1)

    def compute_lt(self, logits: Tensor, x: Tensor, x_t: Tensor, t: Tensor) -> Tensor:
        """compute_Lt with p_pred's network output given as logits (B, *D, K): (B,) nats."""
        log_x0 = index_to_log_onehot(x, self.num_classes, self.dtype)
        log_x_t = index_to_log_onehot(x_t, self.num_classes, self.dtype)
        log_x_recon = torch.log_softmax(logits.movedim(-1, 1), dim=1)
        log_true_prob = self.q_posterior(log_x0, log_x_t, t)
        log_model_prob = self.q_posterior(log_x_recon, log_x_t, t)
        kl = self.categorical_kl(log_true_prob, log_model_prob)
        return kl.reshape(kl.shape[0], -1).sum(dim=1)
