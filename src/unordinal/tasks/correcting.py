"""Correct substituted symbols of a sequence: the spell-checking of the paper, at the noise level of the errors.

A uniform diffusion predicts the clean symbols from a noisy sequence. At the noise at which a symbol is wrong as often
as in the sequence at hand, its prediction is the posterior of every symbol given the whole sequence, so that the
likeliest symbol is the best correction of single symbols. Only substitutions are corrected: nothing is inserted or left
out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from unordinal.data.spec import Vocabulary
from unordinal.diffusion.continuous import noise_of_rate
from unordinal.model import CategoricalModel, device_of
from unordinal.names import check_known
from unordinal.progress import Advance, Progress, ignored, silent
from unordinal.tasks.beam import beam_posterior
from unordinal.tasks.reading import Reading, read
from unordinal.tasks.windows import batches, joined, windows

ERROR_RATE = 0.02  # unless told otherwise
BEAM = 16
MARGIN = 32  # how far from the edge of a window a correction counts
ROWS = 128  # beams of all windows that are searched at a time, which bounds the memory
BATCH = 16  # windows at a time
BLOCK = 65_536  # symbols at a time, so that memory is bounded
MOST_SYMBOLS = 4_000_000  # of one text


@dataclass(frozen=True)
class Suggestion:
    """A correction of one symbol.

    Args:
        position: the position among the symbols that the model sees.
        start: where the symbol begins in the text; for arrays, the position again.
        old: the symbol that was found.
        new: the symbol that is suggested.
        probability: the model's probability that the new symbol is the right one.
    """

    position: int
    start: int
    old: str
    new: str
    probability: float


@dataclass(frozen=True)
class Corrected:
    """A corrected text.

    Args:
        text: the text with all suggestions accepted.
        suggestions: the corrections, in the order of the text.
    """

    text: str
    suggestions: tuple[Suggestion, ...]


Posterior = Callable[[Tensor, Tensor, Advance], Tensor]
"""Returns the probabilities of the clean symbols (L, K) of an observed sequence (L,), given which of its positions are
known to be right (L,), and tells how many symbols are done."""


def correct_reading(
    reading: Reading, posterior: Posterior, threshold: float = 0.5, *, progress: Progress = silent
) -> Corrected:
    """Suggest corrections for a text.

    Args:
        reading: the text as the model sees it.
        posterior: the probabilities of the clean symbols, from `diffusion_posterior` or `beam_posterior`.
        threshold: the least probability of a suggestion.
        progress: is told how many symbols are done.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"`threshold` is a probability, between 0 and 1; got {threshold:g}")
    if len(reading.x) == 0 or not bool(reading.is_free.any()):
        return Corrected(reading.text, ())
    if len(reading.x) > MOST_SYMBOLS:
        raise ValueError(
            f"the text has {len(reading.x):,} symbols, and at most {MOST_SYMBOLS:,} are corrected at a time; cut it"
        )
    values, indices = torch.empty(len(reading.x), dtype=torch.float64), torch.empty_like(reading.x)
    with progress("Correcting", len(reading.x)) as advance:
        for w in windows(len(reading.x), BLOCK, MARGIN):
            p = posterior(reading.x[w.start : w.stop], ~reading.is_free[w.start : w.stop], advance)
            best = p[w.first - w.start : w.last - w.start].max(dim=-1)
            values[w.first : w.last], indices[w.first : w.last] = best.values, best.indices
    is_changed = (indices != reading.x) & reading.is_free & (values >= threshold)
    if reading.vocabulary.kind == "bytes":  # a byte that is no ASCII character would break its neighbours
        is_changed &= (indices >= 32) & (indices < 127)
    suggestions = []
    for position in torch.nonzero(is_changed).flatten().tolist():
        start, end = reading.spans[position]
        old, new = reading.text[start:end], reading.symbol(int(indices[position]))
        found = Suggestion(position, start, old, reading.in_case_of(old, new), float(values[position]))
        suggestions.append(found)
    changes = {found.position: int(indices[found.position]) for found in suggestions}
    return Corrected(reading.written(changes), tuple(suggestions))


def check_rate(rate: float, num_classes: int) -> None:
    """Refuse a rate of errors that cannot be one."""
    most = 1 - 1 / num_classes
    if not 0 < rate < most:
        raise ValueError(f"`error_rate` must be above 0 and below {most:.3g}, got {rate:g}")


