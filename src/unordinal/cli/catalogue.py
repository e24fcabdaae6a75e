"""`unordinal presets` and `unordinal data [NAME]`: what there is."""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from unordinal.cli.common import text_of
from unordinal.cli.flags import Command, parse
from unordinal.cli.pictures import GRID_MAPS, check_png, first_maps, require_maps, write_grid
from unordinal.config import Alphabet, DataConfig, RunConfig
from unordinal.console import print_json, progress, say

if TYPE_CHECKING:
    from unordinal.data.splits import Data


PRESETS = Command(
    "unordinal presets",
    "List the models, and the experiments of the paper.",
    ("unordinal presets", "unordinal presets --json"),
)


@dataclass(frozen=True)
class PresetsArgs:
    parameters: bool = False
    """Count the parameters of every experiment at every size, which takes some seconds."""
    json: bool = False
    """One JSON object on stdout."""


def presets_main(argv: list[str]) -> int:
    args = parse(PresetsArgs, argv, PRESETS)
    from unordinal.pretrained import PREFIX, PRETRAINED
    from unordinal.recipes import RECIPES, SIZES, configured, experiments

    models = {name: {"description": r.description, "takes": list(r.takes)} for name, r in RECIPES.items()}
    presets: dict[str, dict[str, Any]] = {}
    for name, (recipe, task) in experiments().items():
        presets[name] = {"model": recipe, "data": task, "description": RECIPES[recipe].description}
        if args.parameters:
            presets[name]["parameters"] = {size: num_parameters(configured(name, size)) for size in SIZES}
    if args.json:
        inside = {f"{PREFIX}{name}": entry.description for name, entry in PRETRAINED.items()}
        print_json({"models": models, "presets": presets, "sizes": list(SIZES), "pretrained": inside})
    else:
        show_models(models)
        show_pretrained()
        show_experiments(presets)
    return 0


def show_models(models: dict[str, dict[str, Any]]) -> None:
    """Models by the shape of the data that they take."""
    width = max(map(len, models))
    print("Models: unordinal train MODEL --data WHAT [--size tiny|small|paper]")
    for title, takes in (
        ("sequences and maps", ["sequences", "maps"]),
        ("sequences", ["sequences"]),
        ("maps", ["maps"]),
    ):
        print(f"\n  {title}")
        for name, entry in models.items():
            if entry["takes"] == takes:
                print(f"    {name:<{width}}  {entry['description']}")


def show_experiments(presets: dict[str, dict[str, Any]]) -> None:
    """The paper's experiments by data set."""
    print("\nThe paper's experiments, with its data and settings: unordinal train EXPERIMENT --size paper\n")
    tasks = dict.fromkeys(entry["data"] for entry in presets.values())
    for task in tasks:
        names = [name for name, entry in presets.items() if entry["data"] == task]
        print(textwrap.fill(", ".join(names), 100, initial_indent="  ", subsequent_indent="  "))
        for name in names:
            counts = presets[name].get("parameters", {})
            if counts:
                shown = "  ".join(f"{size}: {count / 1e6:.1f} M parameters" for size, count in counts.items())
                print(f"    {name:<36} {shown}")


def show_pretrained() -> None:
    """The models that come with the package."""
    from unordinal.pretrained import PREFIX, PRETRAINED

    print("\nTrained models that come with the package: unordinal sample pretrained:NAME\n")
    for name, entry in PRETRAINED.items():
        print(f"  {PREFIX}{name}\n    {entry.description}")


def num_parameters(config: RunConfig) -> int:
    """Parameters of an experiment's model, counted without allocating them."""
    import torch

    from unordinal.data.spec import DataSpec

    num_classes, shape = EXPERIMENT_SHAPES[config.data.name]
    with torch.device("meta"):
        model = config.model.build(DataSpec(config.data.name, num_classes, shape))
    return sum(p.numel() for p in model.parameters())


# Classes and shape of an example of each data set of the paper.
EXPERIMENT_SHAPES: dict[str, tuple[int, tuple[int, ...]]] = {
    "text8": (27, (256,)),
    "enwik8": (256, (320,)),
    "eight-gaussians": (91, (2,)),
    "cityscapes": (8, (32, 64)),
}


DATA = Command(
    "unordinal data",
    "List the data sets, or prepare and describe one.",
    (
        "unordinal data",
        "unordinal data book.txt",
        "unordinal data streets --grid streets.png --baselines",
    ),
)


