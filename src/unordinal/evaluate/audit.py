"""Audit a likelihood, a bound or a sampler on a space that is small enough to enumerate."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unordinal.evaluate.enumeration import (
    CHANCE,
    Scoring,
    chi_square,
    deviates,
    every_example,
    indices_of,
    largest_z,
    mean_and_error,
    scores,
)
from unordinal.model import CategoricalModel
from unordinal.names import counted
from unordinal.progress import Progress, silent

ROUNDING = 1e-4  # relative; what float32 leaves of a probability
PATTERNS = 4  # of known positions
ALONE = 16  # examples that are scored by themselves too


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Args:
        check: what was checked.
        passed: whether it holds.
        text: what was measured.

    >>> print(Finding("samples are examples", True, "all of 100 are inside the space"))
    ok     samples are examples: all of 100 are inside the space
    """

    check: str
    passed: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok   ' if self.passed else 'WRONG'}  {self.check}: {self.text}"


@dataclass(frozen=True)
class Audit:
    """All that an audit found.

    Args:
        num_examples: how many examples the space has.
        findings: the checks.

    >>> audit(2, 2, sample=lambda num: torch.zeros(num, 2)).passed
    True
    """

    num_examples: int
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether every check holds."""
        return all(finding.passed for finding in self.findings)

    def __str__(self) -> str:
        head = f"{counted(self.num_examples, 'example')} enumerated"
        return "\n".join([head, *map(str, self.findings)])

    def __repr__(self) -> str:
        return str(self)


def audit(
    space: Any,
    length: int | None = None,
    *,
    log_prob: Scoring | None = None,
    bound: Scoring | None = None,
    expected_bound: Scoring | None = None,
    weight: Scoring | None = None,
    sample: Callable[[int], Any] | None = None,
    fill: Callable[[Any], Any] | None = None,
    ends: bool = False,
    draws: int = 400,
    num_samples: int = 20_000,
    seed: int = 0,
    progress: Progress = silent,
) -> Audit:
    """Check likelihoods, bounds and samples of a model of yours against all examples of a small space.

    The functions may be of any library: they receive arrays of classes as torch tensors, and may return tensors, arrays
    or lists. What can be checked depends on which of them are given; `docs/figures.md` says what each check means.

    Args:
        space: the number of classes, or one number for each position; or a model or a run of this library, whose
            functions are then checked.
        length: the number of positions.
        log_prob: returns log P(x): its exponentials must sum to 1.
        bound: draws an estimate of a lower bound on log P(x): the exponentials of its means must sum to at most 1, and
            no mean may be above log P(x), where that is known from `log_prob`, or from how often `sample` draws x.
        expected_bound: returns the exact expectation of `bound`, which the mean of the draws must equal.
        weight: draws an importance weight in log space, whose exponentials must have the mean P(x).
        sample: draws N examples (N, L), which must follow P.
        fill: completes examples (N, L) that have -1 where a position is free: known positions must stay, and the others
            must follow P given those.
        ends: whether examples may end early; the positions after an end hold the number of classes.
        draws: how many draws of `bound` and `weight` each example has.
        num_samples: how many samples are drawn.
        seed: seed of torch's random numbers.
        progress: receives the progress.

    Returns:
        What was found; `print` shows it, and `passed` says whether all checks hold.

    >>> coin = lambda x: x.double().mul(0.5).sub(1).sum(1)  # not normalised
    >>> print(audit(2, 3, log_prob=coin))
    8 examples enumerated
    WRONG  log_prob sums to 1: the probabilities of all examples sum to 0.925
    """
    if not isinstance(space, int | Sequence):
        return audit_model(space, draws=draws, num_samples=num_samples, seed=seed, progress=progress)
    given: dict[str, Any] = {"log_prob": log_prob, "bound": bound, "weight": weight, "sample": sample, "fill": fill}
    if all(function is None for function in given.values()):
        raise ValueError(f"nothing to audit; give at least one of {', '.join(f'`{name}`' for name in given)}")
    x, findings = every_example(space, length, ends=ends), list[Finding]()
    work = (0 if bound is None else draws) + (0 if weight is None else draws) + 10
    with torch.random.fork_rng(), progress("Auditing", work) as advance, torch.no_grad():
        torch.manual_seed(seed)
        log_p = None
        if log_prob is not None:
            log_p, found = checked_log_prob(log_prob, x)
            findings += found
        advance(5)
        truth = log_p if log_p is not None and all(finding.passed for finding in findings) else None
        counts = None
        if sample is not None:
            counts, finding = checked_samples(sample(num_samples), x, truth)
            findings.append(finding)
        if bound is not None:
            means, errors = mean_and_error(bound, x, draws, advance)
            findings += checked_bound(means, errors, truth, counts)
            if expected_bound is not None:
                findings.append(checked_mean("bound is unbiased", means, errors, scores(expected_bound, x)))
        if weight is not None:
            means, errors = mean_and_error(lambda part: np.exp(scores(weight, part)), x, draws, advance)
            findings += checked_weights(means, errors, truth)
        if fill is not None:
            findings += checked_fill(fill, x, truth, num_samples, ends=ends)
        advance(5)
    return Audit(len(x), tuple(findings))


def audit_model(subject: Any, **settings: Any) -> Audit:
    """Audit a model or a run of this library by its own functions."""
    model = getattr(subject, "model", subject)
    if not isinstance(model, CategoricalModel):
        raise ValueError(f"expected a model, a run, or the number of classes, got {type(subject).__name__}")
    shape = tuple(model.event_shape)
    weights, denoiser = model.weights, model.denoiser
    takes_known = model.marginals is not None if denoiser is None else denoiser.takes_any_known

    def shaped(x: torch.Tensor) -> torch.Tensor:
        return x.view(len(x), *shape)

    def filled(known: torch.Tensor) -> torch.Tensor:
        return model.sample(len(known), known=shaped(known), event_shape=shape).flatten(1)

    return audit(
        model.classes.columns or model.num_classes,
        math.prod(shape),
        ends=model.ends,
        log_prob=(lambda x: model.elbo(shaped(x))) if model.is_exact else None,
        bound=None if model.is_exact else lambda x: model.elbo(shaped(x)),
        weight=None if weights is None or model.is_exact else lambda x: weights(shaped(x)),
        sample=lambda num: model.sample(num).flatten(1),
        fill=(lambda known: model.sample(len(known), known=shaped(known), event_shape=shape).flatten(1))
        if takes_known
        else None,
        **settings,
    )


def checked_log_prob(log_prob: Scoring, x: torch.Tensor) -> tuple[np.ndarray, list[Finding]]:
    """Check that probabilities sum to 1, and are the same in another batch; return their logarithms."""
    log_p = scores(log_prob, x)
    if np.isnan(log_p).any():
        text = f"{counted(int(np.isnan(log_p).sum()), 'value')} are not numbers"
        return log_p, [Finding("log_prob is a number", False, text)]
    total = float(np.exp(log_p).sum())
    text = f"the probabilities of all examples sum to {total:.{6 if abs(total - 1) < ROUNDING else 3}f}"
    found = [Finding("log_prob sums to 1", abs(total - 1) < ROUNDING, text)]
    p, alone = np.exp(log_p), np.exp(np.concatenate([scores(log_prob, row) for row in x[:ALONE].split(1)]))
    if not np.allclose(p[:ALONE], alone, rtol=ROUNDING, atol=ROUNDING * p.max()):
        text = f"the probability of an example differs by {np.abs(p[:ALONE] - alone).max():.2g} when it is scored alone"
        found.append(Finding("log_prob does not depend on other examples", False, text))
    return log_p, found


def checked_bound(
    means: np.ndarray, errors: np.ndarray, log_p: np.ndarray | None, counts: np.ndarray | None
) -> list[Finding]:
    """Check that the exponentials of a bound's means sum to at most 1, and that none is above log P."""
    if np.isnan(means).any():
        return [Finding("bound is a number", False, f"{counted(int(np.isnan(means).sum()), 'mean')} are not numbers")]
    parts = np.exp(means - errors**2 / 2)  # the exponential of a noisy mean is too large by this factor
    total, error = float(parts.sum()), float(np.sqrt(np.sum((parts * errors) ** 2)))
    text = f"the exponentials of its means sum to {total:.4f} ± {error:.4f}"
    found = [Finding("bound sums to at most 1", total <= 1 + ROUNDING + largest_z(1) * error, text)]
    if log_p is not None:
        z = deviates(means - log_p, errors, ROUNDING)
        worst, gap = int(z.argmax()), float(np.sum(np.exp(log_p) * (log_p - means))) / math.log(2)
        text = f"the mean gap is {gap:.4f} bits; the largest excess is {z[worst]:.1f} standard errors, at {worst}"
        found.append(Finding("bound is below log_prob", z[worst] < largest_z(len(means)), text))
    elif counts is not None:
        # the probability of so few samples if P(x) were what the bound says, or a few errors less
        expected = np.exp(means - largest_z(1) * errors) * counts.sum()
        chances = torch.special.gammaincc(torch.from_numpy(counts + 1.0), torch.from_numpy(expected))
        text = f"the chance of so few samples of an example is {float(chances.min()):.2g} or more"
        passed = bool(chances.min() > CHANCE / len(means))
        found.append(Finding("bound is below the logarithm of frequencies", passed, text))
    return found


