"""Random numbers of training and scoring: each stream depends on three numbers and nothing else.

The examples and times of a training step are drawn from the run's seed and the number of the step, and everything else
that is random in a part of its batch from those and the number of the part. So a run that is resumed, validated at
other times, or spread over other processes learns the same.
"""

import numpy as np
import torch

INITIALISE, EXAMPLES, TIMES, FIRST_PART = 0, 1, 2, 3

# Where the state of torch's CPU generator, a Mersenne twister, keeps its 624 words, each in 8 bytes, and how many of
# them are left before they are used up.
WORDS, LEFT, FIRST_WORD = 624, 8, 24


def sequence_of(seed: int, step: int, index: int) -> np.random.SeedSequence:
    """Return the source of randomness of three numbers; different ones are unrelated."""
    return np.random.SeedSequence([seed, step, index])


def mixed_seed(seed: int, step: int, index: int) -> int:
    """Return a seed of 63 bits made of three numbers, for generators that use all of its bits, such as CUDA's.

    >>> mixed_seed(0, 1, 2) == mixed_seed(0, 1, 2), mixed_seed(0, 1, 2) == mixed_seed(0, 2, 1)
    (True, False)
    """
    return int(sequence_of(seed, step, index).generate_state(1, np.uint64)[0] >> np.uint64(1))


def fill_state(generator: torch.Generator, seed: int, step: int, index: int) -> None:
    """Set the whole state of a CPU generator; a seed would not do, as torch keeps only 32 bits of it."""
    words = sequence_of(seed, step, index).generate_state(WORDS, np.uint32)
    words[0] |= np.uint32(1 << 31)  # a twister of all zeros would stay there
    state = generator.manual_seed(0).get_state()
    raw = state.numpy()
    raw[LEFT : LEFT + 4].view(np.int32)[0] = 1  # all words are used up: the next draw makes new ones
    raw[FIRST_WORD : FIRST_WORD + 8 * WORDS].view(np.uint64)[:] = words
    generator.set_state(state)


def seed_step(seed: int, step: int, index: int) -> None:
    """Seed torch's default generators for one purpose of a step."""
    torch.manual_seed(mixed_seed(seed, step, index))
    fill_state(torch.default_generator, seed, step, index)


def generator_of(seed: int, step: int = 0, index: int = 0, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a generator for one purpose of a step."""
    generator = torch.Generator(device)
    if generator.device.type != "cpu":
        return generator.manual_seed(mixed_seed(seed, step, index))
    fill_state(generator, seed, step, index)
    return generator
