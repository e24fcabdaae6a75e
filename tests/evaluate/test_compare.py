"""Two models on the same examples: paired differences against known ones."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.evaluate.compare import compare_models
from unordinal.model import CategoricalModel

L = 4


class Known(CategoricalModel):
    """Bits of each example as they stand in it: its first class, plus an offset and noise of its own."""

    def __init__(self, offset: float, noise: float = 0.0):
        super().__init__(10, (L,), is_exact=noise == 0)
        self.offset, self.noise = offset, noise

    def training_loss(self, x: Tensor, draw: Tensor | None = None) -> Tensor:
        return -self.elbo(x)

    def elbo(self, x: Tensor) -> Tensor:
        bits = x[:, 0] + self.offset + self.noise * torch.randn(len(x))
        return -bits * L * math.log(2)

    def sample(self, num_samples: int, **settings: object) -> Tensor:
        return torch.zeros(num_samples, L, dtype=torch.long)


def split(num: int = 200) -> Split:
    return Split(np.random.default_rng(0).integers(0, 10, (num, L)).astype(np.uint8))


def test_what_the_examples_share_drops_out() -> None:
    """Examples differ by bits, the models by a hundredth: only a paired error can tell."""
    result = compare_models(Known(0.0), Known(-0.01), split())
    assert result.difference == pytest.approx(-0.01, abs=1e-6)
    assert result.standard_error == pytest.approx(0.0, abs=1e-6)
    assert result.verdict == "the second is better"
    assert compare_models(Known(-0.01), Known(0.0), split()).verdict == "the first is better"
    assert result.kinds == ("exact", "exact")
    assert result.num_examples == 200


def test_the_error_of_noisy_bounds_is_honest() -> None:
    results = [compare_models(Known(0.0, 0.5), Known(0.0), split(), seed=seed) for seed in range(60)]
    spread = np.std([r.difference for r in results], ddof=1)
    claimed = np.mean([r.standard_error for r in results if r.standard_error is not None])
    assert 0.75 < claimed / spread < 1.3
    assert spread == pytest.approx(0.5 / math.sqrt(4 * 200), rel=0.3)  # four draws of 200 examples
    assert sum(r.verdict == "they cannot be told apart" for r in results) > 45


def test_one_example_tells_nothing() -> None:
    result = compare_models(Known(0.0), Known(1.0), split(1))
    assert result.standard_error is None
    assert result.verdict == "they cannot be told apart"
