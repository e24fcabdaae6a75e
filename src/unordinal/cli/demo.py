"""`unordinal demo`: the main job, end to end, on text that every Python has."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from unordinal.cli.common import MachineArgs, chosen_device
from unordinal.console import print_json, progress, say

if TYPE_CHECKING:
    from torch import Tensor

    from unordinal.api import Run
    from unordinal.data.splits import Data
    from unordinal.evaluate.likelihood import Score

PRESET, SIZE = "text8/multinomial", "tiny"
NUM_SAMPLES, SAMPLE_STEPS, SCORE_REPEATS = 4, 250, 4

EXAMPLE = """Train, score and sample a small multinomial diffusion on the docstrings of Python's standard library.

Example: unordinal demo --minutes 3

Prints bits per character beside count models and xz, samples, and one sample's way out of the noise; leaves a run
folder with
report.html under runs/."""


@dataclass(frozen=True)
class DemoArgs:
    minutes: float = 3.0
    """Training time."""
    out: Path | None = None
    """Folder of the run; default a new one under runs/."""
    seed: int = 0
    """Seed of everything."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """End with one JSON object on stdout."""


def main(argv: list[str]) -> int:
    args = tyro.cli(
        DemoArgs, args=argv, prog="unordinal demo", description=EXAMPLE, config=(tyro.conf.FlagCreatePairsOff,)
    )
    from unordinal.api import load
    from unordinal.cli.train import free_name, train_and_tell
    from unordinal.data import load_data
    from unordinal.evaluate.counts import baselines
    from unordinal.evaluate.likelihood import score_split
    from unordinal.recipes import configured
    from unordinal.tasks.drawing import draw
    from unordinal.train.checks import check_settings

    base = configured(PRESET, SIZE)
    config = replace(
        base,
        data=replace(base.data, name="docs", alphabet="text8"),
        train=replace(base.train, minutes=args.minutes, seed=args.seed),
    )
    check_settings(config.train, config.optim)
    data = load_data(config.data, progress=progress)
    path = args.out or free_name(Path("runs") / "demo")
    code = train_and_tell(
        config, data, path, args.machine, resume=False, as_json=False, advice="the demo starts anew each time"
    )
    if code:
        return code
    run = load(path, device=chosen_device(args.machine))
    score = score_split(run.model, data.test, repeats=SCORE_REPEATS, seed=args.seed, progress=progress)
    with progress("Fitting count models and xz", None):
        others = baselines(data.train.symbols, data.test.symbols, data.spec.num_classes)
    drawn = draw(run.model, NUM_SAMPLES, seed=args.seed, steps=SAMPLE_STEPS, with_chain=True, progress=progress)
    samples, chain = drawn.x, drawn.chain
    tell(data, score, others, samples, chain)
    report = write_report(run, score, others, samples, chain)
    say(f"\nRun folder {path}; open {report} in a browser.")
    if args.json:
        texts = [data.spec.show(x) for x in samples]
        print_json(
            {**score.to_dict(), "unit": "bits per character", "run": str(path), "baselines": others, "samples": texts}
        )
    return 0


def tell(
    data: "Data", score: "Score", others: dict[str, float], samples: "Tensor", chain: "list[tuple[float, Tensor]]"
) -> None:
    """The results on stdout."""
    from unordinal.evaluate.report import chain_rows

    print("\nBits per character of the test split (lower is better):")
    for name, text in table_rows(score, others):
        print(f"  {name:<24} {text}")
    print(f"\nSamples ({SAMPLE_STEPS} steps):")
    for x in samples:
        print(f"  {data.spec.show(x)}\n")
    print("Text out of noise:")
    for t, x in chain_rows(chain, 9):
        print(f"  t={t:<5} {data.spec.show(x)[:100]}")


def table_rows(score: "Score", others: dict[str, float]) -> list[tuple[str, str]]:
    ours = f"{score.bits_per_dim:.3f} ± {score.standard_error or 0:.3f}  ({score.kind}, {score.method})"
    return [("multinomial diffusion", ours), *((name, f"{bits:.3f}") for name, bits in others.items())]


def write_report(
    run: "Run", score: "Score", others: dict[str, float], samples: "Tensor", chain: "list[tuple[float, Tensor]]"
) -> Path:
    """report.html in the run's folder."""
    from unordinal.data.storage import replacing
    from unordinal.evaluate.report import Report, chain_png

    count: Any = f"{sum(p.numel() for p in run.model.parameters()):,}"
    num_steps = run.model.abilities.steps
    page = Report("Multinomial diffusion on Python's docstrings")
    page.paragraph(
        f"A Transformer of {count} parameters learned to undo {num_steps} steps of noise on the "
        f"docstrings of Python's standard library, {run.config.train.minutes:g} minutes long."
    )
    page.heading("Text out of noise")
    page.picture(chain_png(chain, run.spec), "each line a step of the chain, settled letters in green")
    page.heading("Bits per character of the test split")
    page.table(("model", "bits per character"), [(name, text) for name, text in table_rows(score, others)])
    page.heading("Samples")
    for x in samples:
        page.code(run.spec.show(x))
    page.heading("Training")
    page.picture((run.folder.plots / "loss.png").read_bytes(), "training loss and validation bound")
    page.code(run.folder.config.read_text())
    path = run.folder.path / "report.html"
    with replacing(path) as file:
        file.write(page.render())
    return path