def diffusion_posterior(
    model: CategoricalModel,
    x: Tensor,
    *,
    error_rate: float,
    passes: int = 1,
    is_fixed: Tensor | None = None,
    advance: Advance = ignored,
) -> Tensor:
    """Return the probabilities of the clean symbols, by a diffusion with uniform noise.

    The first pass reads the sequence at the noise of the error rate. Every further pass reads the sequence with the
    likeliest symbols in place, at the noise of the errors that are probably left, and combines what the network says of
    a position given all others with the symbol that was observed there. This is a form of Gibbs sampling that takes
    the likeliest symbol instead of drawing one.

    Args:
        model: a model with `noisy_conditionals`.
        x: the observed symbols, of shape (L,).
        error_rate: the share of symbols that are wrong.
        passes: how often the network reads the sequence.
        is_fixed: positions (L,) that are known to be right, and stay as they are between passes; None for none.
        advance: is told how many symbols are done.

    Returns:
        Probabilities, of shape (L, K).
    """
    if not model.abilities.noisy_conditionals:
        raise ValueError(
            "correcting by one pass needs a diffusion with uniform noise (multinomial, uniform); use method beam with "
            "an autoregressive model"
        )
    if passes < 1:
        raise ValueError(f"`passes` must be at least 1, got {passes}")
    check_rate(error_rate, model.num_classes)
    size = model.event_shape[0]
    margin = min(MARGIN, (size - 1) // 2)
    cut, k = windows(len(x), size, margin), model.num_classes
    first_noise = noise_of_rate(error_rate, k)
    seen, noise = x, first_noise
    observed = torch.nn.functional.one_hot(x, k).double()
    p = torch.empty(0)
    for number in range(passes):
        parts: list[Tensor] = []
        for some, z in batches(seen, cut, BATCH):
            parts += model.conditionals(z.to(device_of(model)), noise=noise).double().cpu().unbind(0)
            advance(sum(w.last - w.first for w in some) / passes)
        p = joined(cut, parts)
        if number > 0:  # what the network says without the position itself, and what was observed there
            own = torch.nn.functional.one_hot(seen, k).double()
            log_p = p.log() - own * evidence(noise, k) + observed * evidence(first_noise, k)
            p = torch.softmax(log_p, dim=-1)
        best = p.max(dim=-1)
        seen = best.indices if is_fixed is None else torch.where(is_fixed, x, best.indices)
        left = float((1 - best.values).mean())
        noise = noise_of_rate(min(error_rate, max(left, error_rate / 10)), k)
    return p


def evidence(noise: float, num_classes: int) -> float:
    """Return by how much a symbol that is seen through so much noise gains in log-probability."""
    return math.log1p(num_classes * (1 - noise) / noise)


def autoregressive_posterior(
    model: CategoricalModel,
    x: Tensor,
    *,
    error_rate: float,
    beam: int,
    is_fixed: Tensor | None = None,
    advance: Advance = ignored,
) -> Tensor:
    """Return the probabilities of the clean symbols (L, K) of observed ones (L,), by beam search; see `beam_posterior`.

    Long sequences are cut into windows, of which some are searched at a time.
    """
    if not model.abilities.sequential:
        raise ValueError("method beam needs an autoregressive model of classes (arm); use method pass with a diffusion")
    check_rate(error_rate, model.num_classes)
    size = model.event_shape[0]
    margin = min(MARGIN, (size - 1) // 2)
    cut = windows(len(x), size, margin)
    fixed = torch.zeros_like(x, dtype=torch.bool) if is_fixed is None else is_fixed
    parts: list[Tensor] = []
    at_once = max(1, ROWS // beam)
    for start in range(0, len(cut), at_once):
        some = cut[start : start + at_once]
        z, stay = (torch.stack([v[w.start : w.stop] for w in some]) for v in (x, fixed))
        symbols = sum(w.last - w.first for w in some)
        parts += beam_posterior(
            model, z, error_rate=error_rate, beam=beam, is_fixed=stay, advance=partial(scaled, advance, symbols)
        ).unbind(0)
    return joined(cut, parts)


def scaled(advance: Advance, whole: float, part: float) -> None:
    """Tell that a part of some work is done."""
    advance(whole * part)


Method = Literal["pass", "beam"]


def correct_text(
    model: CategoricalModel,
    text: str,
    vocabulary: Vocabulary,
    *,
    error_rate: float = ERROR_RATE,
    threshold: float = 0.5,
    passes: int = 1,
    method: Method | None = None,
    beam: int = BEAM,
    progress: Progress = silent,
) -> Corrected:
    """Correct the substituted letters of a text.

    Args:
        model: a diffusion of sequences with uniform noise, or an autoregressive model.
        text: the text, in any characters; see `read`.
        vocabulary: the model's alphabet.
        error_rate: the share of symbols that are wrong.
        threshold: the least probability of a suggestion.
        passes: how often a diffusion reads the text.
        method: "pass" for a diffusion, "beam" for an autoregressive model; by default what the model can do.
        beam: how many candidates a beam search keeps.
        progress: is told how many symbols are done.
    """
    if len(model.event_shape) != 1:
        raise ValueError("only texts and other sequences are corrected, and this is a model of maps")
    check_rate(error_rate, model.num_classes)
    chosen = method or ("beam" if model.abilities.sequential else "pass")
    check_known("method", chosen, get_args(Method))

    def posterior(x: Tensor, is_fixed: Tensor, advance: Advance) -> Tensor:
        settings: Any = {"error_rate": error_rate, "is_fixed": is_fixed, "advance": advance}
        if chosen == "beam":
            return autoregressive_posterior(model, x, beam=beam, **settings)
        return diffusion_posterior(model, x, passes=passes, **settings)

    return correct_reading(read(text, vocabulary), posterior, threshold, progress=progress)
