"""The tables of a report: our figures next to those of the paper."""

import statistics
from typing import Any

from unordinal.experiments import Figure, Row, Sentence, Table
from unordinal.reproduce.jobs import SCALING_SIZES, TIMES, jobs_of_row, labelled
from unordinal.reproduce.outcome import Outcome

Cells = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The head of a table and its lines."""


def table_of(table: Table, outcome: Outcome) -> Cells:
    """Return the head and the lines of a table."""
    if table.kind == "times":
        return times_of(table, outcome)
    if table.kind == "scaling":
        return scaling_of(table, outcome)
    lines = [line for row in table.rows for line in score_lines(table, row, outcome)]
    middle = ("ours", "the paper")
    if any(row.iwbo for row in table.rows):
        middle = ("ours, ELBO", "the paper, ELBO", "ours, IWBO", "the paper, IWBO")  # type: ignore[assignment]
    return ("model", "data", *middle, "parameters", "steps", "examples scored"), lines


def score_lines(table: Table, row: Row, outcome: Outcome) -> list[tuple[str, ...]]:
    """Return the lines of a row, one for each of its data sets."""
    has_iwbo = any(other.iwbo for other in table.rows)
    lines = []
    for task, _, label in labelled(outcome.asked):
        if task != row.data:
            continue
        keys = [job.key for job in jobs_of_row(row, table.kind, outcome.asked, label)]
        if not keys:
            continue
        found = [outcome.results[key] for key in keys if key in outcome.results]
        missing = [outcome.states.get(key, "not run") for key in keys if key not in outcome.results]
        title = row.title + (" (not in the paper)" if row.since else "")
        if not found:
            ours, iwbo, rest = missing[0] if missing else "not run", "-", ("-", "-", "-")
        else:
            first = found[0]
            ours = over_seeds(found) if row.seeds > 1 else shown_score(first["scores"]["elbo"], row.data == "toy")
            trained, num = first["trained"], first["scores"]["elbo"]["num_examples"]
            rest = (f"{trained['parameters']:,}", f"{trained['steps']:,}", f"{num:,}")
            iwbo = shown_score(first["scores"].get("iwbo")) if row.iwbo else "-"
            stale = [key for key in keys if outcome.states.get(key) == "stale"]
            title += " (stale)" if stale else ""
        middle = (ours, said(row.figures), iwbo, said(row.iwbo)) if has_iwbo else (ours, said(row.figures))
        lines.append((title, label, *middle, *rest))
    return lines


def times_of(table: Table, outcome: Outcome) -> Cells:
    """Return the table of sampling times."""
    lines = list[tuple[str, ...]]()
    for row in table.rows if outcome.asked.has(TIMES) else ():
        timing, ours = timing_of(row, outcome), outcome.states.get(TIMES, "not run")
        if timing is not None:
            spread = "" if timing["deviation"] is None else f" ± {timing['deviation']:.3f}"
            ours = f"{timing['mean']:.3f}{spread}"
        lines.append((row.title, ours, said(row.figures)))
    return ("model", "ours, seconds", "the paper, on a 1080Ti"), lines


def timing_of(row: Row, outcome: Outcome) -> dict[str, Any] | None:
    """Return the sampling time of a row, or None if it was not measured."""
    wanted = row.settings.get("flow", "") if row.steps is None else f"{row.steps} steps"
    times = outcome.results.get(TIMES, {}).get("times", ())
    return next((time for time in times if (time["preset"], time["variant"]) == (row.experiment, wanted)), None)


def scaling_of(table: Table, outcome: Outcome) -> Cells:
    """Return the table of scores against budgets."""
    head, lines = ("model", "size", "one-core minutes and bits per character"), list[tuple[str, ...]]()
    for row in table.rows:
        jobs = jobs_of_row(row, table.kind, outcome.asked)
        for size in SCALING_SIZES:
            own = [job for job in jobs if job.size == size]
            if not own:
                continue
            cells = []
            for job in own:
                found = outcome.results.get(job.key)
                text = shown_score(found["scores"]["elbo"]) if found else outcome.states.get(job.key, "not run")
                cells.append(f"{job.minutes:g}: {text}")
            lines.append((row.title, size, "; ".join(cells)))
    return head, lines


def said(figures: tuple[Figure | Sentence, ...]) -> str:
    """Return the paper's figures for a row as text."""
    if not figures:
        return "-"
    first, *others = figures
    error = f" ± {first.error:g}" if isinstance(first, Figure) and first.error is not None else ""
    note = f" ({first.note})" if first.note and not others else ""
    return f"{first.value:g}{error}{note}" + "".join(f"; {other.note}" for other in others)


def named(kind: str) -> str:
    """Return a kind of score as people write it.

    >>> named("iwbo-1000"), named("exact")
    ('IWBO-1000', 'exact')
    """
    return kind if kind.startswith("exact") else kind.upper()


def shown_score(score: dict[str, Any] | None, in_nats: bool = False) -> str:
    """Return a score as text, with its error and kind."""
    if score is None:
        return "-"
    value, error = score["bits_per_dim"], score["standard_error"]
    if in_nats:
        scale = score["nats_per_example"] / value if value else 1.0
        value, error = score["nats_per_example"], None if error is None else error * scale
    return f"{value:.3f}" + ("" if error is None else f" ± {error:.3f}") + f" {named(score['kind'])}"


def over_seeds(found: list[dict[str, Any]]) -> str:
    """Return the mean and the deviation of the scores of several runs."""
    values = [result["scores"]["elbo"]["bits_per_dim"] for result in found]
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.3f}{spread} over {len(values)} {named(found[0]['scores']['elbo']['kind'])}"
