"""Random numbers of training: a step's own, whatever came before it and however many processes share the work.

The examples and times of a step are drawn from the run's seed and the number of the step, and everything else that is
random in a part of its batch from those and the number of the part. So a run that is resumed, or validated at other
times, or spread over other processes, learns the same.
"""

import numpy as np
import torch

INITIALISE, EXAMPLES, TIMES, FIRST_PART = 0, 1, 2, 3


def mixed_seed(seed: int, step: int, index: int) -> int:
    """Return a seed made of three numbers, such that different ones have unrelated random numbers.

    >>> mixed_seed(0, 1, 2) == mixed_seed(0, 1, 2), mixed_seed(0, 1, 2) == mixed_seed(0, 2, 1)
    (True, False)
    """
    return int(np.random.SeedSequence([seed, step, index]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def seed_step(seed: int, step: int, index: int) -> None:
    """Seed torch's default generators for one thing of a step."""
    torch.manual_seed(mixed_seed(seed, step, index))


def generator_of(seed: int, step: int, index: int) -> torch.Generator:
    """Return a generator on the CPU for one thing of a step."""
    return torch.Generator().manual_seed(mixed_seed(seed, step, index))
