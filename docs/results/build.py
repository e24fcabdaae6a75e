"""Write the pages of results from the JSON files in this folder: `python docs/results/build.py`.

A file is either the results.json of `unordinal reproduce`, which becomes a page for each of its tables, or an article:
its title, a summary in one sentence, date and machine, and its parts. findings.json has two sentences for each page of
a reproduction: what of the paper's claim holds there, and what does not.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from unordinal.experiments import Table
from unordinal.reproduce.jobs import Asked, tables_named
from unordinal.reproduce.outcome import Outcome, differing, made_with
from unordinal.reproduce.parts import Code, Grid, Heading, Paragraph, Part, Picture, as_markdown
from unordinal.reproduce.render import commands_of, results_of, section_of

HERE = Path(__file__).resolve().parent
FINDINGS = "findings.json"
UNBROKEN = "\u00a0±\u00a0"  # so that narrow tables do not part a figure from its error
NOT_YET = "This page has no findings yet."
INTRODUCTION = (
    "Each page is made from a JSON file by `python docs/results/build.py`, and has one machine, one date and the "
    "commands that made it. Scores carry their kind and their standard error. Nothing was trained on a GPU."
)


def nothing() -> bytes:
    """Stand for the drawing of a picture that is a file already."""
    return b""


def part_of(values: dict[str, Any]) -> Part:
    """Return a part of an article from its JSON."""
    (kind, value), *others = values.items()
    assert not others, values
    match kind:
        case "heading":
            return Heading(value)
        case "paragraph":
            return Paragraph(value)
        case "table":
            return Grid((tuple(value["head"]), [tuple(line) for line in value["lines"]]))
        case "code":
            return Code(tuple(value))
        case "picture":
            return Picture(value["name"], value["alt"], nothing)
    raise ValueError(f"unknown kind of part {kind!r}")


def article(values: dict[str, Any]) -> str:
    """Return the page of an article."""
    made = f"*{values['date']}, {values['machine']}.* {values['summary']}"
    parts: list[Part] = [Paragraph(made), *map(part_of, values["parts"])]
    return as_markdown(values["title"], parts, has_pictures=True)


def tables_of(path: Path, findings: dict[str, str]) -> dict[str, tuple[str, str, list[Part]]]:
    """Return for each table of a reproduction the name of its page, its title, its findings and its parts."""
    outcome = Outcome.from_dict(json.loads(path.read_text()))
    suffix = "" if outcome.asked.size == "tiny" else f"-{outcome.asked.size}"
    pages = {}
    for name, table in tables_named(outcome.asked.names).items():
        results = results_of(table, outcome)
        section = section_of(name, table, outcome, num_samples=1)
        if not section:
            continue
        page, part = f"{name}{suffix}", Outcome(outcome.asked, {str(n): found for n, found in enumerate(results)}, {})
        grid, *rest = section
        found = findings.get(page, NOT_YET)
        parts = [Paragraph(f"*{made_with(part)}.*"), grid, Paragraph(found), *rest]
        asked = replace(outcome.asked, names=(name,))
        if table.kind == "scores":
            parts.append(Paragraph(differing(replace(outcome, asked=asked))))
        parts += [Heading("Commands"), Paragraph("The whole table:"), Code((command_of(asked, table),))]
        parts += [Paragraph("Its rows one by one:")] if results else []
        title = table.title if outcome.asked.size == "tiny" else f"{table.title}: size {outcome.asked.size}"
        pages[page] = (title, found, [*parts, *([Code(commands_of(results))] if results else [])])
    return pages


def command_of(asked: Asked, table: Table) -> str:
    """Return the command that makes a table."""
    used = {row.data for row in table.rows} - {"toy"}
    words = ["unordinal", "reproduce", *asked.names, "--size", asked.size]
    words += [] if asked.minutes is None else ["--minutes", f"{asked.minutes:g}"]
    words += [word for task, what in asked.data if task in used for word in ("--data", f"{task}={what}")]
    return " ".join([*words, *(["--rows", *asked.rows] if asked.rows else [])])


def pages(folder: Path = HERE) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the pages and the pictures that the files of a folder make, by their file names."""
    texts: dict[str, str] = {}
    pictures: dict[str, Any] = {}
    index: dict[str, list[tuple[str, ...]]] = {"paper": [], "own": []}
    findings = json.loads((folder / FINDINGS).read_text())
    for path in sorted(folder.glob("*.json")):
        if path.name == FINDINGS:
            continue
        values = json.loads(path.read_text())
        if values["unordinal"] == "article":
            texts[f"{path.stem}.md"] = article(values)
            link = f"[{values['title']}]({path.stem}.md)"
            index["own"].append((link, values["summary"], values["date"]))
            continue
        for page, (title, found, parts) in tables_of(path, findings).items():
            texts[f"{page}.md"] = as_markdown(title, parts, has_pictures=True)
            pictures |= {f"{part.name}.png": part.draw for part in parts if isinstance(part, Picture)}
            index["paper"].append((f"[{title}]({page}.md)", found, str(json.loads(path.read_text())["asked"]["size"])))
    contents: list[Part] = [Paragraph(INTRODUCTION)]
    contents += [Heading("The paper, reproduced"), Grid((("page", "what it says", "size"), index["paper"]))]
    contents += [Heading("Measurements of our own"), Grid((("page", "what it says", "date"), index["own"]))]
    texts["index.md"] = as_markdown("Results", contents)
    return {name: text.replace(" ± ", UNBROKEN) for name, text in texts.items()}, pictures


def main() -> None:
    """Write all pages and pictures."""
    texts, pictures = pages()
    for name, text in texts.items():
        (HERE / name).write_text(text)
    for name, draw in pictures.items():
        (HERE / name).write_bytes(draw())


if __name__ == "__main__":
    main()
