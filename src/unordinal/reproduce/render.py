"""The report of a reproduction: tables as Markdown and HTML, with the paper's figures, samples and pictures."""

import io
import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unordinal.data.spec import DataSpec
from unordinal.evaluate.pictures import plot_grid
from unordinal.evaluate.report import Report
from unordinal.experiments import DATA, Figure, Row, Sentence, Table
from unordinal.reproduce.jobs import SCALING_SIZES, TIMES, Asked, jobs_of_row, labelled, tables_named
from unordinal.reproduce.scaling import fitted, plot_scaling
from unordinal.reproduce.show import of_digits

Cells = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The head of a table and its lines."""
WHAT_DIFFERS = (
    "The paper trains models of its size paper on the whole of its data for days, on GPUs. Here: {size} models, "
    "{minutes} for each row, {data}. Where the paper gives two figures for one experiment, both are shown."
)


@dataclass(frozen=True)
class Outcome:
    """All that a report is made from: what was asked, and the results and states of the jobs."""

    asked: Asked
    results: dict[str, Any]
    states: dict[str, str]  # why a job has no result, or that its result is stale

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that can be written as JSON."""
        return {
            "unordinal": "reproduction",
            "asked": self.asked.to_dict(),
            "states": self.states,
            "results": self.results,
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Outcome":
        """Return what was written as JSON; raise a ValueError if it is something else."""
        if values.get("unordinal") != "reproduction":
            raise ValueError("expected the results.json that `unordinal reproduce` writes")
        asked = dict(values["asked"])
        asked |= {"names": tuple(asked["names"]), "data": tuple((task, what) for task, what in asked["data"])}
        return Outcome(Asked(**asked), values["results"], values["states"])


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


def score_lines(table: Table, row: Row, outcome: Outcome) -> list[tuple[str, ...]]:
    """Return the lines of a row, one for each of its data sets."""
    has_iwbo = any(other.iwbo for other in table.rows)
    lines = []
    for task, _, label in labelled(outcome.asked):
        if task != row.data:
            continue
        keys = [job.key for job in jobs_of_row(row, table.kind, outcome.asked, label)]
        found = [outcome.results[key] for key in keys if key in outcome.results]
        missing = [outcome.states.get(key, "not run") for key in keys if key not in outcome.results]
        title = row.title + (" (not in the paper)" if row.since else "")
        if not found:
            ours, scored, steps = missing[0] if missing else "not run", "-", "-"
            iwbo = "-"
        else:
            first = found[0]
            ours = over_seeds(found) if row.seeds > 1 else shown_score(first["scores"]["elbo"], row.data == "toy")
            scored, steps = f"{first['scores']['elbo']['num_examples']:,}", f"{first['trained']['steps']:,}"
            iwbo = shown_score(first["scores"].get("iwbo")) if row.iwbo else "-"
            stale = [key for key in keys if outcome.states.get(key) == "stale"]
            title += " (stale)" if stale else ""
        middle = (ours, said(row.figures), iwbo, said(row.iwbo)) if has_iwbo else (ours, said(row.figures))
        lines.append((title, label, *middle, scored, steps))
    return lines


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
    return ("model", "data", *middle, "scored", "steps"), lines


def times_of(table: Table, outcome: Outcome) -> Cells:
    """Return the table of sampling times."""
    result, lines = outcome.results.get(TIMES), list[tuple[str, ...]]()
    for row in table.rows:
        wanted = row.settings.get("flow", "") if row.steps is None else f"{row.steps} steps"
        timing = next(
            (t for t in (result or {}).get("times", ()) if (t["preset"], t["variant"]) == (row.experiment, wanted)),
            None,
        )
        ours = outcome.states.get(TIMES, "not run")
        if timing is not None:
            spread = "" if timing["deviation"] is None else f" ± {timing['deviation']:.3f}"
            ours = f"{timing['mean']:.3f}{spread}"
        lines.append((row.title, ours, said(row.figures)))
    return ("model", "ours, seconds", "the paper, on a 1080Ti"), lines


def scaling_of(table: Table, outcome: Outcome) -> Cells:
    """Return the table of scores against budgets."""
    head, lines = ("model", "size", "one-core minutes and bits per character"), list[tuple[str, ...]]()
    for row in table.rows:
        jobs = jobs_of_row(row, table.kind, outcome.asked)
        for size in SCALING_SIZES:
            own = [job for job in jobs if job.size == size]
            cells = []
            for job in own:
                found = outcome.results.get(job.key)
                text = shown_score(found["scores"]["elbo"]) if found else outcome.states.get(job.key, "not run")
                cells.append(f"{job.minutes:g}: {text}")
            lines.append((row.title, size, "; ".join(cells)))
    return head, lines


def differing(outcome: Outcome) -> str:
    """Return in what a reproduction differs from the paper."""
    asked = outcome.asked
    minutes = "the paper's budget" if asked.minutes is None else f"{asked.minutes:g} minutes on {asked.threads} threads"
    used = {task for table in tables_named(asked.names).values() for task in (row.data for row in table.rows)}
    data = "; ".join(f"{DATA[task].source} is {what}" for task, what in asked.data if task in used)
    return WHAT_DIFFERS.format(size=asked.size, minutes=minutes, data=data)


def made_with(outcome: Outcome) -> str:
    """Return where and when the results were made."""
    found = {
        f"{result['date']}, unordinal {result['version']}, commit {result['commit']}, "
        f"{result['machine']['cores']} cores, torch {result['machine']['torch']}"
        for result in outcome.results.values()
    }
    return "; ".join(sorted(found)) or "nothing was run"


def shown_keys(table: Table, outcome: Outcome) -> list[tuple[str, dict[str, Any]]]:
    """Return the title and the result of each row of a table that has one with samples."""
    found = []
    for row in table.rows:
        for job in jobs_of_row(row, table.kind, outcome.asked):
            result = outcome.results.get(job.key)
            if result is not None and result.get("shown"):
                label = job.key.partition("-")[0]
                found.append((f"{row.title}, {label}", result))
    return found


def markdown(outcome: Outcome) -> str:
    """Return the report as Markdown, without pictures."""
    parts = [
        "# Reproduction of *Argmax Flows and Multinomial Diffusion*",
        differing(outcome),
        f"Made: {made_with(outcome)}.",
    ]
    for name, table in tables_named(outcome.asked.names).items():
        head, lines = table_of(table, outcome)
        parts.append(f"## {table.title}")
        rows = [head, tuple("---" for _ in head), *lines]
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        if table.claim:
            parts.append(f"The paper: {table.claim}.")
        if name == "scaling":
            parts += scaling_text(table, outcome)
        parts += texts_of(table, outcome)
    parts.append("## Commands")
    commands = sorted({result["command"] for result in outcome.results.values()})
    parts.append("\n".join(f"    {command}" for command in commands) or "None was run.")
    return "\n\n".join(parts) + "\n"


def texts_of(table: Table, outcome: Outcome) -> list[str]:
    """Return samples, chains and corrections of a table's models as Markdown."""
    parts = []
    for title, result in shown_keys(table, outcome):
        shown = result["shown"]
        if "samples" in table.shown and "samples" in shown:
            parts.append(f"Samples of {title}:\n\n" + "\n".join(f"    {text!r}" for text in shown["samples"]))
        if "chain" in table.shown and "chain" in shown:
            parts.append(f"Chain of {title}:\n\n" + "\n".join(f"    t={t:<6} {text!r}" for t, text in shown["chain"]))
        if "spelling" in table.shown and "spelling" in shown:
            spelt = "\n".join(f"    {name:<10} {text!r}" for name, text in shown["spelling"].items())
            parts.append(f"Correction by {title}:\n\n{spelt}")
    return parts


def scaling_text(table: Table, outcome: Outcome) -> list[str]:
    """Return the fitted laws of the scaling table."""
    parts = []
    for row in table.rows:
        law = fitted(points_of(row, table, outcome))
        if law is not None:
            parts.append(f"{row.title}: {law}")
    return parts


def points_of(row: Row, table: Table, outcome: Outcome) -> list[tuple[float, float]]:
    """Return one-core minutes and bits per character of a row of the scaling table."""
    jobs = jobs_of_row(row, table.kind, outcome.asked)
    found = [(job.minutes, outcome.results.get(job.key)) for job in jobs]
    return [(minutes, result["scores"]["elbo"]["bits_per_dim"]) for minutes, result in found if minutes and result]


def page(outcome: Outcome) -> bytes:
    """Return the report as one HTML page with its pictures."""
    report = Report("Reproduction of Argmax Flows and Multinomial Diffusion")
    report.paragraph(differing(outcome))
    report.paragraph(f"Made: {made_with(outcome)}.")
    for name, table in tables_named(outcome.asked.names).items():
        report.heading(table.title)
        report.table(*table_of(table, outcome))
        if table.claim:
            report.paragraph(f"The paper: {table.claim}.")
        if name == "scaling":
            points = {row.title: points_of(row, table, outcome) for row in table.rows}
            if any(points.values()):
                report.picture(plot_scaling(points), "bits per character against one-core minutes")
            for text in scaling_text(table, outcome):
                report.paragraph(text)
        for text in texts_of(table, outcome):
            title, _, body = text.partition("\n\n")
            report.paragraph(title)
            report.code("\n".join(line.removeprefix("    ") for line in body.splitlines()))
        for title, result in shown_keys(table, outcome):
            if "maps" in table.shown and "maps" in result["shown"]:
                report.picture(maps_png(title, result), f"maps drawn by {title}")
            if "probabilities" in table.shown and "probabilities" in result["shown"]:
                report.picture(probabilities_png(title, result), f"probabilities of {title}")
    report.heading("Commands")
    report.code("\n".join(sorted({result["command"] for result in outcome.results.values()})) or "None was run.")
    return report.render()


def maps_png(title: str, result: dict[str, Any]) -> bytes:
    """Return the PNG of the maps that a model drew."""
    x = torch.from_numpy(np.stack([of_digits(rows) for rows in result["shown"]["maps"]]))
    categories = tuple((name, colour) for name, colour in result["data"].get("categories", ()))
    spec = DataSpec("maps", result["data"].get("num_classes", 8), tuple(x.shape[1:]), categories=categories)
    buffer = io.BytesIO()
    plot_grid([(title, x)], spec, buffer)
    return buffer.getvalue()


def probabilities_png(title: str, result: dict[str, Any]) -> bytes:
    """Return the PNG of the probabilities of the data, of a model and of its samples."""
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(10.5, 3.9), layout="constrained")
    shown = result["shown"]["probabilities"]
    for axes, (name, values) in zip(figure.subplots(1, len(shown)), shown.items(), strict=True):
        axes.imshow(np.array(values).T, origin="lower", cmap="viridis")
        axes.set_title(f"{name}: {title}" if name == "model" else name, fontsize=10)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
