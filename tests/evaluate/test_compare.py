"""Two models on the same examples: paired differences against known ones."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.evaluate.compare import Compare, compare_models
from unordinal.model import CategoricalModel

L = 4


class Known(CategoricalModel):
    """Bits of each example as they stand in it: its first class, plus an offset and noise of its own."""

    def __init__(self, offset: float, noise: float = 0.0):
        super().__init__(10, (L,), is_exact=noise == 0)
        self.offset, self.noise = offset, noise

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.elbo(x)

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        bits = x[:, 0] + self.offset + self.noise * torch.randn(len(x), generator=generator)
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
    results = [compare_models(Known(0.0, 0.5), Known(0.0), split(), Compare(seed=seed)) for seed in range(60)]
    spread = np.std([r.difference for r in results], ddof=1)
    claimed = np.mean([r.standard_error for r in results if r.standard_error is not None])
    assert 0.75 < claimed / spread < 1.3
    assert spread == pytest.approx(0.5 / math.sqrt(4 * 200), rel=0.3)  # four draws of 200 examples
    assert sum(r.verdict == "they cannot be told apart" for r in results) > 45


def test_one_example_tells_nothing() -> None:
    result = compare_models(Known(0.0), Known(1.0), split(1))
    assert result.standard_error is None
    assert result.verdict == "they cannot be told apart"


def test_equal_noise_drops_out_with_the_same_seed() -> None:
    """Two models that draw the same numbers differ by their offset alone."""
    result = compare_models(Known(0.0, 0.5), Known(0.25, 0.5), split(), Compare(seed=3, repeats=2))
    assert result.difference == pytest.approx(0.25, abs=1e-5)
    assert result.standard_error == pytest.approx(0.0, abs=1e-5)
    assert result.kinds == ("elbo", "elbo")


def test_an_exact_likelihood_beside_a_bound_is_said() -> None:
    result = compare_models(Known(0.0), Known(1.0, 0.1), split(), Compare(num_examples=50))
    assert result.num_examples == 50
    assert result.verdict == "the first is better (of an exact likelihood and a bound, which may be loose)"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repeats": 0}, "`repeats` must be a whole number of at least 1, got 0"),
        ({"num_examples": 0}, "`num_examples` must be a whole number of at least 1"),
        ({"split": "exact"}, "`split` must be one of train, val, test"),
        ({"seed": 0.5}, "`seed` must be a whole number"),
    ],
)
def test_impossible_requests_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Compare(**settings)
