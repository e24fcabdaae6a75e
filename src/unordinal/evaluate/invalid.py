"""Estimate how much probability a model assigns to invalid codes, which stand for no class."""

from dataclasses import dataclass

import torch

from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Progress, Watcher, silent, watching


@dataclass(frozen=True)
class InvalidMass:
    """The fractions of positions, and of samples, with an invalid code; standard errors are over samples."""

    per_position: float
    per_position_error: float
    per_sequence: float
    per_sequence_error: float
    num_samples: int

    def __str__(self) -> str:
        position = f"{100 * self.per_position:.3g} ± {100 * self.per_position_error:.2g} % of positions"
        sequence = f"{100 * self.per_sequence:.3g} ± {100 * self.per_sequence_error:.2g} % of samples"
        return f"invalid codes: {position}, {sequence} ({self.num_samples} samples)"


def invalid_mass(
    model: CategoricalModel, num_samples: int, *, batch_size: int = 32, seed: int = 0, progress: Progress = silent
) -> InvalidMass:
    """Estimate the fractions of invalid codes from samples.

    If no sample (or every sample) is invalid, the standard error is that of half a sample instead of 0.
    """
    if num_samples < 2:
        raise ValueError(f"the estimate of invalid codes needs at least 2 samples, got {num_samples}")
    generator = torch.Generator(device_of(model)).manual_seed(seed)
    parts = []
    with progress("Sampling", num_samples) as advance, watching(Watcher(advance)):
        for start in range(0, num_samples, batch_size):
            num = min(batch_size, num_samples - start)
            x = model.sample(num, generator=generator)
            parts.append((x >= model.num_classes).reshape(num, -1).double().cpu())
    bad = torch.cat(parts)
    positions, sequences = bad.mean(dim=1), bad.amax(dim=1)
    root = num_samples**0.5
    share = float(sequences.mean())
    floor = 0.5 / num_samples if share in (0.0, 1.0) else 0.0
    return InvalidMass(
        float(positions.mean()),
        max(float(positions.std()) / root, floor / bad.shape[1]),
        share,
        max(float(sequences.std()) / root, floor),
        num_samples,
    )