def checked_mean(check: str, means: np.ndarray, errors: np.ndarray, expected: np.ndarray) -> Finding:
    """Check the means of draws against what they should be."""
    z = np.abs(deviates(means - expected, errors, ROUNDING * np.maximum(np.abs(expected), 1e-3)))
    text = f"the largest difference from the expectation is {z.max():.1f} standard errors"
    return Finding(check, bool(z.max() < largest_z(len(means))), text)


def checked_weights(means: np.ndarray, errors: np.ndarray, log_p: np.ndarray | None) -> list[Finding]:
    """Check that importance weights have the mean P, or means that sum to 1."""
    if log_p is not None:
        return [checked_mean("weights have the mean P", means, errors, np.exp(log_p))]
    total, error = float(means.sum()), float(np.sqrt(np.sum(errors**2)))
    passed = abs(total - 1) <= ROUNDING + largest_z(1) * error
    return [Finding("weights sum to 1", passed, f"their means sum to {total:.4f} ± {error:.4f}")]


def checked_samples(drawn: Any, x: torch.Tensor, log_p: np.ndarray | None) -> tuple[np.ndarray, Finding]:
    """Check that samples are examples and follow P; return how often each example came up."""
    index = indices_of(drawn, x)
    counts, bad = np.bincount(index[index >= 0], minlength=len(x)), int((index < 0).sum())
    if bad:
        return counts, Finding("samples are examples", False, f"{bad} of {len(index)} are outside the space")
    if log_p is None:
        return counts, Finding("samples are examples", True, f"all of {len(index)} are inside the space")
    p_value = chi_square(counts, np.exp(log_p))
    text = f"{len(index)} samples, chi-square p = {p_value:.2g}"
    return counts, Finding("samples follow log_prob", p_value > CHANCE, text)


