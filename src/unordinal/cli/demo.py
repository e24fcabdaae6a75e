"""`unordinal demo`: show what the bundled models can do, then train on text that every Python has."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from unordinal.cli.common import MachineArgs
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.showcase import show_bundled
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.settings import Range

if TYPE_CHECKING:
    from torch import Tensor

    from unordinal.api import Run
    from unordinal.data.splits import Data
    from unordinal.evaluate.score import Score

# The steps that each model trains for; on a busy machine a time limit ends them early.
STEPS = {"arm": 900, "multinomial": 260}
SHARES = {"arm": 0.55, "multinomial": 0.45}  # of the time limit
NAMES = {"arm": "autoregressive Transformer", "multinomial": "multinomial diffusion"}
NUM_SAMPLES, SCORE_REPEATS = 3, 4


@dataclass(frozen=True)
class DemoArgs(MachineArgs):
    """Show what the bundled models can do, then train, score and sample two small ones.

    A text emerges from noise, a mistyped sentence is mended, gaps are filled, and rows of a table are drawn. Then two
    models are trained on the docstrings of Python's standard library: an autoregressive Transformer and a multinomial
    diffusion, each for a fixed number of steps. The demo prints bits per character next to those of count models and
    xz, samples of both models, and how one sample emerges from noise. It leaves the runs and a report.html under runs/.

    `unordinal demo table` goes from a CSV file to a synthetic one instead, on a generated table.

    Examples:
        unordinal demo
        unordinal demo --minutes 3
        unordinal demo table
    """

    what: Annotated[Literal["text", "table"], POSITIONAL] = "text"
    """What to show: models of text, or of a table."""
    minutes: Annotated[float, Range(above=0)] = 12.0
    """Longest training time of both models together; they take about three minutes on two free cores."""
    out: Path | None = None
    """Folder of the runs and the report; default a new one under runs/."""
    seed: int = 0
    """Seed of everything."""


@dataclass(frozen=True)
class Shown:
    """A trained model, its score and its samples."""

    run: "Run"
    score: "Score"
    samples: list[str]
    chain: "list[tuple[float, Tensor]]"  # of the first sample, where the model has one


def main(words: Words) -> int:
    args = parse(words, DemoArgs)
    from unordinal.cli.train import free_name
    from unordinal.data import load_data
    from unordinal.evaluate.counts import baselines

    if not args.minutes > 0:
        raise ValueError(f"--minutes must be above 0, got {args.minutes:g}")
    if args.what == "table":
        return table_demo(args)
    show_bundled(args, args.seed)
    data = load_data("docs", alphabet="text8", progress=progress)
    folder = args.out or free_name(Path("runs") / "demo")
    results: dict[str, Shown] = {}
    for model in STEPS:
        code = train(model, data, folder / model, args)
        if code:
            return code
        results[model] = shown(folder / model, data, args)
    with progress("Fitting count models and xz", None):
        others = baselines(data.train.symbols, data.test.symbols, data.spec.num_classes)
    tell(results, others)
    report = write_report(folder, results, others)
    say(f"\nRuns in {folder}; open {report} in a browser.")
    if args.json:
        values: dict[str, Any] = {
            name: {**part.score.to_dict(), "run": str(folder / name), "samples": part.samples}
            for name, part in results.items()
        }
        print_json({"models": values, "baselines": others, "unit": data.spec.unit, "report": str(report)})
    return 0


TABLE_MINUTES = 0.8  # of training
TABLE_COMMANDS = (
    "train chow-liu --data {0}/orders.csv --out {0}/tree",
    "train arm --data {0}/orders.csv --out {0}/arm --minutes {1:g} --seed {2}",
    "evaluate {0}/tree",
    "evaluate {0}/arm",
    "sample {0}/arm --num 6000 --out {0}/new.csv --seed {2}",
    "sample {0}/arm --num 4 --where weather=hot --where drink=tea --seed {2}",
    "bits {0}/orders.csv --run {0}/arm --top 3",
    "fill --run {0}/arm --file {0}/orders.csv --out {0}/filled.csv",
    "report {0}/orders.csv {0}/new.csv --target drink --out {0}/report.html --rows 1500",
)


def table_demo(args: DemoArgs) -> int:
    """Run the commands that lead from a generated CSV file to a synthetic one; return the exit code."""
    from unordinal.cli import run
    from unordinal.cli.train import free_name
    from unordinal.cli.writing import write_frame
    from unordinal.data.cafe import CafeSource

    folder = args.out or free_name(Path("runs") / "demo-table")
    folder.mkdir(parents=True, exist_ok=True)
    write_frame(CafeSource(rows_seed=args.seed).read(), folder / "orders.csv")
    say(f"A generated table of orders in a café: {folder / 'orders.csv'}")
    for command in TABLE_COMMANDS:
        words = command.format(shlex.quote(str(folder)), min(TABLE_MINUTES, args.minutes), args.seed)
        say(f"\n$ unordinal {words}")
        code = run(shlex.split(words))
        if code:
            return code
    say(f"\nOpen {folder / 'report.html'} in a browser.")
    if args.json:
        print_json({"folder": str(folder), "report": str(folder / "report.html")})
    return 0


def train(model: str, data: "Data", path: Path, args: DemoArgs) -> int:
    """Train a model at size tiny for its steps, and return the exit code."""
    from unordinal.cli.train import train_and_tell
    from unordinal.data import source_of
    from unordinal.overrides import with_settings
    from unordinal.recipes import configured

    base = configured(model, "tiny", data=source_of("docs"))
    settings = {"alphabet": "text8", "steps": STEPS[model], "minutes": SHARES[model] * args.minutes, "seed": args.seed}
    advice, machine = "the demo starts again from the beginning each time", replace(args, json=False)
    return train_and_tell(with_settings(base, settings), data, path, machine, resume=False, advice=advice)


def shown(path: Path, data: "Data", args: DemoArgs) -> Shown:
    """Score a run and draw from it."""
    from unordinal.evaluate.likelihood import Evaluate
    from unordinal.tasks.asking import Sample
    from unordinal.tasks.drawing import sample

    run = args.load(str(path))
    repeats = None if run.model.is_exact else SCORE_REPEATS
    scored = run.scored(Evaluate(repeats=repeats, seed=args.seed, progress=progress), data)
    asked = Sample(NUM_SAMPLES, seed=args.seed, progress=progress)
    drawn = sample(run.model, run.spec, asked, with_chain=run.model.denoiser is not None)
    return Shown(run, scored, [run.spec.show(x) for x in drawn.x], drawn.chain)


def tell(results: dict[str, Shown], others: dict[str, float]) -> None:
    """Print the results."""
    from unordinal.evaluate.report import chain_rows

    print("\nBits per character of the test split (lower is better):")
    for name, text in table_rows(results, others):
        print(f"  {name:<28} {text}")
    for name, part in results.items():
        print(f"\nSamples of the {NAMES[name]}:")
        for text in part.samples:
            print(f"  {text}\n")
    for part in results.values():
        if part.chain:
            print("Text out of noise:")
        for t, x in chain_rows(part.chain, 9) if part.chain else []:
            print(f"  t={t:<5g} {part.run.spec.show_noisy(x)[:100]}")


def table_rows(results: dict[str, Shown], others: dict[str, float]) -> list[tuple[str, ...]]:
    ours = [
        (NAMES[name], f"{s.bits_per_dim:.3f} ± {s.standard_error or 0:.3f}  ({s.kind}, {s.method})")
        for name, s in ((name, part.score) for name, part in results.items())
    ]
    return [*ours, *((name, f"{bits:.3f}") for name, bits in others.items())]


def write_report(folder: Path, results: dict[str, Shown], others: dict[str, float]) -> Path:
    """Write report.html next to the runs and return its path."""
    from unordinal.data.storage import replacing
    from unordinal.evaluate.report import Report, chain_png

    page = Report("Two models of Python's docstrings")
    page.paragraph(
        "Both were trained for a few minutes on the docstrings of Python's standard library, as a-z and space."
    )
    page.heading("Bits per character of the test split")
    page.table(("model", "bits per character"), list(table_rows(results, others)))
    for name, part in results.items():
        parameters = sum(p.numel() for p in part.run.model.parameters())
        page.heading(f"{NAMES[name].capitalize()}, {parameters:,} parameters")
        if part.chain:
            page.picture(
                chain_png(part.chain, part.run.spec), "each line a step of the chain, settled letters in green"
            )
        for text in part.samples:
            page.code(text)
        page.picture((part.run.folder.plots / "loss.png").read_bytes(), "training loss and validation bound")
        page.code(part.run.folder.config.read_text())
    path = folder / "report.html"
    with replacing(path) as file:
        file.write(page.render())
    return path
