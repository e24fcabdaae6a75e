"""Random batches to train on."""

import torch
from torch import Tensor

from unordinal.config import TrainConfig
from unordinal.data.splits import Split


def draw_batch(
    split: Split, config: TrainConfig, generator: torch.Generator, num_classes: int
) -> tuple[Tensor, list[int]]:
    """Draw examples (B, *D) and where each of them starts.

    With `lengths` the examples are cut into pieces of one of these lengths, the same for the whole batch: shorter
    pieces are more of them, so that a step sees as many symbols as ever. With `mutate`, that share of the symbols is
    redrawn uniformly from the classes.
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
    """Refuse lengths into which an example cannot be cut."""
    if config.lengths and len(event_shape) != 1:
        raise ValueError(f"`lengths` are for sequences; the examples have shape {tuple(event_shape)}")
    for length in config.lengths:
        if length < 1 or event_shape[0] % length:
            raise ValueError(f"`lengths` must divide the {event_shape[0]} symbols of an example, got {length}")
