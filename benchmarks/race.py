"""Which model learns most in the same minutes, or in the same steps?

    python benchmarks/race.py --data text8.prefix.xz --minutes 5 --out race
    python benchmarks/race.py --data text8.prefix.xz --alphabet bpe:1024 --steps 1500 --contestants arm block,block=1

All contestants train in one process and take turns of a few seconds, so that noise on the machine hits all alike. Each
has a clock of its own, which runs only while it trains; its learning rate follows that clock. Validations during the
race are not counted. At the end everyone is scored on the same examples. The runs stay in the folder given by --out,
with the figures in race.json and the curves in race.png.

A contestant is a name of this file or a recipe, with changes of its settings after commas: block,block=16,lr=0.002.
The change alphabet=bpe:4096 gives it tokens of its own; bits are per character, whatever the tokens.
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
from unordinal.recipes import RECIPES, configured
from unordinal.runs.folder import RunFolder
from unordinal.train.loop import Loop
from unordinal.train.start import start_run
from unordinal.train.validation import Validation

VALIDATIONS = 10  # of each contestant
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
    steps: int | None = None
    """Steps of each contestant, in place of a time."""
    alphabet: str = "text8"
    """Characters of text8, or tokens such as bpe:1024."""
    length: int | None = None
    """Symbols of an example; default 256 characters or 128 tokens."""
    split: str = "6000000,400000,177825"
    """TRAIN,VAL,TEST; all of VAL is scored."""
    size: str = "tiny"
    """The size of the contestants' recipes."""
    contestants: tuple[str, ...] = tuple(CONTESTANTS)
    """The contestants."""
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

    @property
    def spent(self) -> float:
        """The share of the budget that is spent."""
        at = self.loop.at
        return self.loop.budget.fraction(at.step, at.seconds)

    def train(self, seconds: float) -> None:
        """Train for a turn, or until the budget is used up."""
        at, loop = self.loop.at, self.loop
        end = at.seconds + seconds
        while at.seconds < end and self.spent < 1:
            began = time.monotonic()
            loop.train_step()
            at.seconds += time.monotonic() - began

    def validate(self) -> None:
        found = self.loop.validator.add_round(self.loop.averaged, Validation())
        self.curve.append((self.loop.at.seconds, found.bits))


def text_settings(args: Args, alphabet: str) -> dict[str, Any]:
    """Return how the text is read."""
    length = args.length or (256 if alphabet == "text8" else 128)
    return {"alphabet": alphabet, "split": args.split, "length": length}


def configuration(entry: str, args: Args) -> tuple[RunConfig, str]:
    """Return the configuration of a contestant, and its alphabet."""
    name, *words = entry.split(",")
    changes = {key: value_of(value) for key, _, value in (word.partition("=") for word in words)}
    alphabet = changes.pop("alphabet", args.alphabet)
    check_known("contestant", name, (*CONTESTANTS, *RECIPES))
    config = CONTESTANTS[name](args.size) if name in CONTESTANTS else configured(name, args.size)
    return with_settings(config, changes), alphabet


def value_of(text: str) -> Any:
    """Return the value of a setting: a number, true, false or a list in JSON, or a text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def entered(name: str, config: RunConfig, alphabet: str, data: Data, args: Args) -> Contestant:
    """Set up a contestant."""
    minutes = args.minutes if args.steps is None else None
    train = replace(config.train, steps=args.steps, epochs=None, minutes=minutes, validate_examples=128)
    config = replace(config, data=source_of(args.data).adapted(**text_settings(args, alphabet)), train=train)
    folder = RunFolder(args.out / name.replace(":", ""))
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
    entries = {entry: configuration(entry, args) for entry in args.contestants}
    if args.threads:
        torch.set_num_threads(args.threads)
    texts = {a: load_data(args.data, **text_settings(args, a)) for a in dict.fromkeys(a for _, a in entries.values())}
    racers = [entered(name, config, a, texts[a], args) for name, (config, a) in entries.items()]
    while any(racer.spent < 1 for racer in racers):
        for racer in racers:
            if racer.spent < 1:
                racer.train(args.turn)
            if racer.spent >= (1 + len(racer.curve)) / VALIDATIONS - 1e-6:
                racer.validate()
        print(f"{min(racer.spent for racer in racers):.0%} of the budget of each", flush=True)
    results: dict[str, dict[str, Any]] = {}
    wide = max(22, *(len(entry) + 2 for entry in entries))
    print(
        f"\n{'contestant':<{wide}}{'bits per character':>20}  {'kind':<21}{'steps':>7}{'sequences/s':>13}{'seconds':>9}"
    )
    for racer in racers:
        score, found = finished(racer, racer.loop.data, args.repeats)
        results[racer.name] = found
        bits = f"{score.bits_per_dim:.4f} ± {score.standard_error or math.nan:.4f}"
        speed = f"{found['sequences_per_second']:>13.1f}{racer.loop.at.seconds:>9.0f}"
        print(f"{racer.name:<{wide}}{bits:>20}  {score.kind:<21}{found['steps']:>7,}{speed}", flush=True)
    budget = f"--minutes {args.minutes:g}" if args.steps is None else f"--steps {args.steps}"
    command = f"python benchmarks/race.py --data {Path(args.data).name} {budget} --size {args.size}"
    command += f" --alphabet {args.alphabet} --contestants {' '.join(args.contestants)}"
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
