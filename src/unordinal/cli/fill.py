"""`unordinal fill TEXT`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from unordinal.cli.common import MachineArgs, check_output
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.pictures import check_png, first_maps, require_maps, write_grid
from unordinal.cli.texts import given_text
from unordinal.cli.words import Words
from unordinal.cli.writing import write_frame
from unordinal.console import print_json, progress, say
from unordinal.names import counted
from unordinal.settings import Flag

if TYPE_CHECKING:
    from unordinal.api import Run


DEFAULT, JUDGE = "pretrained:english-arm", "pretrained:text8-arm"


@dataclass(frozen=True)
class FillArgs(MachineArgs):
    """Fill the gaps of a text, or of a map.

    Write one _ for each missing letter, or one * for a gap of any length. The default model searches for the likeliest
    whole text. Proposals of a diffusion over a-z and space are ranked by the exact log-probability of the whole text
    under pretrained:text8-arm; those of another diffusion by its own probability of the gaps, from left to right.

    Examples:
        unordinal fill "the ____ of the city"
        unordinal fill "the capital of france is *" --num 3 --json
        unordinal fill "C*CO" --run runs/molecules
        unordinal fill --run runs/streets --map scene.png --mask hole.png --grid filled.png
        unordinal fill --run runs/people --file people.csv --out filled.csv
    """

    FIRST: ClassVar = ("file", "run", "gap", "num", "map", "mask", "grid", "seed", "json")
    text: Annotated[str | None, POSITIONAL] = None
    """The text; without it --file or standard input is read."""
    file: Path | None = None
    """A text file, in UTF-8."""
    run: Annotated[str, Flag(metavar="RUN")] = DEFAULT
    """A run of an autoregressive model, or of a diffusion, best with absorbing noise."""
    map: Path | None = None
    """Maps: a PNG in the form of the run's own maps; default the first map of the run's test split."""
    mask: Path | None = None
    """Maps: a PNG of the same size, in which every pixel that is not black is to be filled."""
    out: Path | None = None
    """Tables: write the rows of --file, with their missing cells filled, to this .csv, .tsv or .parquet file."""
    grid: Path | None = None
    """Maps: write the given map and the proposals to this PNG file."""


def main(words: Words) -> int:
    from unordinal.data.tables import is_table
    from unordinal.tasks.cells import FillRows
    from unordinal.tasks.filling import Fill

    args, values, of_rows = parse(words, FillArgs, Fill, FillRows, skip=("text", "data"))
    check_png("--grid", args.grid)
    if args.map is not None or args.mask is not None:
        return fill_map(args, values)
    if args.out is not None or (args.file is not None and is_table(args.file)):
        return fill_table(args, of_rows)
    text = given_text(args.text, args.file)
    if not text.strip():
        raise ValueError('the text is empty; give one with gaps, such as "the ____ of the city"')
    run = args.load(args.run)
    has_judge = run.vocabulary is not None and run.vocabulary.kind == "text8" and not run.model.is_exact
    asked = Fill(text, **values, judge=args.load(JUDGE) if has_judge else None, progress=progress)
    found = run.filled(asked)
    if args.json:
        print_json({"kind": found.kind, "proposals": [asdict(p) for p in found.proposals], "seed": asked.seed})
        return 0
    for proposal in found.proposals:
        share = "" if proposal.probability is None else f"{proposal.probability:9.1%}"
        print(f"{proposal.log_prob:10.2f}{share}  {proposal.text}")
    by = f" under {JUDGE}" if has_judge else ""
    shares = "" if found.proposals[0].probability is None else ", probability given the rest"
    say(f"{counted(len(found.proposals), 'proposal')}; log-probability in nats ({found.kind}{by}){shares}.")
    return 0


def fill_table(args: FillArgs, values: dict[str, Any]) -> int:
    """Fill the missing cells of a table."""
    from unordinal.tasks.cells import FillRows, fill_rows

    if args.file is None:
        raise ValueError("a table needs --file, the .csv, .tsv or .parquet file to fill")
    check_output(args.out)
    run = args.load(args.run)
    frame, num = fill_rows(run.model, run.spec, FillRows(str(args.file), **values, progress=progress))
    write_frame(frame, args.out, shows=not args.json)
    to = "" if args.out is None else f"; the table is in {args.out}"
    done = "with their probabilities" if values.get("how") == "probabilities" else "filled"
    say(f"{counted(num, 'cell')} {done}{to}.")
    if args.json:
        print_json({"cells": num, "rows": len(frame), "out": None if args.out is None else str(args.out)})
    return 0


def fill_map(args: FillArgs, values: dict[str, Any]) -> int:
    """Fill the hole of a map and write the proposals as a picture."""
    import torch

    from unordinal.tasks.filling import FillMap, proposals_of
    from unordinal.tasks.filling import fill_map as filled

    if args.mask is None or args.grid is None:
        raise ValueError("a map needs --mask, a picture of the hole, and --grid, where to write the filled maps")
    run = args.load(args.run)
    require_maps(run.spec)
    known, hole = read_hole(args, run)
    if not bool(hole.any()):
        raise ValueError(f"{args.mask} is all black: there is nothing to fill")
    given = {name: value for name, value in values.items() if name in ("num", "seed")}
    asked = FillMap(torch.where(hole, -1, known), **given, progress=progress)
    x, scores = filled(run.model, run.spec, asked)
    shown = torch.where(hole, run.spec.num_classes, known)
    write_grid(
        args.grid,
        [("given", shown.unsqueeze(0)), ("filled" if scores is None else "filled, the likeliest first", x)],
        run.spec,
    )
    say(f"{counted(len(x), 'proposal')} written to {args.grid}")
    if args.json:
        print_json({"proposals": proposals_of(x, scores), "seed": asked.seed})
    return 0


def read_hole(args: FillArgs, run: "Run") -> tuple[Any, Any]:
    """Return the classes of the map, and which pixels are to be filled."""
    import torch

    from unordinal.data.maps import read_map, read_mask
    from unordinal.runs.data import data_for

    if args.map is None:
        known = first_maps(data_for(run, None, progress), "test", 1)[0].long()
    else:
        known = torch.from_numpy(read_map(args.map, run.spec)).long()
    assert args.mask is not None
    hole = torch.from_numpy(read_mask(args.mask))
    if known.shape != hole.shape:
        sizes = " and ".join(" x ".join(map(str, shape)) for shape in (known.shape, hole.shape))
        raise ValueError(f"the map and the mask must have the same size, got {sizes}")
    return known, hole
