"""Measure how surprising an example is: its bits under a model, of the whole and of each position."""

import lzma
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unordinal.model import CategoricalModel, device_of
from unordinal.models.bound import bound
from unordinal.numerics import Rng, uniform
from unordinal.parallel.randomness import generator_of
from unordinal.progress import Advance, Progress, ignored, silent
from unordinal.tasks.windows import windows

CONTEXT = 64  # positions before a window that its bits are given
BATCH_SYMBOLS = 8192  # most symbols at a time
BATCH_NUMBERS = 1 << 24  # most log-probabilities at a time
DRAWS = 32  # of a bound, for each example
SAMPLES = 64  # of a model, from which its typical bits are estimated


@dataclass(frozen=True)
class Bits:
    """The bits of one example.

    Args:
        bits: the bits of the whole example.
        error: their standard error; None where they are exact.
        num_symbols: the number of symbols of the example.
        positions: the bits of each position, where the model has them.
        num_altered: how many characters of a text were replaced by others because the model's alphabet lacks them.
    """

    bits: float
    error: float | None
    num_symbols: int
    positions: tuple[float, ...] | None = None
    num_altered: int = 0

    @property
    def per_symbol(self) -> float:
        """The bits per symbol."""
        return self.bits / self.num_symbols


def bits_of(
    model: CategoricalModel, examples: Sequence[Tensor], *, seed: int = 0, progress: Progress = silent
) -> list[Bits]:
    """Return the bits of examples, each of shape (*D); sequences may have different lengths.

    An autoregressive model gives exact bits of each position given those before it. Longer examples than those of
    training are scored in windows: with a training length of 256, each position sees the 64 to 255 positions before it.
    Other models give a bound for the whole example, the mean of several draws, with its standard error.
    """
    if any(len(x) == 0 for x in examples):
        raise ValueError("an example without symbols has no bits; leave empty ones out")
    if model.stepper is not None:
        return sequential_bits(model, examples, progress)
    generator = generator_of(seed, device=device_of(model))
    with progress("Scoring", len(examples)) as advance:
        return [bound_of(model, x, generator, advance) for x in examples]


@torch.no_grad()
def sequential_bits(model: CategoricalModel, examples: Sequence[Tensor], progress: Progress) -> list[Bits]:
    """Return the bits of each position given those before it, in windows; windows of one length share a batch."""
    size = model.event_shape[0]
    context = min(CONTEXT, (size - 1) // 2)
    bits, ends = [torch.zeros(len(x), dtype=torch.float64) for x in examples], [0.0] * len(examples)
    jobs = [
        (index, window) for index, x in enumerate(examples) for window in windows(len(x), size, context, is_causal=True)
    ]
    jobs.sort(key=lambda job: job[1].stop - job[1].start)
    device, place = device_of(model), 0
    most = max(size, min(BATCH_SYMBOLS, BATCH_NUMBERS // model.num_classes))
    assert model.stepper is not None
    with progress("Scoring", len(jobs)) as advance:
        while place < len(jobs):
            longest = jobs[place][1].stop - jobs[place][1].start
            some = jobs[place : place + max(1, most // longest)]
            some = [job for job in some if job[1].stop - job[1].start == longest]
            x = torch.stack([examples[index][w.start : w.stop].long() for index, w in some])
            log_p = model.stepper.log_probs(x.to(device)).cpu()
            for (index, w), row in zip(some, log_p.double(), strict=True):
                ends[index] = -float(row[longest:].sum()) / math.log(2)  # of the end of an example, if it may end early
                bits[index][w.first : w.last] = -row[w.first - w.start : w.last - w.start] / math.log(2)
            place += len(some)
            advance(len(some))
    return [Bits(float(r.sum()) + end, None, len(r), tuple(r.tolist())) for r, end in zip(bits, ends, strict=True)]


def bound_of(model: CategoricalModel, x: Tensor, generator: Rng = None, advance: Advance = ignored) -> Bits:
    """Return the bound of one example (*D), averaged over draws whose times are spread evenly."""
    if x.dim() == 1 and len(model.event_shape) == 1 and len(x) > model.event_shape[0]:
        cut = windows(len(x), model.event_shape[0], 0)
        parts = []
        for w in cut:
            parts.append(bound_of(model, x[w.first : w.last], generator))
            advance(1 / len(cut))
        error = math.sqrt(sum((part.error or 0.0) ** 2 for part in parts))
        return Bits(sum(part.bits for part in parts), error, len(x))
    draws = 1 if model.is_exact else DRAWS
    batch = x.long().expand(draws, *x.shape).to(device_of(model))
    advance(1)
    place = None
    if model.times is not None:
        offset = uniform((draws,), batch.device, generator).cpu().double()
        place = ((torch.arange(draws, dtype=torch.float64) + offset) / draws).unsqueeze(0)
    found = -bound(model, batch, positions=place, generator=generator)[0] / math.log(2)
    spread = None if model.is_exact else float(found.std() / math.sqrt(draws))
    return Bits(float(found.mean()), spread, x.numel())


def xz_bits(x: Tensor) -> float:
    """Return the size in bits of an example compressed by itself with xz, without headers: how complex it is."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
    values = x.to(torch.uint8 if int(x.max()) < 256 else torch.int32).numpy()
    return 8.0 * len(lzma.compress(values.tobytes(), lzma.FORMAT_RAW, filters=filters))


def order_1_bits(examples: Sequence[Tensor], num_classes: int) -> list[float]:
    """Return the bits of examples under counts of pairs of symbols in all of them: what any text like these has."""
    pairs = torch.ones(num_classes + 1, num_classes, dtype=torch.float64)  # one count for each, and a start
    for x in examples:
        flat = x.long().flatten()
        before = torch.cat([torch.tensor([num_classes]), flat[:-1]])
        pairs.index_put_((before, flat), torch.ones(len(flat), dtype=torch.float64), accumulate=True)
    log_p = (pairs / pairs.sum(1, keepdim=True)).log2()
    found = []
    for x in examples:
        flat = x.long().flatten()
        before = torch.cat([torch.tensor([num_classes]), flat[:-1]])
        found.append(-float(log_p[before, flat].sum()))
    return found


def typical_bits(model: CategoricalModel, seed: int = 0) -> Tensor:
    """Return the mean bits of each position in samples of a sequential model: (L,).

    A typical example has about as many bits as the model's own samples; one with far fewer is as unusual as one with
    far more.
    """
    generator = generator_of(seed, device=device_of(model))
    x = model.sample(SAMPLES, generator=generator).cpu()
    rows = bits_of(model, list(x))
    return torch.tensor([row.positions for row in rows], dtype=torch.float64).mean(dim=0)
