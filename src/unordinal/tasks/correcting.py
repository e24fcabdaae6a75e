"""Correct substituted symbols of a sequence: the spell-checking of the paper, at the noise level of the errors.

A uniform diffusion predicts the clean symbols from a noisy sequence. If the noise level equals the error rate of the
sequence, the prediction is the posterior of every symbol given the whole sequence, and the likeliest symbol is the best
correction. Only substitutions are corrected: nothing is inserted or deleted.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.diffusion.continuous import noise_of_rate
from unordinal.diffusion.uniform import evidence
from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Advance, Progress, ignored, silent
from unordinal.settings import Range, Request
from unordinal.tasks.beam import beam_search
from unordinal.tasks.reading import Reading, read
from unordinal.tasks.windows import batches, joined, windows

ERROR_RATE = 0.02  # by default
BEAM = 16
MARGIN = 32  # how far from the edge of a window a correction counts
ROWS = 128  # beams of all windows that are searched at a time, which bounds the memory
BATCH = 16  # windows at a time
BLOCK = 65_536  # symbols at a time, so that memory is bounded
MOST_SYMBOLS = 4_000_000  # of one text
TOO_HIGH = "too high: a pass takes the suggestions of the pass before it for certain"


@dataclass(frozen=True)
class Correct(Request):
    """Correct mistyped letters of a text. Only substitutions are corrected: no letter is inserted or left out."""

    text: Annotated[str, Range(1, served=10_000)]
    """The text, in any characters. Characters that the run's alphabet lacks stay as they are."""
    error_rate: Annotated[float, Range(above=0, below=1)] = ERROR_RATE
    """The share of letters that are wrong."""
    threshold: Annotated[float, Range(0, 1)] = 0.5
    """The least probability of a suggestion."""
    method: Literal["pass", "beam"] | None = None
    """pass reads the text once with a diffusion; beam searches with an autoregressive model, which is slower, and
    better where errors stand close together; default what the model can do."""
    passes: Annotated[int, Range(1, served=10)] = 1
    """With pass: how often the text is read, each time with the suggestions so far in place."""
    beam: Annotated[int, Range(1, served=64)] = BEAM
    """With beam: how many candidates are kept."""


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
class Correction:
    """A corrected text.

    Args:
        text: the text with all suggestions accepted.
        suggestions: the corrections, in the order of the text.
        kind: what the probabilities are: those of the model, or an estimate that tends to be too high.
    """

    text: str
    suggestions: tuple[Suggestion, ...]
    kind: str = "the model's"


Posterior = Callable[[Tensor, Tensor, Advance], Tensor]
"""Returns the probabilities of the clean symbols (L, K) of an observed sequence (L,), given which of its positions are
known to be right (L,), and tells how many symbols are done."""


def correct_reading(
    reading: Reading, posterior: Posterior, threshold: float = 0.5, *, progress: Progress = silent
) -> Correction:
    """Suggest corrections for a text.

    Args:
        reading: the text as the model sees it.
        posterior: the probabilities of the clean symbols, from `diffusion_posterior` or `autoregressive_posterior`.
        threshold: the least probability of a suggestion.
        progress: receives the number of symbols done.
    """
    if len(reading.x) == 0 or not bool(reading.is_free.any()):
        return Correction(reading.text, ())
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
    return Correction(reading.written(changes), tuple(suggestions))


def check_rate(rate: float, num_classes: int) -> None:
    """Raise a ValueError for a rate of errors that uniform noise over the classes cannot have."""
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
        model: a model whose denoiser has a `posterior`.
        x: the observed symbols, of shape (L,).
        error_rate: the share of symbols that are wrong.
        passes: how often the network reads the sequence.
        is_fixed: positions (L,) that are known to be right, and stay as they are between passes; None for none.
        advance: receives the number of symbols done.

    Returns:
        Probabilities, of shape (L, K).
    """
    posterior = None if model.denoiser is None else model.denoiser.posterior
    if posterior is None:
        raise ValueError(
            "correcting by one pass needs a diffusion with uniform noise (multinomial, uniform); use `method` beam "
            "with an autoregressive model"
        )
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
            parts += posterior(z.to(device_of(model)), noise).double().cpu().unbind(0)
            advance(sum(w.last - w.first for w in some) / passes)
        p = joined(cut, parts)
        if number > 0:  # what the network says without the position itself, and what was observed there
            own = torch.nn.functional.one_hot(seen, k).double()
            log_p = p.log() - own * evidence(torch.tensor(noise), k) + observed * evidence(torch.tensor(first_noise), k)
            p = torch.softmax(log_p, dim=-1)
        best = p.max(dim=-1)
        seen = best.indices if is_fixed is None else torch.where(is_fixed, x, best.indices)
        left = float((1 - best.values).mean())
        noise = noise_of_rate(min(error_rate, max(left, error_rate / 10)), k)
    return p


def autoregressive_posterior(
    model: CategoricalModel,
    x: Tensor,
    *,
    error_rate: float,
    beam: int,
    is_fixed: Tensor | None = None,
    advance: Advance = ignored,
) -> Tensor:
    """Return the probabilities of the clean symbols (L, K) of observed ones (L,), by beam search; see `beam_search`.

    Long sequences are cut into windows, of which some are searched at a time.
    """
    if model.stepper is None:
        raise ValueError("`method` beam needs an autoregressive model (arm); use `method` pass with a diffusion")
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
        searched = beam_search(
            model, z, error_rate=error_rate, beam=beam, is_fixed=stay, advance=partial(scaled, advance, symbols)
        )
        parts += searched.posterior.unbind(0)
    return joined(cut, parts)


def scaled(advance: Advance, whole: float, part: float) -> None:
    """Report progress: `part`, a fraction of 1, of `whole` units of work."""
    advance(whole * part)


def correct(model: CategoricalModel, spec: DataSpec, asked: Correct) -> Correction:
    """Correct the substituted letters of a text.

    Args:
        model: a diffusion of sequences with uniform noise, or an autoregressive model.
        spec: the description of its data, which are text.
        asked: the request.
    """
    vocabulary = spec.text_vocabulary("correct")
    check_rate(asked.error_rate, model.num_classes)
    method = asked.method or ("beam" if model.stepper is not None else "pass")

    def posterior(x: Tensor, is_fixed: Tensor, advance: Advance) -> Tensor:
        settings: Any = {"error_rate": asked.error_rate, "is_fixed": is_fixed, "advance": advance}
        if method == "beam":
            return autoregressive_posterior(model, x, beam=asked.beam, **settings)
        return diffusion_posterior(model, x, passes=asked.passes, **settings)

    found = correct_reading(read(asked.text, vocabulary), posterior, asked.threshold, progress=asked.progress)
    return replace(found, kind=TOO_HIGH) if method == "pass" and asked.passes > 1 else found
