"""Draw random batches to train on."""

import torch
from torch import Tensor

from unordinal.columns import Classes
from unordinal.config import TrainConfig
from unordinal.data.splits import Split
from unordinal.model import CategoricalModel
from unordinal.parallel.randomness import EXAMPLES, generator_of


class Feeder:
    """Draws the batch of each step and copies it to the device; on a GPU, during the step before.

    A batch depends only on the seed and the step, so drawing it early changes nothing.

    Args:
        split: what to draw from.
        config: the settings of training.
        classes: the classes of every position.
        device: where the batches are needed.
        labels: the number of classes of each label.
        is_ahead: whether to draw the next batch early; by default only on cuda.
    """

    def __init__(
        self,
        split: Split,
        config: TrainConfig,
        classes: Classes,
        device: torch.device,
        *,
        labels: tuple[int, ...] = (),
        is_ahead: bool | None = None,
    ):
        self.split, self.config, self.classes, self.device, self.labels = split, config, classes, device, labels
        self.is_ahead = device.type == "cuda" if is_ahead is None else is_ahead
        self.ready: tuple[int, Tensor, Tensor | None, list[int]] | None = None

    def take(self, step: int) -> tuple[Tensor, Tensor | None, list[int]]:
        """Return the examples (B, *D) of a step and their labels (B, J), on the device, and where each starts."""
        if self.ready is None or self.ready[0] != step:
            self.ready = self.drawn(step)
        _, x, cond, starts = self.ready
        self.ready = None
        return x, cond, starts

    def prefetch(self, step: int) -> None:
        """Draw the batch of a step that comes next, and let it travel to the device meanwhile."""
        if self.is_ahead:
            self.ready = self.drawn(step)

    def drawn(self, step: int) -> tuple[int, Tensor, Tensor | None, list[int]]:
        generator = generator_of(self.config.seed, step, EXAMPLES)
        x, starts = draw_batch(self.split, self.config, generator, self.classes)
        x = x.pin_memory() if self.device.type == "cuda" else x
        cond = self.split.given(starts)
        if cond is not None:
            cond = self.thinned(cond, generator).to(self.device, non_blocking=True)
        return step, x.to(self.device, non_blocking=True), cond, starts

    def thinned(self, cond: Tensor, generator: torch.Generator) -> Tensor:
        """Return labels (B, J) with those of some examples dropped and, if there are several labels, some missing."""
        sizes, share = torch.tensor(self.labels), self.config.drop_labels
        if cond.shape[1] > 1:
            cond = torch.where(torch.rand(cond.shape, generator=generator) < share, sizes, cond)
        return torch.where(torch.rand(len(cond), 1, generator=generator) < share, sizes + 1, cond)


def draw_batch(
    split: Split, config: TrainConfig, generator: torch.Generator, classes: Classes
) -> tuple[Tensor, list[int]]:
    """Draw examples (B, *D) and where each of them starts.

    With `lengths`, one of these lengths is drawn for the batch and every example is cut into pieces of it. The number
    of symbols per step stays the same. With `mutate`, this fraction of the symbols is replaced by random classes.
    """
    x, starts = split.crops(config.batch_size, generator)
    if config.mutate:
        is_mutated = torch.rand(x.shape, generator=generator) < config.mutate
        random = classes.uniform(x.shape, x.device, generator)
        x = torch.where(is_mutated & (x < classes.most), random, x)  # ends stay where they are
    if not config.lengths:
        return x, starts
    length = config.lengths[int(torch.randint(len(config.lengths), (), generator=generator))]
    offsets = range(0, x.shape[1], length)
    return x.reshape(-1, length), [start + offset for start in starts for offset in offsets]


def check_lengths(config: TrainConfig, model: CategoricalModel) -> None:
    """Raise a ValueError for lengths into which an example cannot be cut."""
    event_shape = model.event_shape
    if config.lengths and (len(event_shape) != 1 or model.has_places or model.ends or model.labels):
        expected = "sequences without places, ends and labels"
        raise ValueError(f"`lengths` are for {expected}; the examples have shape {tuple(event_shape)}")
    for length in config.lengths:
        if length < 1 or event_shape[0] % length:
            raise ValueError(f"`lengths` must divide the {event_shape[0]} symbols of an example, got {length}")
