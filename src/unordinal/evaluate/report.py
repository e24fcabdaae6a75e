"""Plots of chains, probabilities and scores as PNG, and reports about a run as a self-contained HTML page."""

import base64
import html
import io
import math
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.evaluate.score import Score

CHAIN_ROWS = 12
LISTED = 4  # headings of a page from which on it lists them
CHAIN_COLUMNS = 112  # characters
COLOURS = ("#1b7837", "#9aa0a6")  # of symbols that have their final value, and of those that have not


def chain_rows(chain: list[tuple[float, Tensor]], num_rows: int = CHAIN_ROWS) -> list[tuple[float, Tensor]]:
    """Return a few steps of a chain, including the first and the last, more closely spaced towards the end."""
    last = len(chain) - 1
    rows = min(num_rows, len(chain))
    picked = sorted({round(last * (1 - (1 - i / (rows - 1)) ** 1.5)) for i in range(rows)}) if rows > 1 else [last]
    return [chain[i] for i in picked]


def shown_time(t: float) -> str:
    """Return a time of a chain as text: a step, or a number between 0 and 1.

    >>> shown_time(4000), shown_time(1 / 3)
    ('4000', '0.333')
    """
    return f"{round(t, 3):g}"


def plot_chain(chain: list[tuple[float, Tensor]], spec: DataSpec, file: BinaryIO) -> None:
    """Write a PNG of a denoising chain of text: one line per step, and symbols that have their final value in green."""
    from matplotlib.figure import Figure

    rows, final = chain_rows(chain), chain[-1][1]
    shown = [[printable(spec.show_noisy(value.reshape(1))) for value in x] for _, x in rows]
    ends = np.cumsum([max(1, *map(len, symbols)) for symbols in zip(*shown, strict=True)])  # tokens differ in width
    num = max(1, int((ends <= CHAIN_COLUMNS).sum()))
    columns = int(ends[num - 1])
    figure = Figure(figsize=(0.086 * columns + 1.1, 0.24 * len(rows) + 0.3))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(-9, columns + 1), ylim=(len(rows), -1))
    axes.axis("off")
    for row, (t, x) in enumerate(rows):
        axes.text(-2, row, f"t={shown_time(t)}", ha="right", va="center", family="monospace", size=9, color="#5f6368")
        for place, end in enumerate(ends[:num].tolist()):
            start = 0 if place == 0 else int(ends[place - 1])
            for index, letter in enumerate(shown[row][place][: end - start]):
                colour = COLOURS[0 if x[place] == final[place] else 1]
                axes.text(
                    start + index, row, letter.replace("$", r"\$"), ha="center", va="center", family="monospace",
                    size=9, color=colour,
                )  # fmt: skip
    figure.savefig(file, format="png", dpi=150)


def printable(text: str) -> str:
    """Return a text with a dot for each character that cannot be printed."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def plot_pmf(pmf: np.ndarray, score: Score, samples: Tensor, file: BinaryIO) -> None:
    """Write a PNG of the exact probabilities, the model's probabilities (or bounds) and the frequencies of samples."""
    from matplotlib.figure import Figure

    to_nats = math.log(2) * score.dimensions
    model = np.exp(-np.array(score.per_example) * to_nats).reshape(pmf.shape)
    inside = samples[(samples < len(pmf)).all(dim=1)].numpy()
    counts = np.zeros_like(pmf)
    np.add.at(counts, tuple(inside.T), 1 / len(samples))
    figure = Figure(figsize=(10.5, 3.9), layout="constrained")
    titles = ("data, exact", f"model, {score.kind}: {score.nats_per_example:.3f} nats", f"{len(samples):,} samples")
    for axes, values, title in zip(figure.subplots(1, 3), (pmf, model, counts), titles, strict=True):
        axes.imshow(values.T, origin="lower", vmin=0, vmax=pmf.max(), cmap="viridis")
        axes.set_title(title, fontsize=10)
    figure.savefig(file, format="png", dpi=120)


def plot_spread(score: Score, file: BinaryIO) -> None:
    """Write a histogram of the scores of single examples as a PNG."""
    from matplotlib.figure import Figure

    if score.per_example is None:
        raise ValueError("this score has no values of single examples; score with `per_example`")
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.hist(score.per_example, bins=min(60, max(5, score.num_examples // 4)), color="#1b7837")
    axes.axvline(score.bits_per_dim, color="#202124", linewidth=1)
    axes.set(xlabel=f"{score.unit} ({score.kind})", ylabel=f"examples of {score.split}")
    axes.set_title(f"mean {score.bits_per_dim:.4f}", fontsize=10)
    figure.savefig(file, format="png", dpi=120)


@dataclass
class Report:
    """A self-contained HTML page of headings, paragraphs, tables, texts and images, in the order they are added."""

    title: str
    parts: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        """Add a heading; pages with several have a list of them at the top."""
        self.headings.append(text)
        self.parts.append(f'<h2 id="part-{len(self.headings)}">{html.escape(text)}</h2>')

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self.parts.append(f"<p>{html.escape(text)}</p>")

    def code(self, text: str) -> None:
        """Add preformatted text."""
        self.parts.append(f"<pre>{html.escape(text)}</pre>")

    def table(self, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        """Add a table with a row of headings."""
        shown = [[html.escape(cell).replace(" ± ", "&nbsp;±&nbsp;") for cell in row] for row in rows]
        cells = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in shown]
        top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        self.parts.append(f"<div><table><tr>{top}</tr>{''.join(cells)}</table></div>")

    def picture(self, png: bytes, description: str) -> None:
        """Add an image, with a description as its alternative text."""
        data = base64.b64encode(png).decode()
        self.parts.append(f'<img alt="{html.escape(description)}" src="data:image/png;base64,{data}">')

    def render(self) -> bytes:
        """Return the page as HTML."""
        style = (
            ":root{color-scheme:light dark}"
            "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
            "pre{background:#8882;padding:.8rem;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem}"
            "div{overflow-x:auto}img{max-width:100%;background:#fff}table{border-collapse:collapse;font-size:.9rem}"
            "td,th{padding:.25rem .7rem;border-bottom:1px solid #8885;text-align:left;vertical-align:top}"
            "td:first-child{min-width:9rem}h1,h2{line-height:1.2}a{color:#2f8f5b}"
        )
        title = html.escape(self.title)
        head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        head += f"<title>{title}</title><style>{style}</style>"
        links = [f'<li><a href="#part-{n}">{html.escape(text)}</a></li>' for n, text in enumerate(self.headings, 1)]
        contents = f"<ul>{''.join(links)}</ul>" if len(links) >= LISTED else ""
        body = f"<h1>{title}</h1>{contents}{''.join(self.parts)}"
        return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'.encode()


def chain_png(chain: list[tuple[float, Tensor]], spec: DataSpec) -> bytes:
    """Return the PNG of `plot_chain` as bytes."""
    buffer = io.BytesIO()
    plot_chain(chain, spec, buffer)
    return buffer.getvalue()
