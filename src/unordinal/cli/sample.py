"""`unordinal sample RUN`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from unordinal.cli.common import MachineArgs, check_output, check_seed, chosen_device
from unordinal.cli.flags import Command, parse
from unordinal.cli.pictures import MOST_MAPS, check_png, first_maps, require_maps, write_grid
from unordinal.cli.writing import check_samples_file, is_folder, write_chain, write_folder, write_samples
from unordinal.console import print_json, progress, say
from unordinal.names import counted

if TYPE_CHECKING:
    from torch import Tensor

    from unordinal.api import Run
    from unordinal.data.spec import DataSpec
    from unordinal.model import CategoricalModel
    from unordinal.tasks.drawing import Samples

RECONSTRUCTED = 8  # maps at a time

COMMAND = Command(
    "unordinal sample",
    "Draw samples from a run.",
    (
        "unordinal sample runs/book --num 4",
        'unordinal sample runs/book --prompt "the king of " --temperature 0.8',
        "unordinal sample runs/diffusion --steps 100 --chain chain.png",
        "unordinal sample runs/maps --num 16 --grid samples.png --chain chain.gif",
        "unordinal sample runs/book --num 100000 --out samples",
    ),
    first=("num", "steps", "length", "prompt", "temperature", "out", "grid", "chain", "seed", "json"),
)


@dataclass(frozen=True)
class SampleArgs:
    run: tyro.conf.Positional[Path]
    """Folder that `unordinal train` made."""
    num: int = 4
    """How many samples."""
    steps: int | Literal["all"] | None = None
    """Diffusion: network calls to make, spread over the chain; default at most 256, `all` for the whole chain."""
    sampler: Literal["ancestral", "spread", "corrected", "first-hitting", "entropy", "confidence"] | None = None
    """Diffusion: how to get from noise to data; default the one that suits the model."""
    length: int | None = None
    """Symbols per sample; default the length the model was trained with."""
    height: int | None = None
    """Rows of a map; default what the model was trained with."""
    width: int | None = None
    """Columns of a map, likewise."""
    out: Path | None = None
    """Write the samples here instead of printing them: .npy or .json for classes, .fasta, .txt or the like for text. A
    name without an ending is a folder, for many samples: they are written there in files of 32 batches with a manifest,
    by as many processes as torchrun starts, and the same command again draws what is missing."""
    batch_size: int = 32
    """Samples drawn at a time."""
    chain: Path | None = None
    """Diffusion: write how a sample emerges from noise: .png for a picture (of four samples if they are maps), .gif for
    an animated map, .html for a page that plays it, .json, or one line of text per step."""
    grid: Path | None = None
    """Maps: write the samples (the first 64), beside as many of the test split where the data are at hand, to this PNG
    file."""
    reconstruct: Path | None = None
    """Maps: write test maps and what becomes of them to this PNG file: through the latent of a VAE, or half-way into
    the noise of a diffusion and back (an argmax flow gives them back as they are)."""
    invalid: Literal["keep", "resample"] = "keep"
    """Flows: what to do with codes that mean no class; keep shows them as the replacement character and counts them,
    resample draws the sample anew, at most 20 times."""
    temperature: float = 1.0
    """Autoregressive models and diffusions: divide the logits by this; below 1 samples are likelier, at 0 the likeliest
    class is taken each time."""
    top_p: float = 1.0
    """Diffusion: draw only from the likeliest classes that together have this probability."""
    greedy_tail: float = 0.0
    """Diffusion: take the likeliest class in this last part of the chain, between 0 and 1."""
    prompt: str | None = None
    """Autoregressive models of text: let every sample begin with this."""
    seed: int = 0
    """Seed of the draws."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """End with one JSON object on stdout, samples included."""


def main(argv: list[str]) -> int:
    args = parse(SampleArgs, argv, COMMAND)
    from unordinal.api import load
    from unordinal.parallel.group import current_group
    from unordinal.tasks.drawing import draw

    check_arguments(args)
    run = load(args.run, device=chosen_device(args.machine))
    shape = shape_of(args, run.spec)
    settings = settings_of(args, run)
    if args.out is not None and is_folder(args.out):
        return write_folder(
            args.out, run, args.num, args.batch_size, args.seed, settings={**settings, "event_shape": shape}
        )
    tests = maps_to_show(args, run)
    drawn = draw(
        run.model,
        args.num,
        seed=args.seed,
        with_chain=args.chain is not None,
        batch_size=args.batch_size,
        progress=progress,
        event_shape=shape,
        **settings,
    )
    if not current_group().is_first:  # every process has drawn the same
        return 0
    x = drawn.x
    shown = [run.spec.show(row) for row in x]
    if args.out:
        write_samples(args.out, x, shown)
        say(f"{counted(args.num, 'sample')} written to {args.out}")
    write_pictures(args, run, drawn, tests)
    if not (args.out or args.json or args.grid):
        print_samples(shown)
    made = f", {drawn.network_calls:g} network calls each" if drawn.network_calls else ""
    bad = f", {drawn.num_invalid} invalid codes" if run.model.abilities.invalid_codes else ""
    size = " x ".join(map(str, x.shape[1:]))
    say(f"{counted(args.num, 'sample')} of {size} in {drawn.seconds:.2f} s{made}{bad}.")
    if args.json:
        values: dict[str, Any] = {"samples": shown if run.vocabulary else x.tolist()}
        values |= {"seconds": round(drawn.seconds, 4), "invalid_codes": drawn.num_invalid}
        values |= {"network_calls": drawn.network_calls, "steps": settings.get("steps") or run.model.abilities.steps}
        if run.model.abilities.prompt:
            values |= {"temperature": args.temperature, "prompt": args.prompt}
        print_json({**values, "seed": args.seed, "run": str(args.run)})
    return 0


def print_samples(shown: list[str]) -> None:
    """Samples on stdout, a blank line between them, or a numbered line where they hold blank lines themselves."""
    is_numbered = any("\n\n" in text for text in shown)
    for number, text in enumerate(shown, start=1):
        if is_numbered:
            print(f"----- sample {number} -----")
        print(text, end="\n\n")


def check_arguments(args: SampleArgs) -> None:
    """Complain before any work."""
    if args.num < 1:
        raise ValueError(f"--num must be at least 1, got {args.num}")
    for name, value in (("--length", args.length), ("--height", args.height), ("--width", args.width)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {args.batch_size}")
    if args.out is not None and is_folder(args.out) and (args.chain or args.grid or args.reconstruct or args.json):
        raise ValueError(
            f"--out {args.out} is a folder of samples, without pictures or JSON; give it an ending for a file"
        )
    if args.out is not None and not is_folder(args.out):
        check_output(args.out)
    check_samples_file(args.out)
    check_output(args.chain)
    check_png("--grid", args.grid)
    check_png("--reconstruct", args.reconstruct)
    check_seed(args.seed)


def settings_of(args: SampleArgs, run: "Run") -> dict[str, Any]:
    """What to pass on to the model; flags that it has no use for are refused."""
    from unordinal.tasks.drawing import check_able

    can = run.model.abilities
    given = {
        "steps": args.steps is not None,
        "chain": args.chain is not None,
        "sampler": args.sampler is not None,
        "top_p": args.top_p != 1.0,
        "greedy_tail": args.greedy_tail != 0.0,
        "temperature": args.temperature != 1.0,
        "prompt": args.prompt is not None,
    }
    check_able(can, given, f"{args.run} is of {run.config.preset}")
    if args.invalid == "resample" and not can.invalid_codes:
        say("Note: this model has no invalid codes; there is nothing to resample.")
    settings: dict[str, Any] = {}
    if can.chain:
        settings["steps"] = chosen_steps(args.steps, can.steps)
    if can.samplers:
        settings |= {"sampler": args.sampler, "top_p": args.top_p, "greedy_tail": args.greedy_tail}
    if can.invalid_codes:
        settings["invalid"] = args.invalid
    if can.temperature:
        settings["temperature"] = args.temperature
    if args.prompt is not None:
        settings["prompt"] = encoded_prompt(args.prompt, run)
    return settings


def chosen_steps(asked: int | str | None, whole: int | None) -> int | None:
    """How many reverse steps to take, and a line where that is fewer than there are; None takes them all."""
    from unordinal.api import reverse_steps

    steps = reverse_steps(asked, whole)
    if asked is None and steps is not None and whole is not None:
        say(f"Taking {steps} of the {whole} reverse steps; --steps all takes them all.")
    return steps


def encoded_prompt(prompt: str, run: "Run") -> "Tensor":
    """The classes of --prompt."""
    if run.vocabulary is None:
        raise ValueError(f"--prompt is for text; the classes of {run.spec.name} have no characters")
    try:
        return run.vocabulary.encode(prompt)
    except ValueError as error:
        raise ValueError(f"--prompt: {str(error).split(';')[0]}") from error


def maps_to_show(args: SampleArgs, run: "Run") -> "Tensor | None":
    """Maps of the test split for the pictures that show some; pictures this run cannot give are refused here."""
    from unordinal.rundata import data_of

    if args.grid or args.reconstruct or (args.chain and args.chain.suffix.lower() == ".gif"):
        require_maps(run.spec)
    if args.reconstruct and not run.model.abilities.reconstructs:
        raise ValueError(
            f"--reconstruct is for models that lose something; {run.config.preset} gives every map back as it is"
        )
    if not (args.grid or args.reconstruct):
        return None
    if args.num > MOST_MAPS:
        say(f"Note: pictures show the first {MOST_MAPS} of {args.num} maps.")
    try:
        return first_maps(data_of(run, None, progress), "test", min(args.num, MOST_MAPS))
    except (ValueError, OSError) as error:
        if args.reconstruct:
            raise
        say(f"Note: no data beside the samples: {error}")
        return None


def write_pictures(args: SampleArgs, run: "Run", drawn: "Samples", tests: "Tensor | None") -> None:
    """The pictures that were asked for."""
    if args.chain:
        write_chain(args.chain, drawn.chains, run.spec)
        say(f"Chain written to {args.chain}")
    if args.grid:
        groups = [("samples", drawn.x)]
        if tests is not None and tests.shape[1:] == drawn.x.shape[1:]:
            groups.append(("data (test)", tests))
        write_grid(args.grid, groups, run.spec)
        say(f"Picture written to {args.grid}")
    if args.reconstruct:
        assert tests is not None
        write_grid(args.reconstruct, reconstructed(run.model, tests, args.seed), run.spec)
        say(f"Picture written to {args.reconstruct}")


def shape_of(args: SampleArgs, spec: "DataSpec") -> tuple[int, ...] | None:
    """The shape that was asked for; None is the model's own."""
    if spec.is_map:
        if args.length is not None:
            raise ValueError(f"--length is for sequences; give --height and --width for maps, not {args.length}")
        if args.height is None and args.width is None:
            return None
        return (args.height or spec.event_shape[0], args.width or spec.event_shape[1])
    for name, value in (("--height", args.height), ("--width", args.width)):
        if value is not None:
            raise ValueError(f"{name} is for maps; the examples of {spec.name} are sequences, give --length")
    return None if args.length is None else (args.length,)


def reconstructed(model: "CategoricalModel", x: "Tensor", seed: int) -> "list[tuple[str, Tensor]]":
    """Maps of the test split, and what the model makes of them, a few at a time."""
    import torch

    from unordinal.model import device_of

    generator = torch.Generator(device_of(model)).manual_seed(seed)
    parts = []
    with progress("Reconstructing", len(x)) as advance:
        for part in x.split(RECONSTRUCTED):
            parts.append(model.reconstruct(part.to(generator.device), generator=generator).cpu())
            advance(len(part))
    back = torch.cat(parts)
    share = float((back == x).double().mean())
    return [("data (test)", x), (f"reconstructions, {100 * share:.1f} % of pixels alike", back)]