@dataclass(frozen=True)
class DataArgs:
    name: tyro.conf.Positional[str | None] = None
    """A file or folder of your own, or docs, streets, text8 ...; without it, the data sets are listed."""
    alphabet: Alphabet | None = None
    """How text becomes classes; default text8's own for text8 and docs, bytes for enwik8, else the first that fits."""
    data_split: str | None = None
    """TRAIN,VAL,TEST as fractions or counts."""
    length: int | None = None
    """Symbols per sequence; default 256 (320 for enwik8)."""
    num_classes: int | None = None
    """Classes of an array or of maps; default the largest + 1."""
    letters: str | None = None
    """What the classes of an array, or the letters of a FASTA file, are called, in order: ACGT, say."""
    colours: Path | None = None
    """Maps in colour: a file with one class per line, a name and its colour: `road #804080` or `road 128 64 128`."""
    height: int | None = None
    """Rows of a map, for streets and cityscapes; default 32."""
    width: int | None = None
    """Columns of a map, likewise; default 64."""
    grid: Path | None = None
    """Maps: write a picture of the first ones of the test split to this PNG file."""
    baselines: bool = False
    """Texts and maps: bits of the test split under count models and xz, fitted on train."""
    json: bool = False
    """End with one JSON object on stdout."""


DEFAULT_ALPHABETS: dict[str, Alphabet] = {"docs": "text8", "text8": "text8", "enwik8": "bytes"}


def data_main(argv: list[str]) -> int:
    args = parse(DataArgs, argv, DATA)
    from unordinal.data import DATASETS, check_shape, load_data

    if args.name is None:
        if args.json:
            print_json({"data": {entry.usage: entry.description for entry in DATASETS.values()}})
        else:
            for entry in DATASETS.values():
                print(f"{entry.usage:<17} {entry.description}")
        return 0
    alphabet = args.alphabet or DEFAULT_ALPHABETS.get(args.name)
    length = 320 if args.length is None and args.name == "enwik8" else args.length
    config = DataConfig(
        args.name,
        alphabet,
        args.data_split,
        length,
        args.num_classes,
        letters=args.letters,
        map_height=args.height,
        map_width=args.width,
        colours=None if args.colours is None else text_of(args.colours),
    )
    check_png("--grid", args.grid)
    if args.grid:
        check_shape(args.name, wants_maps=True, who="--grid")
    data = load_data(config, progress=progress)
    if args.grid:
        require_maps(data.spec)
        write_grid(args.grid, [("test", first_maps(data, "test", GRID_MAPS))], data.spec)
        say(f"Picture written to {args.grid}")
    others = baselines_of(data) if args.baselines else {}
    if args.json:
        counts = {name: len(data.split(name)) for name in ("train", "val", "test")}
        print_json({**data.spec.to_dict(), "examples": counts, "notes": list(data.notes), "baselines": others})
    else:
        describe(data, others)
    return 0


def describe(data: "Data", others: dict[str, float]) -> None:
    """Classes, splits, a first example and baselines, for people."""
    what = "examples" if data.train.length is None else f"symbols, sequences of {data.train.length}"
    print(f"{data.spec.name}: {data.spec.num_classes} classes, examples of shape {data.spec.event_shape}")
    for name, size in zip(("train", "val", "test"), data.spec.split_sizes, strict=True):
        split = data.split(name)
        tail = f", the last {split.num_unscored} not scored" if split.num_unscored else ""
        cut = "" if split.length is None else f": {len(split):,} examples"
        print(f"  {name:<5} {size:>12,} {what}{cut}{tail}")
    if data.spec.vocabulary is not None and data.spec.vocabulary.symbols:
        print(f"  vocabulary {data.spec.vocabulary.symbols!r}")
    print(f"  sha256 {data.spec.fingerprint}\n\n{data.spec.show(data.train[0])}")
    if others:
        print(f"\n{data.spec.unit.capitalize()} of the test split, fitted on train:")
        for name, bits in others.items():
            print(f"  {name:<38} {bits:.3f}")
    for note in data.notes:
        say(f"Note: {note}.")


def baselines_of(data: "Data") -> dict[str, float]:
    """What any trained model should beat."""
    from unordinal.evaluate.counts import baselines, map_baselines

    data.require("train", "test")
    train, test = data.train.symbols, data.test.symbols
    if not data.spec.is_map and data.train.length is None:
        raise ValueError(f"count models are for texts and maps; {data.spec.name} has rows of {data.spec.event_shape}")
    with progress("Fitting count models and xz", None):
        fit = map_baselines if data.spec.is_map else baselines
        return fit(train, test, data.spec.num_classes)
