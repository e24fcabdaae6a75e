"""Whether models are ordered here as they are in the paper."""

import math
import statistics
from dataclasses import dataclass
from itertools import combinations

from unordinal.experiments import Row, Table
from unordinal.names import counted
from unordinal.reproduce.jobs import jobs_of_row, labelled
from unordinal.reproduce.outcome import Outcome
from unordinal.reproduce.tables import timing_of

CLEAR = 2.0  # standard errors of a difference that counts
MOST_NAMED = 6  # pairs that are named


@dataclass(frozen=True)
class Measured:
    """A row as the paper has it, and as it is here."""

    title: str
    paper: float
    ours: float
    error: float


def verdicts(table: Table, outcome: Outcome) -> list[str]:
    """Return for each data set of a table how many pairs of its rows are ordered as in the paper."""
    if table.kind == "scaling":
        return []
    labels = [(task, label) for task, _, label in labelled(outcome.asked)]
    found = []
    for label in dict.fromkeys(label for task, label in labels if any(row.data == task for row in table.rows)):
        rows = [measured(row, table, outcome, label) for row in table.rows]
        text = verdict([row for row in rows if row is not None])
        found += [f"On {label}, {text}" if table.kind == "scores" else f"Here {text}"] if text else []
    return found


def measured(row: Row, table: Table, outcome: Outcome, label: str) -> Measured | None:
    """Return a row on one of its data sets, or None if the paper or this reproduction has no figure for it."""
    if not row.figures:
        return None
    paper = row.figures[0].value
    if table.kind == "times":
        timing = timing_of(row, outcome)
        return None if timing is None else Measured(row.title, paper, timing["mean"], timing["deviation"] or 0.0)
    keys = [job.key for job in jobs_of_row(row, table.kind, outcome.asked, label)]
    scores = [outcome.results[key]["scores"]["elbo"] for key in keys if key in outcome.results]
    if not scores:
        return None
    ours = statistics.fmean(score["bits_per_dim"] for score in scores)
    return Measured(row.title, paper, ours, max(score["standard_error"] or 0.0 for score in scores))


def verdict(rows: list[Measured]) -> str:
    """Return how many pairs of rows are ordered as in the paper, and which are not.

    >>> verdict([Measured("A", 1.0, 2.0, 0.01), Measured("B", 1.1, 2.5, 0.01), Measured("C", 1.2, 2.1, 0.01)])
    'the order of the paper holds for 2 of 3 pairs of models. Reversed: C before B.'
    """
    pairs = [
        sorted(pair, key=lambda row: row.paper) for pair in combinations(rows, 2) if pair[0].paper != pair[1].paper
    ]
    if not pairs:
        return ""
    tied = [pair for pair in pairs if is_tied(*pair)]
    reversed_ = [pair for pair in pairs if not is_tied(*pair) and pair[0].ours > pair[1].ours]
    same = len(pairs) - len(tied) - len(reversed_)
    text = f"the order of the paper holds for {same} of {counted(len(pairs), 'pair')} of models."
    text += f" {counted(len(tied), 'pair')} cannot be told apart." if tied else ""
    named = "; ".join(f"{worse.title} before {better.title}" for better, worse in reversed_[:MOST_NAMED])
    more = f"; and {len(reversed_) - MOST_NAMED} more" if len(reversed_) > MOST_NAMED else ""
    return text + (f" Reversed: {named}{more}." if reversed_ else "")


def is_tied(one: Measured, other: Measured) -> bool:
    """Return whether the figures of two rows are within two standard errors of their difference."""
    return abs(one.ours - other.ours) <= CLEAR * math.hypot(one.error, other.error)
