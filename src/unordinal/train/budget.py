"""How much training: steps, minutes or epochs, and what follows from it for validation."""

import math
from dataclasses import dataclass

from torch import nn

from unordinal.config import TrainConfig
from unordinal.model import CategoricalModel

VALIDATIONS = 10  # over a budget, unless told otherwise
MOST_STEPS_BETWEEN_VALIDATIONS = 1000
CPU_PART = 2048  # symbols of a part, on a CPU
LSTM_PART = 8192  # the same for LSTMs


@dataclass(frozen=True)
class Budget:
    """Either `steps` or `seconds`."""

    steps: int | None
    seconds: float | None
    validate_every: int | None  # steps; None means by time, a tenth of `seconds`

    @staticmethod
    def of(config: TrainConfig, steps_per_epoch: float) -> "Budget":
        """The budget a configuration asks for: minutes, or steps, or epochs."""
        if config.steps is not None and config.minutes is not None:
            raise ValueError(f"give `steps` or `minutes`, not both (got {config.steps} and {config.minutes:g})")
        if config.steps is not None and config.steps < 1:
            raise ValueError(f"`steps` must be at least 1, got {config.steps}")
        if config.minutes is not None and not 0 < config.minutes < math.inf:
            raise ValueError(f"`minutes` must be above 0, got {config.minutes:g}")
        if config.minutes is not None:
            return Budget(None, 60 * config.minutes, config.validate_every)
        steps = config.steps
        if steps is None:
            if config.epochs is None or config.epochs <= 0:
                raise ValueError("no budget: give `steps` or `minutes`")
            steps = max(1, math.ceil(config.epochs * steps_per_epoch))
        every = config.validate_every or min(math.ceil(steps / VALIDATIONS), MOST_STEPS_BETWEEN_VALIDATIONS)
        return Budget(steps, None, every)

    def fraction(self, step: int, seconds: float, reserved: float = 0.0) -> float:
        """Used part of the budget, in [0, 1]; `reserved` seconds are kept for the last validation."""
        if self.steps is not None:
            return min(1.0, step / self.steps)
        assert self.seconds is not None
        return min(1.0, seconds / max(self.seconds - reserved, 1e-9))

    def is_spent(self, step: int, seconds: float, validation_seconds: float) -> bool:
        """Whether a finished run has nothing left to do; it may end a validation's time before its budget does."""
        return self.fraction(step, seconds, 3 * validation_seconds) >= 1

    def wants_validation(self, step: int, seconds: float, validated_at: float) -> bool:
        """Whether to validate after this step; `validated_at` is when (in seconds) that was last done."""
        if self.validate_every is not None:
            return step % self.validate_every == 0
        assert self.seconds is not None
        return seconds - validated_at >= self.seconds / VALIDATIONS


def parts_of_batch(config: TrainConfig, model: CategoricalModel, device_type: str) -> int:
    """Into how many parts a batch is cut: as asked, or on a CPU as few as suit the network; a GPU wants it whole.

    Transformers and convolutions run up to 1.8 times as fast, and in a fraction of the memory, where the activations of
    a part stay in the cache. An LSTM reads all its weights anew for every part, so its batches stay whole while memory
    allows (docs/results.md has the measurements).
    """
    if config.accumulate is not None:
        return config.accumulate
    if device_type != "cpu":
        return 1
    is_recurrent = any(isinstance(part, nn.LSTM) for part in model.modules())
    most, event_size = LSTM_PART if is_recurrent else CPU_PART, model.event_shape.numel()
    divisors = [n for n in range(1, config.batch_size + 1) if config.batch_size % n == 0]
    return next((n for n in divisors if config.batch_size // n * event_size <= most), config.batch_size)


def parts_for_processes(num_parts: int, config: TrainConfig, processes: int) -> int:
    """The number of parts of a batch as a multiple of the processes that share them."""
    parts = -(-num_parts // processes) * processes
    if parts > config.batch_size:
        raise ValueError(
            f"{processes} processes need a `batch_size` of at least {parts}, a part of a batch for each; "
            f"got {config.batch_size}"
        )
    return parts
