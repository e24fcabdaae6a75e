"""The parts of a report, and the report as Markdown or as one HTML page."""

from collections.abc import Callable
from dataclasses import dataclass

from unordinal.evaluate.report import Report
from unordinal.reproduce.tables import Cells


@dataclass(frozen=True)
class Heading:
    """The heading of a section."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table: its head and its lines."""

    cells: Cells


@dataclass(frozen=True)
class Code:
    """Lines that are shown as they are, such as commands and samples."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A picture, drawn when it is shown.

    Args:
        name: its file name, without an ending.
        alt: what it shows.
        draw: returns a PNG.
    """

    name: str
    alt: str
    draw: Callable[[], bytes]


Part = Heading | Paragraph | Grid | Code | Picture


def as_markdown(title: str, parts: list[Part], *, has_pictures: bool = False) -> str:
    """Return parts as Markdown; pictures are left out, or named as files next to it.

    >>> print(as_markdown("Title", [Grid((("a", "b"), [("1", "2")])), Code(("x = 1",))]), end="")
    # Title
    <BLANKLINE>
    | a | b |
    | --- | --- |
    | 1 | 2 |
    <BLANKLINE>
        x = 1
    """
    found = [f"# {title}"]
    for part in parts:
        match part:
            case Heading(text):
                found.append(f"## {text}")
            case Paragraph(text):
                found.append(text)
            case Grid((head, lines)):
                rows = [head, tuple("---" for _ in head), *lines]
                found.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
            case Code(lines):
                found.append("\n".join(f"    {line}" for line in lines))
            case Picture(name, alt):
                found += [f"![{alt}]({name}.png)"] if has_pictures else []
    return "\n\n".join(found) + "\n"


def as_page(title: str, parts: list[Part]) -> bytes:
    """Return parts as one HTML page, with its pictures inside."""
    report = Report(title)
    for part in parts:
        match part:
            case Heading(text):
                report.heading(text)
            case Paragraph(text):
                report.paragraph(text)
            case Grid((head, lines)):
                report.table(head, lines)
            case Code(lines):
                report.code("\n".join(lines))
            case Picture(_, alt, draw):
                report.picture(draw(), alt)
    return report.render()
