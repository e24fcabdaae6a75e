"""`unordinal evaluate RUN`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from unordinal.cli.common import BlockArgs, check_output
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.names import counted
from unordinal.settings import Flag

if TYPE_CHECKING:
    from unordinal.api import Run
    from unordinal.data.splits import Data, Split
    from unordinal.evaluate.score import Score

NUM_PLOTTED = 20_000  # samples in a picture of probabilities


@dataclass(frozen=True)
class EvaluateArgs(BlockArgs):
    """Score a run: bits per dimension of a split, with its standard error.

    Examples:
        unordinal evaluate runs/book
        unordinal evaluate runs/book --data other.txt --per-example bits.csv
        unordinal evaluate runs/diffusion --repeats 4 --json
        unordinal evaluate runs/flow --bound iwbo --k 1000 --num-examples 16
    """

    FIRST: ClassVar = ("split", "data", "bound", "k", "repeats", "num_examples", "per_example", "plot", "seed", "json")
    run: Annotated[str, POSITIONAL, Flag(metavar="RUN")]
    """A folder that `unordinal train` made, or a bundled model such as pretrained:text8-arm."""
    data_split: Annotated[str | None, Flag(metavar="TRAIN,VAL,TEST")] = None
    """TRAIN,VAL,TEST of --data, with --split; default the data set's own, or 0.9,0.05,0.05."""
    per_example: Path | None = None
    """Write each example's bits per dimension, their error, and the text or the file name to this CSV file."""
    plot: Path | None = None
    """Write a picture to this PNG file: exact probabilities next to the model's, or how the examples' bits spread."""
    invalid_samples: int = 64
    """Samples from which to estimate a flow's mass on codes that stand for no class; 0 for none."""


def main(words: Words) -> int:
    from unordinal.evaluate.likelihood import EXACT, Evaluate

    args, values = parse(words, EvaluateArgs, Evaluate)
    from unordinal.evaluate.exact import entropy
    from unordinal.evaluate.invalid import invalid_mass
    from unordinal.parallel.group import current_group
    from unordinal.runs.data import data_for

    asked = Evaluate(**values, per_example=bool(args.per_example or args.plot), progress=progress)
    check_arguments(args, has_data=asked.data is not None)
    run = args.load(args.run)
    with current_group().one_first():
        data = data_for(run, asked.data, progress, split=args.data_split, is_whole=asked.split is None)
    for note in data.notes:
        say(f"Note: {note}.")
    if asked.data is not None and asked.split is None and data.spec.fingerprint == run.spec.fingerprint:
        say("Note: these are the data that the run was trained on; most of them were seen in training.")
    result = run.scored(asked, data)
    if not current_group().is_first:
        return 0
    shown = {**result.to_dict(), "run": args.run, "data": data.spec.name, "seed": asked.seed}
    print(result)
    if run.spec.schema:
        shown["rows_left_out"] = data.num_left_out
    if result.value_bits is not None:
        print(f"{result.value_bits:.3f} bits per row as a density of the values (uniform within bins)")
    if data.pmf is not None:
        shown["entropy_nats"] = entropy(data.pmf)
        print(f"{result.nats_per_example:.4f} nats per example; the exact entropy is {entropy(data.pmf):.4f}")
    part = None if asked.split == EXACT else data.split(asked.split or "test")
    if part is not None and part.num_unscored and asked.num_examples is None:
        say(f"Note: the last {part.num_unscored} symbols of the split do not fill a sequence and are not scored.")
    if run.model.has_invalid_codes and args.invalid_samples:
        invalid = invalid_mass(
            run.model, args.invalid_samples, batch_size=asked.batch_size, seed=asked.seed, progress=progress
        )
        shown["invalid"] = vars(invalid)
        print(invalid)
    if args.per_example:
        write_examples(args.per_example, run, part, result)
        say(f"{counted(result.num_examples, 'example')} written to {args.per_example}")
    if args.plot:
        write_plot(args.plot, run, data, result, asked.seed)
        say(f"Picture written to {args.plot}")
    if args.json:
        print_json(shown)
    return 0


def check_arguments(args: EvaluateArgs, *, has_data: bool) -> None:
    """Raise a ValueError for arguments that do not fit together, before any work."""
    if args.data_split is not None and not has_data:
        raise ValueError("--data-split goes with --data; a run's own data keep the split they were trained with")
    if args.invalid_samples < 0 or args.invalid_samples == 1:
        raise ValueError(f"--invalid-samples must be 0 or at least 2, got {args.invalid_samples}")
    for path in (args.per_example, args.plot):
        check_output(path)


def write_examples(path: Path, run: "Run", split: "Split | None", result: "Score") -> None:
    """Write each example's bits, their error if there is one, and the text or the name of the example's file."""
    import csv
    import io

    from unordinal.data.storage import replacing

    assert result.per_example is not None
    errors = result.per_example_error or [None] * result.num_examples
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    shows_text, shows_file = split is not None and run.vocabulary is not None, split is not None and bool(split.names)
    last = ["text"] if shows_text else ["file"] if shows_file else []
    writer.writerow(["example", "bits_per_dim", "standard_error", *last])
    for index, (bits, error) in enumerate(zip(result.per_example, errors, strict=True)):
        shown = []
        if split is not None and last:
            shown = [run.spec.show(split[index]) if shows_text else split.names[index]]
        writer.writerow([index, f"{bits:.6f}", "" if error is None else f"{error:.6f}", *shown])
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def write_plot(path: Path, run: "Run", data: "Data", result: "Score", seed: int) -> None:
    """Write the picture of `--plot`."""
    from unordinal.data.storage import replacing
    from unordinal.evaluate.likelihood import EXACT
    from unordinal.evaluate.report import plot_pmf, plot_spread
    from unordinal.model import device_of
    from unordinal.parallel.randomness import generator_of

    with replacing(path) as file:
        if result.split == EXACT and data.pmf is not None and data.pmf.ndim == 2:
            generator = generator_of(seed, device=device_of(run.model))
            with progress("Sampling", None):
                samples = run.model.sample(NUM_PLOTTED, generator=generator).cpu()
            plot_pmf(data.pmf, result, samples, file)
        else:
            plot_spread(result, file)
