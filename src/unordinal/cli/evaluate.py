"""`unordinal evaluate RUN`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from unordinal.cli.common import MachineArgs, check_output, check_seed, chosen_device
from unordinal.cli.flags import Command, parse
from unordinal.console import print_json, progress, say
from unordinal.names import counted

if TYPE_CHECKING:
    from unordinal.api import Run
    from unordinal.data.splits import Data, Split
    from unordinal.evaluate.likelihood import Score

NUM_PLOTTED = 20_000  # samples in a picture of probabilities

COMMAND = Command(
    "unordinal evaluate",
    "Score a run: bits per dimension of a split, with its standard error.",
    (
        "unordinal evaluate runs/book",
        "unordinal evaluate runs/book --data other.txt --per-example bits.csv",
        "unordinal evaluate runs/diffusion --repeats 4 --json",
        "unordinal evaluate runs/flow --bound iwbo --k 1000 --num-examples 16",
    ),
    first=("split", "data", "bound", "k", "repeats", "num_examples", "per_example", "plot", "seed", "json"),
)


@dataclass(frozen=True)
class EvaluateArgs:
    run: tyro.conf.Positional[Path]
    """Folder that `unordinal train` made."""
    split: Literal["train", "val", "test", "exact"] | None = None
    """Which part of the data; default test, or all of --data. exact is every x weighted by its probability, for data
    whose probabilities are known."""
    bound: Literal["elbo", "iwbo"] = "elbo"
    """The evidence lower bound, or the tighter importance-weighted one of --k draws (not for every model)."""
    k: int = 1000
    """Importance samples per example, with --bound iwbo; memory does not grow with it."""
    data: str | None = None
    """Other data than the run's own: texts are encoded with its vocabulary, arrays and maps have its classes."""
    data_split: str | None = None
    """TRAIN,VAL,TEST of --data, with --split; default the data set's own, or 0.9,0.05,0.05."""
    in_order: bool = False
    """Transformer-XL: score the text's chunks in their order, each with a memory of those before it."""
    order: Literal["left-to-right", "right-to-left", "random"] | None = None
    """Absorbing diffusion: the exact likelihood when positions are drawn in this order, at one network call each."""
    times: Literal["stratified", "all"] = "stratified"
    """Diffusion: spread times over the examples, or compute every one of the T terms."""
    repeats: int | None = None
    """Draws of the bound per example (diffusion: times, or with --times all draws of x_t); default 1, 16 for exact,
    with --per-example enough to tell examples apart."""
    num_examples: int | None = None
    """Score only the first N examples; default the whole split."""
    batch_size: int = 32
    """Examples per network call."""
    per_example: Path | None = None
    """Write each example's bits per dimension, their error, and the text or the file name to this CSV file."""
    plot: Path | None = None
    """Write a picture to this PNG file: exact probabilities beside the model's, or how the examples' bits spread."""
    invalid_samples: int = 64
    """Samples from which to estimate a flow's mass on codes that mean no class; 0 for none."""
    seed: int = 0
    """Seed of the draws."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """End with one JSON object on stdout."""


def main(argv: list[str]) -> int:
    args = parse(EvaluateArgs, argv, COMMAND)
    from unordinal.api import load
    from unordinal.evaluate.exact import EXACT, entropy
    from unordinal.evaluate.invalid import invalid_mass
    from unordinal.parallel.group import current_group
    from unordinal.rundata import data_of

    check_arguments(args)
    run = load(args.run, device=chosen_device(args.machine))
    with current_group().one_first():
        data = data_of(run, args.data, progress, split=args.data_split, is_whole=args.split is None)
    split = args.split or "test"
    for note in data.notes:
        say(f"Note: {note}.")
    if args.data is not None and args.split is None and data.spec.fingerprint == run.spec.fingerprint:
        say("Note: these are the data that the run was trained on; most of them were seen in training.")
    result = scored(run, data, args, split)
    if not current_group().is_first:
        return 0
    values = {**result.to_dict(), "run": str(args.run), "data": data.spec.name, "seed": args.seed}
    print(result)
    if data.pmf is not None:
        values["entropy_nats"] = entropy(data.pmf)
        print(f"{result.nats_per_example:.4f} nats per example; the exact entropy is {entropy(data.pmf):.4f}")
    unscored = 0 if split == EXACT else data.split(split).num_unscored
    if unscored and args.num_examples is None:
        say(f"Note: the last {unscored} symbols of the split do not fill a sequence and are not scored.")
    if run.model.abilities.invalid_codes and args.invalid_samples:
        invalid = invalid_mass(
            run.model, args.invalid_samples, batch_size=args.batch_size, seed=args.seed, progress=progress
        )
        values["invalid"] = invalid.to_dict()
        print(invalid)
    if args.per_example:
        write_examples(args.per_example, run, None if split == EXACT else data.split(split), result)
        say(f"{counted(result.num_examples, 'example')} written to {args.per_example}")
    if args.plot:
        write_plot(args.plot, run, data, result, args.seed)
        say(f"Picture written to {args.plot}")
    if args.json:
        print_json(values)
    return 0


def check_arguments(args: EvaluateArgs) -> None:
    """Complain before any work."""
    from unordinal.evaluate.likelihood import check_bound

    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {args.batch_size}")
    if args.data_split is not None and args.data is None:
        raise ValueError("--data-split goes with --data; a run's own data keep the split they were trained with")
    if args.invalid_samples < 0 or args.invalid_samples == 1:
        raise ValueError(f"--invalid-samples must be 0 or at least 2, got {args.invalid_samples}")
    if args.repeats is not None and args.repeats < 1:
        raise ValueError(f"--repeats must be at least 1, got {args.repeats}")
    check_bound(args.bound, args.k)
    if args.repeats is not None and args.bound == "iwbo":
        raise ValueError(f"--repeats {args.repeats} is for the ELBO; with --bound iwbo give --k")
    if args.in_order and (args.bound == "iwbo" or args.split == "exact"):
        raise ValueError("--in-order is for exact likelihoods of a text; leave out --bound iwbo and --split exact")
    if args.num_examples is not None and args.split == "exact":
        raise ValueError(f"--split exact scores every x; leave out --num-examples {args.num_examples}")
    for path in (args.per_example, args.plot):
        check_output(path)
    check_seed(args.seed)


def write_examples(path: Path, run: "Run", split: "Split | None", result: "Score") -> None:
    """Each example's bits, their error where it has one, and the text or the name of the example's file."""
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


def scored(run: "Run", data: "Data", args: EvaluateArgs, split: str) -> "Score":
    """The bound that was asked for, on the split that was asked for."""
    from unordinal.api import score
    from unordinal.evaluate.exact import EXACT, score_pmf

    if split == EXACT and data.pmf is None:
        raise ValueError(f"the probabilities of {data.spec.name} are not known; use --split train, val or test")
    if split == EXACT:
        assert data.pmf is not None
        return score_pmf(
            run.model,
            data.pmf,
            bound=args.bound,
            k=args.k,
            repeats=args.repeats,
            seed=args.seed,
            progress=progress,
        )
    return score(
        run,
        data,
        split=split,
        bound=args.bound,
        k=args.k,
        times=args.times,
        repeats=args.repeats,
        per_example=bool(args.per_example or args.plot),
        in_order=args.in_order,
        order=args.order,
        num_examples=args.num_examples,
        batch_size=args.batch_size,
        seed=args.seed,
        progress=progress,
    )


def write_plot(path: Path, run: "Run", data: "Data", result: "Score", seed: int) -> None:
    """The picture of `--plot`."""
    import torch

    from unordinal.data.storage import replacing
    from unordinal.evaluate.exact import EXACT
    from unordinal.evaluate.report import plot_pmf, plot_spread
    from unordinal.model import device_of

    with replacing(path) as file:
        if result.split == EXACT and data.pmf is not None and data.pmf.ndim == 2:
            generator = torch.Generator(device_of(run.model)).manual_seed(seed)
            with progress("Sampling", None):
                samples = run.model.sample(NUM_PLOTTED, generator=generator).cpu()
            plot_pmf(data.pmf, result, samples, file)
        else:
            plot_spread(result, file)
