"""Which model learns most in the same minutes?

    python benchmarks/race.py --data text8.prefix.xz --minutes 5 --out race

All contestants train in one process and take turns of a few seconds, so that noise on the machine hits all alike. Each
has a clock of its own, which runs only while it trains; its learning rate follows that clock. Validations during the
race are not counted. At the end everyone is scored on the same examples. The runs stay in the folder given by --out,
with the figures in race.json and the curves in race.png.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from arguments import given

from unordinal.config import OptimConfig, RunConfig
from unordinal.data import load_data, source_of
from unordinal.data.splits import Data
from unordinal.evaluate.likelihood import Evaluate, score_split
from unordinal.evaluate.score import Score
from unordinal.names import check_known
from unordinal.nets.settings import DiffusionTransformer
from unordinal.overrides import with_settings
from unordinal.recipes import configured
from unordinal.runs.folder import RunFolder
from unordinal.train.loop import Loop
from unordinal.train.start import start_run
from unordinal.train.validation import Validation

PAPER_HEADS = 2  # global and local ones each: half of the heads attend locally, as in the paper


def papers_recipe(size: str, lr: float) -> RunConfig:
    """Return multinomial diffusion as the paper trains it, with the width and depth of a smaller size."""
    small, paper = configured("text8/multinomial", size), configured("text8/multinomial", "paper")
    net: Any = small.model.net  # type: ignore[attr-defined]
    net = DiffusionTransformer(net.width, net.num_blocks, PAPER_HEADS, PAPER_HEADS, window=128)
    changed: Any = replace(paper.model, net=net)  # type: ignore[type-var]
    train = replace(paper.train, epochs=None, lr=lr)
    optim = OptimConfig(optimizer="adam", decay_per_epoch=0.99, ema=0.0)
    return replace(paper, size=small.size, model=changed, train=train, optim=optim)


IMPROVED = {"lr": 4e-3, "matrix_lr": 0.03}
"""What helps multinomial diffusion without changing its noise."""

CONTESTANTS: dict[str, Callable[[str], RunConfig]] = {
    "paper-1e-4": lambda size: papers_recipe(size, 1e-4),
    "paper-1e-3": lambda size: papers_recipe(size, 1e-3),
    "multinomial": lambda size: configured("multinomial", size),
    "multinomial-improved": lambda size: with_settings(configured("multinomial", size), IMPROVED),
    "uniform": lambda size: configured("uniform", size),
    "absorbing": lambda size: configured("absorbing", size),
    "arm": lambda size: configured("arm", size),
    "arm-ngrams": lambda size: with_settings(configured("arm", size), {"model.ngrams.orders": (3, 4, 5)}),
    "argmax-ar": lambda size: configured("argmax-ar", size),
}


@dataclass(frozen=True)
class Args:
    data: str
    """A text, such as text8.prefix.xz."""
    minutes: float = 5.0
    """Training time of each contestant."""
    split: str = "6000000,400000,177825"
    """TRAIN,VAL,TEST; all of VAL is scored."""
    size: str = "tiny"
    """The size of the contestants' recipes."""
    contestants: tuple[str, ...] = tuple(CONTESTANTS)
    """Who takes part."""
    turn: float = 10.0
    """Seconds that a contestant trains before it is the next one's turn."""
    repeats: int = 2
    """Draws per example of the final score, for bounds."""
    out: Path = Path("race")
    """Folder of the runs, the figures and the picture."""
    threads: int | None = None
    """CPU threads; default torch's choice."""


@dataclass
class Contestant:
    """A run in the race, its clock, and how its validation went."""

    name: str
    loop: Loop
    passes: int = 0  # sequences that went through the network
    curve: list[tuple[float, float]] = field(default_factory=list)  # seconds, bits

    def train(self, seconds: float, budget: float) -> None:
        """Train for a turn, or until the budget is used up."""
        at, loop = self.loop.at, self.loop
        end = min(at.seconds + seconds, budget)
        while at.seconds < end:
            began = time.monotonic()
            loop.train_step()
            at.seconds += time.monotonic() - began

    def validate(self) -> None:
        found = self.loop.validator.add_round(self.loop.averaged, Validation())
        self.curve.append((self.loop.at.seconds, found.bits))


