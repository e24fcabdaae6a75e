"""Inverting mixtures of logistics: iterations and time to 1e-9 in float64, against a bisection of the same bracket."""

import itertools
import sys
from functools import partial

import torch
from timing import interleaved, verdict
from torch import Tensor

from unordinal.numerics import mixture_logit, mixture_logit_inverse

TOLERANCE = 1e-9
BATCHES = (1, 768)  # as in autoregressive sampling, as in one coupling layer of one sequence of 256
# components, spread of their means, spread of their log-scales: like a fresh model's, a trained one's, and worse
CASES = ((4, 1.0, 0.5), (8, 3.0, 1.0), (27, 3.0, 1.0), (27, 5.0, 1.5), (64, 1.0, 0.5), (8, 10.0, 2.0))


def bisection(y: Tensor, *parameters: Tensor) -> tuple[Tensor, int]:
    """The middle of the bracket, again and again."""
    quantiles = parameters[1] + torch.exp(parameters[2]) * y.unsqueeze(-1)
    low, high = quantiles.amin(-1), quantiles.amax(-1)
    iterations = 0
    while bool((high - low > TOLERANCE * (1 + low.abs())).any()):
        middle = 0.5 * (low + high)
        is_left = mixture_logit(middle, *parameters)[0] <= y
        low, high = torch.where(is_left, middle, low), torch.where(is_left, high, middle)
        iterations += 1
    return 0.5 * (low + high), iterations


def main() -> int:
    most = 0
    for num, (components, spread, log_scale) in itertools.product(BATCHES, CASES):
        generator = torch.Generator().manual_seed(0)
        draws = torch.randn(3, num, components, generator=generator, dtype=torch.float64)
        parameters = (torch.log_softmax(draws[0], -1), spread * draws[1], log_scale * draws[2] - 1)
        y = 3 * torch.randn(num, generator=generator, dtype=torch.float64)
        v, iterations = mixture_logit_inverse(y, *parameters, tolerance=TOLERANCE)
        _, halvings = bisection(y, *parameters)
        error = float((mixture_logit(v, *parameters)[0] - y).abs().max())
        seconds = interleaved(
            {
                "ours": partial(mixture_logit_inverse, y, *parameters, tolerance=TOLERANCE),
                "bisection": partial(bisection, y, *parameters),
            },
            5,
        )
        print(
            f"{num:>3} numbers, {components:>2} components, means x {spread:g}, log-scales x {log_scale:g}: "
            f"{iterations} iterations ({halvings} halvings), error {error:.0e}, "
            f"{seconds['bisection'] / seconds['ours']:.1f} times as fast"
        )
        most = max(most, iterations)
    return 0 if verdict("most iterations to 1e-9", most, 15, at_least=False) else 1


if __name__ == "__main__":
    sys.exit(main())
