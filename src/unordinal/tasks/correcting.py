"""Correct a mistyped text, by a search under an autoregressive model or by one pass of a diffusion.

The pass is the spell-checking of the paper, at the noise level of the errors. A uniform diffusion predicts the clean
symbols from a noisy sequence. If the noise level equals the error rate of the sequence, the prediction is the posterior
of every symbol given the whole sequence, and the likeliest symbol is the best correction. It only replaces symbols;
`respelling.py` has the search, which inserts and deletes them too.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.diffusion.continuous import noise_of_rate
from unordinal.diffusion.uniform import evidence
from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Advance, ignored
from unordinal.settings import NOT_SERVED, Flag, Range, Request
from unordinal.tasks.misspelling import typing_channel
from unordinal.tasks.reading import Reading, read
from unordinal.tasks.respelling import Suggestion, respell
from unordinal.tasks.search import BEAM
from unordinal.tasks.weighing import Judge, Scale
from unordinal.tasks.windows import batches, joined, windows

ERROR_RATE = 0.02  # of a pass, by default
EDIT_RATE = 0.003  # of a search, by default
LEAST_RATE = 1e-12  # of a search: below it, the probabilities of edits would round to 0
SEARCHED_RATE = 0.03  # at which a search proposes what is weighed at the rate asked for
SURE = 0.99  # the least confidence of a suggestion for a name, where care is asked for
LONGEST_WORD = 64  # that is looked at around a suggestion
MARGIN = 32  # how far from the edge of a window a correction counts
BATCH = 16  # windows at a time
BLOCK = 65_536  # symbols at a time, so that memory is bounded
MOST_SYMBOLS = 4_000_000  # of one text


@dataclass(frozen=True)
class Correct(Request):
    """Correct what was mistyped in a text."""

    text: Annotated[str, Range(1, served=10_000)]
    """The text, in any characters. Characters that the run's alphabet lacks stay as they are."""
    error_rate: Annotated[float | None, Range(above=0, below=1)] = None
    """The share of letters that are wrong; default 0.003 with beam, 0.02 with pass."""
    threshold: Annotated[float, Range(0, 1)] = 0.5
    """The least confidence of a suggestion."""
    method: Literal["beam", "pass"] | None = None
    """beam searches with an autoregressive model for what was meant: missing, added, replaced and swapped letters. pass
    reads the text once with a diffusion, as in the paper: replaced letters only, and much faster. Default what the
    model can do."""
    careful: bool = False
    """Change words that look like names or code (a capital inside a sentence, digits, underscores) only if a suggestion
    has a confidence of at least 0.99."""
    keep: Annotated[tuple[str, ...], NOT_SERVED] = ()
    """Words that stay as they are."""
    passes: Annotated[int, Range(1, served=10)] = 1
    """With pass: how often the text is read, each time with the suggestions so far in place. Confidences are too high
    then."""
    beam: Annotated[int, Range(1, served=64)] = BEAM
    """With beam: how many candidates are kept."""
    judge: Annotated[str | Any | None, NOT_SERVED, Flag(metavar="RUN")] = None
    """With beam: a second autoregressive model of text, with any alphabet, which weighs the suggestions together with
    the run. Default pretrained:english-arm for the bundled model, none for a run of your own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.judge is not None and self.method == "pass":
            raise ValueError("`judge` is for `method` beam; a pass has no suggestions of several letters to weigh")


@dataclass(frozen=True)
class Correction:
    """A corrected text.

    Args:
        text: the text with all suggestions accepted.
        suggestions: the corrections, in the order of the text.
    """

    text: str
    suggestions: tuple[Suggestion, ...]


Posterior = Callable[..., Tensor]
"""Returns the probabilities of the clean symbols (L, K) of an observed sequence (L,), given as `is_fixed` which of its
positions are known to be right (L,)."""


def replaced_letters(reading: Reading, is_fixed: Tensor, posterior: Posterior) -> list[Suggestion]:
    """Return the symbols that are probably wrong, each with the likeliest symbol in its place."""
    values, indices = torch.empty(len(reading.x), dtype=torch.float64), torch.empty_like(reading.x)
    for w in windows(len(reading.x), BLOCK, MARGIN):
        p = posterior(reading.x[w.start : w.stop], is_fixed=is_fixed[w.start : w.stop])
        best = p[w.first - w.start : w.last - w.start].max(dim=-1)
        values[w.first : w.last], indices[w.first : w.last] = best.values, best.indices
    is_changed = (indices != reading.x) & ~is_fixed
    if reading.vocabulary.kind == "bytes":  # a byte that is no ASCII character would break its neighbours
        is_changed &= (indices >= 32) & (indices < 127)
    suggestions = []
    for position in torch.nonzero(is_changed).flatten().tolist():
        start, end = reading.spans[position]
        old, new = reading.text[start:end], reading.symbol(int(indices[position]))
        suggestions.append(Suggestion(start, old, reading.in_case_of(old, new), float(values[position])))
    return suggestions


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


def correct(model: CategoricalModel, spec: DataSpec, asked: Correct, judge: Judge | None = None) -> Correction:
    """Correct what was mistyped in a text.

    Args:
        model: an autoregressive model of sequences, or a diffusion with uniform noise.
        spec: the description of its data, which are text.
        asked: the request.
        judge: with a search, a second model that weighs its suggestions.
    """
    vocabulary = spec.text_vocabulary("correct")
    method = asked.method or ("beam" if model.stepper is not None else "pass")
    rate = asked.error_rate or (EDIT_RATE if method == "beam" else ERROR_RATE)
    if method == "beam" and rate < LEAST_RATE:
        raise ValueError(f"`error_rate` of a search must be at least {LEAST_RATE:g}, got {rate:g}")
    check_rate(rate, model.num_classes)
    reading = read(asked.text, vocabulary)
    if len(reading.x) > MOST_SYMBOLS:
        raise ValueError(
            f"the text has {len(reading.x):,} symbols, and at most {MOST_SYMBOLS:,} are corrected at a time; cut it"
        )
    is_fixed = ~reading.is_free
    if len(reading.x) == 0 or bool(is_fixed.all()):
        return Correction(asked.text, ())
    with asked.progress("Correcting", len(reading.x)) as advance:
        if method == "beam":
            scale = Scale(model, typing_channel(vocabulary, rate), vocabulary, judge)
            wide = typing_channel(vocabulary, max(rate, SEARCHED_RATE))
            found = respell(scale, wide, reading, is_fixed, beam=asked.beam, advance=advance)
        else:
            posterior = partial(diffusion_posterior, model, error_rate=rate, passes=asked.passes, advance=advance)
            found = replaced_letters(reading, is_fixed, posterior)
    words = frozenset(word.casefold() for word in asked.keep)
    found = [s for s in found if not is_kept(asked.text, s, words)]
    least = [SURE if asked.careful and is_name(asked.text, s) else asked.threshold for s in found]
    sure = [s for s, limit in zip(found, least, strict=True) if s.confidence >= limit]
    return Correction(with_suggestions(asked.text, sure), tuple(sure))


def with_suggestions(text: str, suggestions: list[Suggestion]) -> str:
    """Return a text with suggestions, which are in its order, in place."""
    parts, done = [], 0
    for s in suggestions:
        parts += [text[done : s.start], s.new]
        done = s.start + len(s.old)
    return "".join([*parts, text[done:]])


def is_kept(text: str, suggestion: Suggestion, words: frozenset[str]) -> bool:
    """Return whether a suggestion would change one of some words, given in small letters."""
    start, end = suggestion.start, suggestion.start + len(suggestion.old)
    first = max(0, start - LONGEST_WORD)
    near = re.finditer(r"\w+", text[first : end + LONGEST_WORD]) if words else ()
    return any(w.group().casefold() in words and first + w.start() < end and first + w.end() > start for w in near)


def is_name(text: str, suggestion: Suggestion) -> bool:
    """Return whether what is to be replaced looks like a name or like code.

    >>> [is_name("So Ada ran my_tol.", Suggestion(*found, "", 1.0)) for found in ((0, "So"), (3, "Ada"), (14, "tol"))]
    [False, True, True]
    """
    start, end = suggestion.start, suggestion.start + len(suggestion.old)
    before, after = text[:start], text[end:]
    has_capitals = any(letter.isupper() for letter in suggestion.old[1:])
    is_inside = suggestion.old[:1].isupper() and re.search(r"[\w,;:] +$", before[-LONGEST_WORD:]) is not None
    has_signs = re.search(r"[\d_@/\\.#<=$-]$", before[-1:]) or re.match(r"[\d_@/\\#>=(]|\.\w", after)
    return has_capitals or is_inside or has_signs is not None
