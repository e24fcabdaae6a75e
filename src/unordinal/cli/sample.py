"""`unordinal sample RUN`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from unordinal.cli.common import BlockArgs, check_output
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.pictures import MOST_MAPS, check_png, first_maps, require_maps, write_grid
from unordinal.cli.words import Words
from unordinal.cli.writing import (
    check_samples_file,
    is_folder,
    one_line,
    write_chain,
    write_folder,
    write_frame,
    write_many_rows,
    write_samples,
)
from unordinal.console import print_json, progress, say
from unordinal.names import counted
from unordinal.settings import Flag

if TYPE_CHECKING:
    from torch import Tensor

    from unordinal.api import Run
    from unordinal.tasks.asking import Sample
    from unordinal.tasks.drawing import Samples

RECONSTRUCTED = 8  # maps at a time
MANY_ROWS = 100_000  # more rows of a table are written in bounded memory


@dataclass(frozen=True)
class SampleArgs(BlockArgs):
    """Draw samples from a run.

    Examples:
        unordinal sample runs/book --num 4
        unordinal sample runs/book --prompt "the king of " --temperature 0.8
        unordinal sample runs/diffusion --steps 100 --chain chain.png
        unordinal sample runs/names --num 20 --unique --novel
        unordinal sample runs/maps --num 16 --grid samples.png --chain chain.gif
        unordinal sample runs/book --num 100000 --out samples
        unordinal sample runs/people --num 1000 --where "income=>50K" --where "age>=60" --out new.csv
    """

    FIRST: ClassVar = (
        *("num", "steps", "length", "prompt", "temperature", "label", "guidance", "unique", "novel", "where"),
        *("out", "grid", "chain", "seed", "json"),
    )
    run: Annotated[str, POSITIONAL, Flag(metavar="RUN")]
    """A folder that `unordinal train` made, or a bundled model such as pretrained:text8-arm."""
    out: Path | None = None
    """Write the samples here instead of printing them: .npy or .json for classes, .png for maps, .fasta or .txt for
    text, .csv, .tsv or .parquet for a table. A name without an ending is a folder, for many samples: they are written
    there in files of 32 batches with a manifest, by as many processes as torchrun starts, and the same command again
    draws what is missing. More than 100,000 rows of a table are drawn this way too, then written as one file."""
    chain: Path | None = None
    """Diffusion: write how a sample emerges from noise: .png for a picture (of four samples if they are maps), .gif for
    an animated map, .html for a page that plays it, .json, or one line of text per step."""
    grid: Path | None = None
    """Maps: write the samples (the first 64), next to as many of the test split if the data are at hand, to this PNG
    file."""
    reconstruct: Path | None = None
    """Maps: write test maps and their reconstructions to this PNG file: through the latent of a VAE, or half-way into
    the noise of a diffusion and back (an argmax flow returns them unchanged)."""


def main(words: Words) -> int:
    from unordinal.tasks.asking import Sample

    args, values = parse(words, SampleArgs, Sample)
    from unordinal.parallel.group import current_group
    from unordinal.tasks.asking import MOST_STEPS

    asked = Sample(**values, progress=progress)
    check_arguments(args)
    run = args.load(args.run)
    tell_about(asked, run)
    if args.out is not None and is_folder(args.out):
        if asked.unique or asked.novel:
            raise ValueError(
                f"--unique and --novel compare all samples; write them to a file, not to the folder {args.out}"
            )
        write_folder(args.out, run, asked)
        return 0
    if run.spec.schema and args.out is not None and asked.num > MANY_ROWS:
        write_many_rows(args.out, run, asked)
        return 0
    if args.out is not None and args.out.suffix.lower() == ".png":
        require_maps(run.spec)
    tests = maps_to_show(args, run, asked.num)
    drawn = run.drawn(asked, with_chain=args.chain is not None)
    if not current_group().is_first:  # every process has drawn the same
        return 0
    if asked.steps is None and drawn.steps == MOST_STEPS and (drawn.whole_steps or 0) > MOST_STEPS:
        say(f"Took {drawn.steps} of the {drawn.whole_steps} reverse steps; --steps all takes them all.")
    x = drawn.x
    if run.spec.schema:
        return write_rows(args, run, drawn, asked.seed)
    shown = [run.spec.show(row) for row in x]
    if args.out:
        write_samples(args.out, x, shown, run.spec)
        say(f"{counted(asked.num, 'sample')} written to {args.out}")
    write_pictures(args, run, drawn, tests, asked.seed)
    if not (args.out or args.json or args.grid):
        print("\n".join(map(one_line, shown))) if run.spec.ends else print_samples(shown)
    made = f", {drawn.network_calls:.4g} network calls each" if drawn.network_calls else ""
    bad = f", {drawn.num_invalid} invalid codes" if run.model.has_invalid_codes else ""
    size = ("up to " if run.spec.ends else "") + " x ".join(map(str, x.shape[1:]))
    shares = "".join(f", {share:.1%} of all draws {name}" for name, share in drawn.shares.items())
    say(f"{counted(asked.num, 'sample')} of {size} in {drawn.seconds:.2f} s{made}{bad}{shares}.")
    if args.json:
        result: dict[str, Any] = {"samples": shown if run.vocabulary else x.tolist()}
        result |= {"seconds": round(drawn.seconds, 4), "invalid_codes": drawn.num_invalid}
        result |= {"network_calls": drawn.network_calls, "steps": drawn.steps}
        result |= {"shares": drawn.shares} if drawn.shares else {}
        result |= {"temperature": asked.temperature, "prompt": asked.prompt, "seed": asked.seed}
        print_json({**result, "run": args.run})
    return 0


def tell_about(asked: "Sample", run: "Run") -> None:
    """Say what a request means for this run, where it is not what it seems."""
    from unordinal.tasks.reading import read

    if asked.invalid == "resample" and not run.model.has_invalid_codes:
        say("Note: this model has no invalid codes; there is nothing to resample.")
    if isinstance(asked.prompt, str) and run.vocabulary is not None:
        altered = read(asked.prompt, run.vocabulary).num_altered
        if altered:
            say(f"Note: the model's alphabet lacks {counted(altered, 'character')} of the prompt, read as others.")


def write_rows(args: SampleArgs, run: "Run", drawn: "Samples", seed: int) -> int:
    """Print the rows of a table as CSV, or write them to a file; return the exit code."""
    frame = run.spec.frame(drawn.x, seed)
    write_frame(frame, args.out, shows=not args.json)
    share = "" if drawn.accepted is None else f"; {drawn.accepted:.1%} of the rows drawn satisfied the conditions"
    to = "" if args.out is None else f" written to {args.out}"
    say(f"{counted(len(frame), 'row')}{to} in {drawn.seconds:.2f} s{share}.")
    if args.json:
        from unordinal.data.tables import records

        told = {"seconds": round(drawn.seconds, 4), "accepted": drawn.accepted, "seed": seed}
        print_json({"rows": records(frame), **told})
    return 0


def print_samples(shown: list[str]) -> None:
    """Print samples with a blank line between them, or with numbered lines if they hold blank lines themselves."""
    is_numbered = any("\n\n" in text for text in shown)
    for number, text in enumerate(shown, start=1):
        if is_numbered:
            print(f"----- sample {number} -----")
        print(text, end="\n\n")


def check_arguments(args: SampleArgs) -> None:
    """Raise a ValueError for files that cannot be written, before any work."""
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


def maps_to_show(args: SampleArgs, run: "Run", num: int) -> "Tensor | None":
    """Return maps of the test split for the pictures that show some; raise for pictures that this run cannot give."""
    from unordinal.runs.data import data_for

    if args.grid or args.reconstruct or (args.chain and args.chain.suffix.lower() == ".gif"):
        require_maps(run.spec)
    if args.reconstruct and run.model.reconstruct is None:
        raise ValueError(
            f"--reconstruct needs a lossy model (a VAE or a diffusion); {run.config.preset} returns maps unchanged"
        )
    if not (args.grid or args.reconstruct):
        return None
    if num > MOST_MAPS:
        say(f"Note: pictures show the first {MOST_MAPS} of {num} maps.")
    try:
        return first_maps(data_for(run, None, progress), "test", min(num, MOST_MAPS))
    except (ValueError, OSError) as error:
        if args.reconstruct:
            raise
        say(f"Note: no data next to the samples: {error}")
        return None


def write_pictures(args: SampleArgs, run: "Run", drawn: "Samples", tests: "Tensor | None", seed: int) -> None:
    """Write the pictures that were asked for."""
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
        write_grid(args.reconstruct, reconstructed(run, tests, seed), run.spec)
        say(f"Picture written to {args.reconstruct}")


def reconstructed(run: "Run", x: "Tensor", seed: int) -> "list[tuple[str, Tensor]]":
    """Return maps of the test split and their reconstructions, computed a few at a time."""
    import torch

    from unordinal.model import device_of
    from unordinal.parallel.randomness import generator_of

    assert run.model.reconstruct is not None
    generator = generator_of(seed, device=device_of(run.model))
    parts = []
    with progress("Reconstructing", len(x)) as advance:
        for part in x.split(RECONSTRUCTED):
            parts.append(run.model.reconstruct(part.to(generator.device), generator=generator).cpu())
            advance(len(part))
    back = torch.cat(parts)
    share = float((back == x).double().mean())
    return [("data (test)", x), (f"reconstructions, {100 * share:.1f} % of pixels alike", back)]
