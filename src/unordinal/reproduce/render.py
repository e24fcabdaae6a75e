"""The report of a reproduction: sections with tables, samples and pictures, from results alone."""

import io
from functools import partial
from typing import Any

import numpy as np
import torch

from unordinal.data.spec import DataSpec
from unordinal.evaluate.pictures import plot_grid
from unordinal.experiments import Row, Table
from unordinal.reproduce.jobs import TIMES, jobs_of_row, tables_named
from unordinal.reproduce.outcome import Outcome, differing, made_with
from unordinal.reproduce.parts import Code, Grid, Heading, Paragraph, Part, Picture, as_markdown, as_page
from unordinal.reproduce.scaling import END, fitted, plot_scaling
from unordinal.reproduce.show import of_digits
from unordinal.reproduce.tables import table_of
from unordinal.reproduce.verdict import verdicts

TITLE = "Reproduction of Argmax Flows and Multinomial Diffusion"


def markdown(outcome: Outcome) -> str:
    """Return the report as Markdown, without pictures."""
    return as_markdown(TITLE, report_parts(outcome))


def page(outcome: Outcome) -> bytes:
    """Return the report as one HTML page with its pictures."""
    return as_page(TITLE, report_parts(outcome))


def report_parts(outcome: Outcome) -> list[Part]:
    """Return the parts of the report of all tables."""
    parts: list[Part] = [Paragraph(differing(outcome)), Paragraph(f"Made: {made_with(outcome)}.")]
    for name, table in tables_named(outcome.asked.names).items():
        section = section_of(name, table, outcome)
        parts += [Heading(table.title), *section] if section else []
    commands = commands_of(list(outcome.results.values()))
    return [*parts, Heading("Commands"), Code(commands) if commands else Paragraph("None was run.")]


def section_of(name: str, table: Table, outcome: Outcome, *, num_samples: int | None = None) -> list[Part]:
    """Return the parts of a table's section; none if no row of it was asked for.

    Args:
        name: the name of the table.
        table: the table.
        outcome: the results.
        num_samples: the most samples of a model that are shown; None for all of them.
    """
    cells = table_of(table, outcome)
    if not cells[1]:
        return []
    said = [f"The paper: {table.claim}."] if table.claim else []
    parts: list[Part] = [Grid(cells), *map(Paragraph, [*said, *verdicts(table, outcome)])]
    if name == "scaling":
        parts += scaling_parts(table, outcome)
    shown = shown_results(table, outcome)
    for title, result in shown:
        parts += shown_parts(title, table, result, num_samples)
    return parts + maps_of(table, shown)


def commands_of(results: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the commands of results, each once."""
    return tuple(sorted({result["command"] for result in results}))


def results_of(table: Table, outcome: Outcome) -> list[dict[str, Any]]:
    """Return the results that a table shows."""
    keys = [job.key for row in table.rows for job in jobs_of_row(row, table.kind, outcome.asked)]
    keys = [TIMES] if table.kind == "times" else keys
    return [outcome.results[key] for key in dict.fromkeys(keys) if key in outcome.results]


def shown_results(table: Table, outcome: Outcome) -> list[tuple[str, dict[str, Any]]]:
    """Return the title and the result of each row of a table that has one with samples."""
    found = []
    for row in table.rows:
        for job in jobs_of_row(row, table.kind, outcome.asked):
            result = outcome.results.get(job.key)
            if result is not None and result.get("shown"):
                label = job.key.partition("-")[0]
                found.append((f"{row.title}, {label}", result))
    return found


def maps_of(table: Table, results: list[tuple[str, dict[str, Any]]]) -> list[Part]:
    """Return a picture for each data set, of the maps that the models of a table drew."""
    drawn: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for title, result in results if "maps" in table.shown else ():
        if "maps" in result["shown"]:
            model, _, label = title.rpartition(", ")
            drawn.setdefault(label, []).append((model, result))
    return [
        Picture(f"maps-{label}", f"Maps that models of {label} drew", partial(maps_png, models))
        for label, models in drawn.items()
    ]


def shown_parts(title: str, table: Table, result: dict[str, Any], num_samples: int | None) -> list[Part]:
    """Return what was drawn from a row's model and the table shows."""
    shown, parts = {name: result["shown"][name] for name in table.shown if name in result["shown"]}, list[Part]()
    file = "".join(letter if letter.isalnum() else "-" for letter in title.lower())
    if "samples" in shown:
        parts += [Paragraph(f"Samples of {title}:"), Code(tuple(map(repr, shown["samples"][:num_samples])))]
    if "chain" in shown:
        parts += [Paragraph(f"Chain of {title}:"), Code(tuple(f"t={t:<6} {text!r}" for t, text in shown["chain"]))]
    if "spelling" in shown:
        lines = tuple(f"{name:<10} {text!r}" for name, text in shown["spelling"].items())
        parts += [Paragraph(f"Correction by {title}:"), Code(lines)]
    if "probabilities" in shown:
        alt = f"Probabilities of {title}"
        parts.append(Picture(f"probabilities-{file}", alt, partial(probabilities_png, title, result)))
    return parts


def scaling_parts(table: Table, outcome: Outcome) -> list[Part]:
    """Return the picture of the scaling table, the fitted laws, and where they end."""
    points = {row.title: points_of(row, table, outcome) for row in table.rows}
    if not any(points.values()):
        return []
    parts: list[Part] = [Picture("scaling-law", "Bits per character against minutes", partial(plot_scaling, points))]
    laws = {title: fitted(found) for title, found in points.items()}
    parts += [Paragraph(f"{title}: {law}.") for title, law in laws.items() if law is not None]
    return [*parts, Paragraph(END)]


def points_of(row: Row, table: Table, outcome: Outcome) -> list[tuple[float, float]]:
    """Return one-core minutes and bits per character of a row of the scaling table."""
    jobs = jobs_of_row(row, table.kind, outcome.asked)
    found = [(job.minutes, outcome.results.get(job.key)) for job in jobs]
    return [(minutes, result["scores"]["elbo"]["bits_per_dim"]) for minutes, result in found if minutes and result]


def maps_png(models: list[tuple[str, dict[str, Any]]]) -> bytes:
    """Return the PNG of the maps that models drew, two models side by side."""
    drawn = [
        (title, torch.from_numpy(np.stack([of_digits(rows) for rows in result["shown"]["maps"]])))
        for title, result in models
    ]
    data = models[0][1]["data"]
    categories = tuple((name, colour) for name, colour in data.get("categories", ()))
    spec = DataSpec("maps", data.get("num_classes", 8), tuple(drawn[0][1].shape[1:]), categories=categories)
    buffer = io.BytesIO()
    plot_grid(drawn, spec, buffer, abreast=2)
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
