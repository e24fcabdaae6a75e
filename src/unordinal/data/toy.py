"""Toy data with exactly known probabilities."""

import hashlib
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from unordinal.data.source import Source
from unordinal.data.spec import DataSpec
from unordinal.data.splits import Data, cut
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Progress, silent

NUM_CLASSES = 91
RADIUS, DEVIATION, CLIP, STRETCH, OFFSET = 2.0, 0.1, 2.25, 20, 45
SIZES = (2_000_000, 10_000, 10_000)  # train, val, test
SEED = 8


def centres() -> np.ndarray:
    """Return the means of the eight Gaussians: (8, 2)."""
    angles = np.arange(8) * math.pi / 4
    return RADIUS * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def eight_gaussians_pmf() -> np.ndarray:
    """Return the exact probability of every cell of the quantised eight Gaussians (appendix C): (91, 91).

    >>> pmf = eight_gaussians_pmf()
    >>> print(f"{-(pmf[pmf > 0] * np.log(pmf[pmf > 0])).sum():.5f}")  # the paper's 6.32 nats is the optimum
    6.31996
    """
    edges = (
        np.arange(NUM_CLASSES - 1) + 0.5 - OFFSET
    ) / STRETCH  # between cells; clipped values fall into the outer cells
    cdf = np.vectorize(lambda t: 0.5 * math.erfc(-t / math.sqrt(2)))
    inner = cdf((edges - centres()[:, :, None]) / DEVIATION)  # (8, 2, 90)
    below = np.concatenate([np.zeros((8, 2, 1)), inner], axis=2)
    above = np.concatenate([inner, np.ones((8, 2, 1))], axis=2)
    cells = above - below  # (8, 2, 91)
    return np.einsum("ci,cj->ij", cells[:, 0], cells[:, 1]) / 8


def draw_eight_gaussians(num: int, generator: np.random.Generator) -> np.ndarray:
    """Draw samples of the quantised mixture, as in Tran et al. (2019): (N, 2) uint8."""
    v = centres()[generator.integers(0, 8, num)] + DEVIATION * generator.standard_normal((num, 2))
    return (np.rint(np.clip(v, -CLIP, CLIP) * STRETCH) + OFFSET).astype(np.uint8)


@dataclass(frozen=True)
class EightGaussiansSource(Source):
    """A fixed sample of the mixture, with the exact probabilities."""

    key: ClassVar[str] = "eight-gaussians"
    usage: ClassVar[str] = "eight-gaussians"
    description: ClassVar[str] = (
        "eight Gaussians on a circle, quantised to 91 x 91 cells, with exact probabilities (generated)"
    )

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        x = draw_eight_gaussians(sum(SIZES), np.random.default_rng(SEED))
        spec = DataSpec(self.name, NUM_CLASSES, (2,), None, hashlib.sha256(x.tobytes()).hexdigest(), SIZES)
        return Data(replace(spec, has_places=True), *cut(x, SIZES, None), pmf=eight_gaussians_pmf())
