"""`unordinal sample RUN`."""

import json
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from unordinal.cli.common import MachineArgs, check_output, check_seed, chosen_device
from unordinal.cli.console import print_json, progress, say

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from unordinal.data.spec import DataSpec
    from unordinal.model import CategoricalModel
    from unordinal.models.diffusion import MultinomialDiffusion

BATCH = 32

EXAMPLE = """Draw from a run.

Example: unordinal sample runs/text8-multinomial-tiny --num 4 --steps 100 --chain chain.png
Example: unordinal sample runs/text8-argmax-ar-tiny --num 4 --invalid resample"""


@dataclass(frozen=True)
class SampleArgs:
    run: tyro.conf.Positional[Path]
    """Folder that `unordinal train` made."""
    num: int = 4
    """How many samples."""
    steps: int | None = None
    """Diffusion steps to take, spread over the chain; default all of them. Other models have none."""
    length: int | None = None
    """Symbols per sample; default the length the model was trained with."""
    out: Path | None = None
    """Write the samples here instead of printing them: .npy or .json for classes, anything else for text."""
    chain: Path | None = None
    """Diffusion: write the first sample's way from noise: .png for a picture, .json, or one line of text per step."""
    invalid: Literal["keep", "resample"] = "keep"
    """Flows: what to do with codes that mean no class; keep shows them as the replacement character and counts them,
    resample draws the sample anew, at most 20 times."""
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
    generator = torch.Generator(device).manual_seed(args.seed)
    shape = None if args.length is None else (args.length,)
    began = time.monotonic()
    if args.invalid == "resample" and not run.model.has_invalid:
        say("Note: this model has no invalid codes; there is nothing to resample.")
    if isinstance(run.model, MultinomialDiffusion):
        x, chain, steps, calls = diffused(run.model, args, shape, generator)
    else:
        for flag, value in (("--steps", args.steps), ("--chain", args.chain)):
            if value is not None:
                raise ValueError(f"{flag} is for diffusion; {args.run} is of {run.config.preset}, which has no steps")
        x, chain, steps, calls = flowed(run.model, args, shape, generator), [], None, None
    seconds = time.monotonic() - began
    if args.chain:
        write_chain(args.chain, chain, run.spec)
    shown = [run.spec.show(row) for row in x]
    if args.out:
        write_samples(args.out, x, shown)
        say(f"{args.num} samples written to {args.out}")
    elif not args.json:
        for text in shown:
            print(text, end="\n\n")
    invalid = int((x >= run.spec.num_classes).sum())
    made = f", {calls} network calls" if calls else ""
    bad = f", {invalid} invalid codes" if run.model.has_invalid else ""
    say(f"{args.num} samples of {tuple(x.shape[1:])} in {seconds:.2f} s{made}{bad}.")
    if args.json:
        values: dict[str, Any] = {"samples": shown if run.vocabulary else x.tolist(), "seconds": round(seconds, 4)}
        values |= {"invalid_codes": invalid, "network_calls": calls, "steps": steps}
        print_json({**values, "seed": args.seed, "run": str(args.run)})
    return 0


def diffused(
    model: "MultinomialDiffusion", args: SampleArgs, shape: tuple[int, ...] | None, generator: "torch.Generator"
) -> "tuple[Tensor, list[tuple[int, Tensor]], int, int]":
    """Samples of a diffusion, the first one's chain where asked, steps and network calls."""
    import torch

    steps = len(model.times_of(args.steps)) - 1
    parts, chain, calls = [], [], 0
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
    return torch.cat(parts), chain, steps, calls


def flowed(
    model: "CategoricalModel", args: SampleArgs, shape: tuple[int, ...] | None, generator: "torch.Generator"
) -> "Tensor":
    """Samples of a model that draws them in one go, a batch at a time."""
    import torch

    parts = []
    with progress("Sampling", args.num * math.prod(shape or model.event_shape)) as advance:
        for start in range(0, args.num, BATCH):
            num = min(BATCH, args.num - start)
            x = model.sample(num, generator=generator, event_shape=shape, invalid=args.invalid, advance=advance)
            parts.append(x.cpu())
    return torch.cat(parts)


def write_samples(path: Path, x: "Tensor", shown: list[str]) -> None:
    """Samples as classes or as text, by the file's ending."""
    import numpy as np

    from unordinal.data.storage import replacing

    with replacing(path) as file:
        if path.suffix == ".npy":
            np.save(file, x.numpy().astype(np.uint8 if x.max() < 256 else np.uint16))  # 256 is an invalid byte
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
