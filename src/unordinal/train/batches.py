"""Draw random batches to train on."""

import torch
from torch import Tensor

from unordinal.config import TrainConfig
from unordinal.data.splits import Split
from unordinal.parallel.randomness import EXAMPLES, generator_of


class Feeder:
    """Draws the batch of each step and copies it to the device; on a GPU, during the step before.

    A batch depends only on the seed and the step, so drawing it early changes nothing.

    Args:
        split: what to draw from.
        config: the settings of training.
        num_classes: the number of classes.
        device: where the batches are needed.
        is_ahead: whether to draw the next batch early; by default only on cuda.
    """

    def __init__(
        self, split: Split, config: TrainConfig, num_classes: int, device: torch.device, *, is_ahead: bool | None = None
    ):
        self.split, self.config, self.num_classes, self.device = split, config, num_classes, device
        self.is_ahead = device.type == "cuda" if is_ahead is None else is_ahead
        self.ready: tuple[int, Tensor, list[int]] | None = None

    def take(self, step: int) -> tuple[Tensor, list[int]]:
        """Return the examples (B, *D) of a step, on the device, and where each of them starts."""
        if self.ready is None or self.ready[0] != step:
            self.ready = self.drawn(step)
        _, x, starts = self.ready
        self.ready = None
        return x, starts

    def prefetch(self, step: int) -> None:
        """Draw the batch of a step that comes next, and let it travel to the device meanwhile."""
        if self.is_ahead:
            self.ready = self.drawn(step)

    def drawn(self, step: int) -> tuple[int, Tensor, list[int]]:
        generator = generator_of(self.config.seed, step, EXAMPLES)
        x, starts = draw_batch(self.split, self.config, generator, self.num_classes)
        x = x.pin_memory() if self.device.type == "cuda" else x
        return step, x.to(self.device, non_blocking=True), starts


def draw_batch(
    split: Split, config: TrainConfig, generator: torch.Generator, num_classes: int
) -> tuple[Tensor, list[int]]:
    """Draw examples (B, *D) and where each of them starts.

    With `lengths`, one of these lengths is drawn for the batch and every example is cut into pieces of it. The number
    of symbols per step stays the same. With `mutate`, this fraction of the symbols is replaced by random classes.
    """
    x, starts = split.crops(config.batch_size, generator)
    if config.mutate:
        is_mutated = torch.rand(x.shape, generator=generator) < config.mutate
        x = torch.where(is_mutated, torch.randint(num_classes, x.shape, generator=generator), x)
    if not config.lengths:
        return x, starts
    length = config.lengths[int(torch.randint(len(config.lengths), (), generator=generator))]
    offsets = range(0, x.shape[1], length)
    return x.reshape(-1, length), [start + offset for start in starts for offset in offsets]


def check_lengths(config: TrainConfig, event_shape: tuple[int, ...]) -> None:
    """Raise a ValueError for lengths into which an example cannot be cut."""
    if config.lengths and len(event_shape) != 1:
        raise ValueError(f"`lengths` are for sequences; the examples have shape {tuple(event_shape)}")
    for length in config.lengths:
        if length < 1 or event_shape[0] % length:
            raise ValueError(f"`lengths` must divide the {event_shape[0]} symbols of an example, got {length}")