def checked_fill(
    fill: Callable[[Any], Any], x: torch.Tensor, log_p: np.ndarray | None, num: int, *, ends: bool
) -> list[Finding]:
    """Check that known positions stay, and that the others follow P given them."""
    length, kept, p_values = x.shape[1], 0, []
    whole = x[(x < x.max()).all(dim=1)] if ends else x
    for row in whole[torch.randint(len(whole), (PATTERNS,))]:
        order = torch.randperm(length)
        is_known = torch.zeros(length, dtype=torch.bool)
        is_known[order[: max(1, length // 2)] if length > 1 else []] = True
        known = torch.where(is_known, row, -1)
        drawn = torch.from_numpy(np.asarray(fill(known.expand(num // PATTERNS, -1)))).reshape(-1, length)
        kept += int((drawn[:, is_known] == row[is_known]).all(dim=1).sum())
        if log_p is not None and not ends:
            agrees = (x[:, is_known] == row[is_known]).all(dim=1).numpy()
            p, index = np.where(agrees, np.exp(log_p), 0.0), indices_of(drawn, x)
            p_values.append(chi_square(np.bincount(index[index >= 0], minlength=len(x)), p / p.sum()))
    total = PATTERNS * (num // PATTERNS)
    found = [Finding("known positions are kept", kept == total, f"in {kept:,} of {total:,} samples")]
    if p_values:
        text = f"{counted(PATTERNS, 'pattern')} of known positions, smallest chi-square p = {min(p_values):.2g}"
        found.append(Finding("filled positions follow log_prob", min(p_values) > CHANCE / PATTERNS, text))
    return found
