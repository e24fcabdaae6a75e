"""Matrix products on the CPU: by oneDNN where torch's own take half of the processor.

The BLAS of torch on x86 is MKL, which uses AVX-512 on Intel's processors only. On AMD's, oneDNN, which torch brings
too, multiplies about twice as fast. Everything else, and every other device, number format or processor, is torch's own
product. The environment variable UNORDINAL_PRODUCTS says which to take: torch, onednn, or auto.
"""

import os
import platform
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unordinal.names import check_known

CHOICES = ("auto", "torch", "onednn")
LEAST_ROWS = 32  # with fewer rows MKL is as fast, unless the weight is large:
LARGE = 1 << 20  # numbers of a weight that comes from memory, which oneDNN reads twice as fast for a few rows


@lru_cache
def has_amd_avx512() -> bool:
    """Return whether this machine has a processor of AMD with AVX-512."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    info = Path("/proc/cpuinfo")
    return "AuthenticAMD" in (info.read_text() if info.is_file() else platform.processor())


@lru_cache
def uses_onednn(choice: str | None = None) -> bool:
    """Return whether products of this machine go through oneDNN, by the choice that the environment makes by default.

    >>> uses_onednn("torch")
    False
    """
    choice = choice or os.environ.get("UNORDINAL_PRODUCTS", "auto")
    check_known("choice of UNORDINAL_PRODUCTS", choice, CHOICES)
    product: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if choice == "torch" or product is None or not torch.backends.mkldnn.is_available():
        return False
    return choice == "onednn" or has_amd_avx512()


def suits(x: Tensor, weight: Tensor) -> bool:
    """Return whether a product of x (..., I) and a weight (O, I) may go through oneDNN."""
    return (
        weight.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and weight.numel() > 0
        and (x.numel() >= LEAST_ROWS * x.shape[-1] or (weight.numel() >= LARGE and x.numel() > 0))
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and {type(x), type(weight)} <= {Tensor, torch.nn.Parameter}
        and uses_onednn()
    )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x W^T + b, as `torch.nn.functional.linear` does: (..., I), (O, I), (O,) -> (..., O).

    >>> linear(torch.ones(2, 3), torch.ones(4, 3)).shape
    torch.Size([2, 4])
    """
    if not suits(x, weight):
        return F.linear(x, weight, bias)
    flat = x.reshape(-1, x.shape[-1])
    if torch.is_grad_enabled():
        out: Tensor = Product.apply(flat, weight, bias)
    else:
        out = multiplied(flat, weight, bias)
    return out.view(*x.shape[:-1], len(weight))


def multiplied(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the product by oneDNN, without a gradient: (N, I), (O, I), (O,) -> (N, O)."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product


def times_transposed(a: Tensor, b: Tensor) -> Tensor:
    """Return A B^T for each pair of matrices: (N, R, C), (N, S, C) -> (N, R, S), without a gradient.

    >>> times_transposed(torch.ones(2, 3, 4), torch.ones(2, 5, 4)).shape
    torch.Size([2, 3, 5])
    """
    if not len(a) or not suits(a[0], b[0]):
        return a @ b.mT
    return torch.stack([multiplied(one, other) for one, other in zip(a, b, strict=True)])


class Product(torch.autograd.Function):
    """The product by oneDNN with its gradient, which is made of the same products."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return multiplied(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            linear(gradient, weight.t()) if of_x else None,
            linear(gradient.t(), x.t()) if of_weight else None,
            gradient.sum(dim=0) if of_bias else None,
        )