def text_settings(args: Args) -> dict[str, Any]:
    """Return how the text is read."""
    return {"alphabet": "text8", "split": args.split, "length": 256}


def entered(name: str, config: RunConfig, data: Data, args: Args) -> Contestant:
    """Set up a contestant."""
    train = replace(config.train, steps=None, epochs=None, minutes=args.minutes, validate_examples=128)
    config = replace(config, data=source_of(args.data).adapted(**text_settings(args)), train=train)
    folder = RunFolder(args.out / name)
    model = start_run(config, data.spec, folder, resume=False)
    loop = Loop(model, data, config.train, config.optim, folder, torch.device("cpu"))
    contestant = Contestant(name, loop)
    net = getattr(model, "net", model)

    def count(_module: object, inputs: tuple[Any, ...]) -> None:
        contestant.passes += len(inputs[0])

    net.register_forward_pre_hook(count)
    return contestant


def finished(contestant: Contestant, data: Data, repeats: int) -> tuple[Score, dict[str, Any]]:
    """Publish a contestant's weights and score them."""
    loop, at = contestant.loop, contestant.loop.at
    passes = contestant.passes
    loop.folder.publish(loop.averaged.state_dict(), {"step": at.step, "weights": "ema" if loop.optim.ema else "last"})
    model = loop.averaged
    times = None if model.is_exact else repeats
    score = score_split(model, data.val, Evaluate(repeats=times), split_name="val", unit=data.spec.unit)
    figures = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": at.step,
        "symbols_seen": at.step * loop.symbols_per_step,
        "sequences_per_second": round(passes / at.seconds, 1),
        "curve": [[round(seconds, 1), round(bits, 4)] for seconds, bits in contestant.curve],
    }
    return score, {**score.to_dict(), **figures}


def main(args: Args) -> None:
    for name in args.contestants:
        check_known("contestant", name, CONTESTANTS)
    if args.threads:
        torch.set_num_threads(args.threads)
    data = load_data(args.data, **text_settings(args))
    racers = [entered(name, CONTESTANTS[name](args.size), data, args) for name in args.contestants]
    budget, tenth = 60 * args.minutes, 6 * args.minutes
    while any(racer.loop.at.seconds < budget for racer in racers):
        for racer in racers:
            if racer.loop.at.seconds < budget:
                racer.train(args.turn, budget)
            if racer.loop.at.seconds >= tenth * (1 + len(racer.curve)) - 1e-6:
                racer.validate()
        slowest = min(racer.loop.at.seconds for racer in racers)
        print(f"{slowest:.0f} of {budget:.0f} s each", flush=True)
    results: dict[str, dict[str, Any]] = {}
    print(f"\n{'contestant':<22}{'bits per character':>22}  kind    {'characters seen':>16}{'sequences/s':>13}")
    for racer in racers:
        score, results[racer.name] = finished(racer, data, args.repeats)
        seen, speed = results[racer.name]["symbols_seen"], results[racer.name]["sequences_per_second"]
        bits = f"{score.bits_per_dim:.4f} ± {score.standard_error or math.nan:.4f}"
        print(f"{racer.name:<22}{bits:>22}  {score.kind:<8}{seen:>16,}{speed:>13.1f}", flush=True)
    command = f"python benchmarks/race.py --data {Path(args.data).name} --minutes {args.minutes:g} --size {args.size}"
    (args.out / "race.json").write_text(json.dumps({"command": command, "results": results}, indent=1) + "\n")
    draw_curves(results, args.out / "race.png")


def draw_curves(results: dict[str, dict[str, Any]], picture: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.5))
    for name, result in results.items():
        seconds, bits = zip(*result["curve"], strict=True)
        axis.plot([value / 60 for value in seconds], bits, marker=".", label=f"{name} ({result['kind']})")
    axis.set(xlabel="minutes of training", ylabel="bits per character, validation")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(given(Args, __doc__))
