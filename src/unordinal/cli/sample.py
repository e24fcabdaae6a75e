"""`unordinal sample RUN`."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from unordinal.cli.common import MachineArgs, check_output, check_seed, chosen_device
from unordinal.cli.console import print_json, progress, say

if TYPE_CHECKING:
    from torch import Tensor

    from unordinal.data.spec import DataSpec

BATCH = 32

EXAMPLE = """Draw from a run.

Example: unordinal sample runs/text8-multinomial-tiny --num 4 --steps 100 --chain chain.png"""


@dataclass(frozen=True)
class SampleArgs:
    run: tyro.conf.Positional[Path]
    """Folder that `unordinal train` made."""
    num: int = 4
    """How many samples."""
    steps: int | None = None
    """Diffusion steps to take, spread over the chain; default all of them."""
    length: int | None = None
    """Symbols per sample; default the length the model was trained with."""
    out: Path | None = None
    """Write the samples here instead of printing them: .npy or .json for classes, anything else for text."""
    chain: Path | None = None
    """Write the first sample's way from noise: .png for a picture, .json, or text with one line per step."""
    seed: int = 0
    """Seed of the draws."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """End with one JSON object on stdout, samples included."""


def main(argv: list[str]) -> int:
    args = tyro.cli(
        SampleArgs, args=argv, prog="unordinal sample", description=EXAMPLE, config=(tyro.conf.FlagCreatePairsOff,)
    )
    import torch

    from unordinal.models.diffusion import MultinomialDiffusion
    from unordinal.train.run import load

    if args.num < 1:
        raise ValueError(f"--num must be at least 1, got {args.num}")
    if args.length is not None and args.length < 1:
        raise ValueError(f"--length must be at least 1, got {args.length}")
    check_output(args.out)
    check_output(args.chain)
    check_seed(args.seed)
    device = chosen_device(args.machine)
    run = load(args.run, device=device)
    model = run.model
    assert isinstance(model, MultinomialDiffusion)
    generator = torch.Generator(device).manual_seed(args.seed)
    shape = None if args.length is None else (args.length,)
    steps = len(model.times_of(args.steps)) - 1
    began, parts, chain, calls = time.monotonic(), [], [], 0
    with progress("Sampling", args.num * steps) as advance:
        for start in range(0, args.num, BATCH):
            num = min(BATCH, args.num - start)
            z = torch.empty(0)
            for t, z in model.chain(num, generator=generator, steps=args.steps, event_shape=shape):
                if start == 0 and args.chain:
                    chain.append((t, z[0].cpu()))
                advance(num if t < model.num_steps else 0)
            calls += steps
            parts.append(z.cpu())
    seconds = time.monotonic() - began
    x = torch.cat(parts)
    if args.chain:
        write_chain(args.chain, chain, run.spec)
    shown = [run.spec.show(row) for row in x]
    if args.out:
        write_samples(args.out, x, shown)
        say(f"{args.num} samples written to {args.out}")
    elif not args.json:
        for text in shown:
            print(text, end="\n\n")
    say(f"{args.num} samples of {tuple(x.shape[1:])} in {seconds:.2f} s, {calls} network calls.")
    if args.json:
        values: dict[str, Any] = {"samples": shown if run.vocabulary else x.tolist(), "seconds": round(seconds, 4)}
        print_json({**values, "network_calls": calls, "steps": steps, "seed": args.seed, "run": str(args.run)})
    return 0


def write_samples(path: Path, x: "Tensor", shown: list[str]) -> None:
    """Samples as classes or as text, by the file's ending."""
    import numpy as np

    from unordinal.data.storage import replacing

    with replacing(path) as file:
        if path.suffix == ".npy":
            np.save(file, x.numpy().astype(np.uint8))
        elif path.suffix == ".json":
            file.write(json.dumps(x.tolist()).encode())
        else:
            between = "\n-----\n" if any("\n" in text for text in shown) else "\n"
            file.write((between.join(shown) + "\n").encode())


def write_chain(path: Path, chain: list[tuple[int, "Tensor"]], spec: "DataSpec") -> None:
    """x_T, ..., x_0 of one sample, by the file's ending."""
    from unordinal.data.storage import replacing
    from unordinal.evaluate.report import plot_chain

    with replacing(path) as file:
        if path.suffix == ".png":
            plot_chain(chain, spec, file)
        elif path.suffix == ".json":
            file.write(json.dumps([{"t": t, "x": x.tolist(), "shown": spec.show(x)} for t, x in chain]).encode())
        else:
            file.write("".join(f"{t}\t{one_line(spec.show(x))}\n" for t, x in chain).encode())


def one_line(text: str) -> str:
    """The text with its line breaks written as escapes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
