"""Small numerical pieces that several models share."""

import torch
from torch import Tensor


def sum_except_batch(values: Tensor) -> Tensor:
    """Sum over every axis but the first: (B, *D) -> (B,)."""
    return values.reshape(values.shape[0], -1).sum(dim=1)


def expand_like(values: Tensor, reference: Tensor) -> Tensor:
    """Add trailing axes of size one so that (B,) broadcasts against (B, *D)."""
    return values.reshape(values.shape[0], *([1] * (reference.dim() - 1)))


def uniform(shape: tuple[int, ...] | torch.Size, device: torch.device, generator: torch.Generator | None) -> Tensor:
    """Uniform draws on [0, 1), fine enough for probabilities near zero.

    float32 uniforms are multiples of 2^-24, which is off by a percent at the probability of 5e-6 that a symbol
    changes in the first of 4000 diffusion steps; float64 is exact there. MPS has no float64.
    """
    dtype = torch.float32 if device.type == "mps" else torch.float64
    return torch.rand(shape, generator=generator, device=device, dtype=dtype)


def draw_categorical(logits: Tensor, generator: torch.Generator | None) -> Tensor:
    """One class per row from softmax(logits): (..., K) -> (...).

    An exponential race (the class of the smallest E_k / p_k): one pass and no cumulative sum, and unlike Gumbel noise
    from float32 uniforms it has no floor under small probabilities.
    """
    probs = torch.softmax(logits, dim=-1)
    race = torch.empty_like(probs).exponential_(generator=generator)
    return (probs / race).argmax(dim=-1)
