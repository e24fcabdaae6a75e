"""`unordinal data [NAME]`: list data sets, or describe one."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unordinal.cli.parsing import POSITIONAL, Command, given_of, options_of, read
from unordinal.cli.pictures import GRID_MAPS, check_png, first_maps, require_maps, write_grid
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.settings import Flag

if TYPE_CHECKING:
    from unordinal.data.splits import Data


@dataclass(frozen=True)
class DataArgs:
    """List the data sets, or prepare and describe one.

    Examples:
        unordinal data
        unordinal data book.txt
        unordinal data names.txt --lines
        unordinal data streets --grid streets.png --baselines
    """

    name: Annotated[str | None, POSITIONAL, Flag(metavar="DATA")] = None
    """A file or folder of your own, or docs, streets, text8 ...; without it, the data sets are listed."""
    lines: bool = False
    """Take every line of a text file as an example; for a table, --column COLUMN takes every text of this column."""
    grid: Path | None = None
    """Maps: write a picture of the first ones of the test split to this PNG file."""
    baselines: bool = False
    """Texts and maps: bits of the test split under count models and xz, fitted on train."""
    json: bool = False
    """End with one JSON object on stdout."""


def main(words: Words) -> int:
    from unordinal.data import DATASETS, source_of
    from unordinal.data.text import TextSource
    from unordinal.overrides import changed_settings

    name = next(iter(words.all_plain), None)
    lines: Any = {"lines": words.has("--lines"), "column": words.value("--column")}
    source = None if name is None else source_of(name, **lines)
    static = list(options_of(DataArgs))
    settings = list(options_of(TextSource if source is None else type(source), value=source))
    values = read(words, Command.of(DataArgs), [*static, *settings])
    args, given = DataArgs(**given_of(static, values)), given_of(settings, values)
    if source is None:
        if args.json:
            print_json({"data": {entry.usage: entry.description for entry in DATASETS.values()}})
        else:
            for entry in DATASETS.values():
                print(f"{entry.usage:<17} {entry.description}")
        return 0
    if source.key == "docs":
        given.setdefault("alphabet", "text8")
    source = changed_settings(source, given)
    check_png("--grid", args.grid)
    if args.grid and source.shape != "maps":
        raise ValueError(f"--grid is for maps, and {source.name} gives {source.shape}")
    data = source.load(progress=progress)
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
    """Print classes, splits, a first example and baselines."""
    what = "examples" if data.train.length is None else f"symbols, sequences of {data.train.length}"
    print(f"{data.spec.name}: {data.spec.num_classes} classes, examples of shape {data.spec.event_shape}")
    for name, size in zip(("train", "val", "test"), data.spec.split_sizes, strict=True):
        split = data.split(name)
        tail = f", the last {split.num_unscored} not scored" if split.num_unscored else ""
        cut = "" if split.length is None else f": {len(split):,} examples"
        print(f"  {name:<5} {size:>12,} {what}{cut}{tail}")
    if data.spec.vocabulary is not None and data.spec.vocabulary.symbols:
        print(f"  vocabulary {data.spec.vocabulary.symbols!r}")
    print(f"  sha256 {data.spec.fingerprint}")
    if data.spec.is_map:
        print("\n--grid FILE.png shows some of the maps.")
    else:
        print(f"\n{data.spec.show(data.train[0])}")
    if others:
        print(f"\n{data.spec.unit.capitalize()} of the test split, fitted on train:")
        for name, bits in others.items():
            print(f"  {name:<38} {bits:.3f}")
    for note in data.notes:
        say(f"Note: {note}.")


def baselines_of(data: "Data") -> dict[str, float]:
    """Return the scores that any trained model should beat."""
    from unordinal.evaluate.counts import baselines, map_baselines

    data.require("train", "test")
    train, test = data.train.symbols, data.test.symbols
    if not data.spec.is_map and data.train.length is None:
        raise ValueError(f"count models are for texts and maps; {data.spec.name} has rows of {data.spec.event_shape}")
    with progress("Fitting count models and xz", None):
        fit = map_baselines if data.spec.is_map else baselines
        return fit(train, test, data.spec.num_classes)
