"""How much training: steps, minutes or epochs, and what follows from it for validation."""

import math
from dataclasses import dataclass

from unordinal.config import TrainConfig
from unordinal.model import CategoricalModel

VALIDATIONS = 10  # over a budget, by default
MOST_STEPS_BETWEEN_VALIDATIONS = 1000
CPU_PART = 2048  # symbols of a part, on a CPU
LSTM_PART = 8192  # the same for LSTMs


@dataclass(frozen=True)
class Budget:
    """`steps`, `seconds`, or both; with both, training ends with the first of them that is spent."""

    steps: int | None
    seconds: float | None
    validate_every: int | None  # steps; None means by time, a tenth of `seconds`

    @staticmethod
    def of(config: TrainConfig, steps_per_epoch: float) -> "Budget":
        """Return the budget of a configuration: steps, minutes, or else epochs."""
        steps = config.steps
        seconds = None if config.minutes is None else 60 * config.minutes
        if steps is None and seconds is None:
            if config.epochs is None:
                raise ValueError("no budget: give `steps` or `minutes`")
            steps = max(1, math.ceil(config.epochs * steps_per_epoch))
        every = config.validate_every
        if steps is not None and every is None:
            every = min(math.ceil(steps / VALIDATIONS), MOST_STEPS_BETWEEN_VALIDATIONS)
        return Budget(steps, seconds, every)

    def fraction(self, step: int, seconds: float, reserved: float = 0.0) -> float:
        """Return the spent part of the budget, in [0, 1]; `reserved` seconds are kept for the last validation."""
        by_steps = 0.0 if self.steps is None else step / self.steps
        by_time = 0.0 if self.seconds is None else seconds / max(self.seconds - reserved, 1e-9)
        return min(1.0, max(by_steps, by_time))

    def is_more_than(self, spent: list[float | None]) -> bool:
        """Return whether this budget is larger than one of steps and seconds that a run has spent."""
        pairs = zip((self.steps, self.seconds), spent, strict=True)
        return any(old is None or new > old for new, old in pairs if new is not None)

    def wants_validation(self, step: int, seconds: float, validated_at: float) -> bool:
        """Return whether to validate after this step; `validated_at` is the time in seconds of the last validation."""
        if self.validate_every is not None:
            return step % self.validate_every == 0
        assert self.seconds is not None
        return seconds - validated_at >= self.seconds / VALIDATIONS


def parts_of_batch(config: TrainConfig, model: CategoricalModel, device_type: str) -> int:
    """Return into how many parts a batch is cut: as asked, or on a CPU as few as suit the network; 1 on a GPU.

    Transformers and convolutions run up to 1.8 times as fast, and in a fraction of the memory, where the activations of
    a part stay in the cache. An LSTM reads all its weights again for every part, so its batches stay whole while memory
    allows (docs/results/speed.md has the measurements).
    """
    if config.accumulate is not None:
        return config.accumulate
    if device_type != "cpu":
        return 1
    is_recurrent = any(getattr(part, "is_recurrent", False) for part in model.modules())
    most, event_size = LSTM_PART if is_recurrent else CPU_PART, model.event_shape.numel()
    return min(config.batch_size, -(-config.batch_size // max(1, most // event_size)))


def parts_for_processes(num_parts: int, config: TrainConfig, processes: int) -> int:
    """Return the number of parts of a batch, rounded up to a multiple of the processes that share them."""
    parts = -(-num_parts // processes) * processes
    if parts > config.batch_size:
        raise ValueError(
            f"{processes} processes need a `batch_size` of at least {parts}, a part of a batch for each; "
            f"got {config.batch_size}"
        )
    return parts
