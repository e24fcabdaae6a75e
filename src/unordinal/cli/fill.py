"""`unordinal fill TEXT`."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from unordinal.cli.common import MachineArgs, check_seed, chosen_device
from unordinal.cli.flags import Command, parse
from unordinal.cli.pictures import check_png, first_maps, require_maps, write_grid
from unordinal.cli.texts import given_text
from unordinal.console import print_json, progress, say
from unordinal.names import counted

if TYPE_CHECKING:
    from unordinal.api import Run

COMMAND = Command(
    "unordinal fill",
    "Fill the gaps of a text, or of a map.\n\n"
    "Every missing letter is one sign, so that a gap has a fixed length. Proposals of a masked diffusion are ranked by "
    "the exact log-probability of the whole text under an autoregressive model where one has the same alphabet, "
    "otherwise by the diffusion's own probability of the gaps, from left to right.",
    (
        'unordinal fill "the ____ of the city"',
        'unordinal fill "the capital of france is _____" --num 3 --json',
        "unordinal fill --run runs/streets --map scene.png --mask hole.png --grid filled.png",
    ),
    first=("file", "run", "gap", "num", "map", "mask", "grid", "seed", "json"),
)

DEFAULT, JUDGE = "pretrained:text8-absorbing", "pretrained:text8-arm"


@dataclass(frozen=True)
class FillArgs:
    text: tyro.conf.Positional[str | None] = None
    """The text; without it --file or standard input is read."""
    file: Path | None = None
    """A text file, in UTF-8."""
    run: Path = Path(DEFAULT)
    """A run of a diffusion, best with absorbing noise, or of an autoregressive model."""
    gap: str = "_"
    """The sign of a missing letter."""
    num: int = 5
    """How many proposals."""
    map: Path | None = None
    """Maps: a PNG in the form of the run's own maps; default the first map of the run's test split."""
    mask: Path | None = None
    """Maps: a PNG of the same size, in which every pixel that is not black is to be filled."""
    grid: Path | None = None
    """Maps: write the given map and the proposals to this PNG file."""
    seed: int = 0
    """Seed of the draws."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """Print one JSON object with every proposal."""


def main(argv: list[str]) -> int:
    args = parse(FillArgs, argv, COMMAND)
    from unordinal.api import load

    check_seed(args.seed)
    check_png("--grid", args.grid)
    is_map = args.map is not None or args.mask is not None
    text = "" if is_map else given_text(args.text, args.file)
    if not is_map and not text.strip():
        raise ValueError('the text is empty; give one with gaps, such as "the ____ of the city"')
    run = load(args.run, device=chosen_device(args.machine))
    return fill_map(run, args) if is_map else fill_text(run, text, args)


def fill_text(run: "Run", text: str, args: FillArgs) -> int:
    """Fill the gaps of a text and print the proposals."""
    from unordinal.api import load

    judge = None
    if run.vocabulary is not None and run.vocabulary.kind == "text8" and not run.model.is_exact:
        judge = load(JUDGE, device=chosen_device(args.machine))
    found = run.fill(text, gap=args.gap, num=args.num, judge=judge, seed=args.seed, progress=progress)
    if args.json:
        print_json({"kind": found.kind, "proposals": [asdict(p) for p in found.proposals], "seed": args.seed})
        return 0
    for proposal in found.proposals:
        print(f"{proposal.log_prob:10.2f}  {proposal.text}")
    by = f" under {JUDGE}" if judge is not None else ""
    say(f"{counted(len(found.proposals), 'proposal')}; log-probability in nats ({found.kind}{by}).")
    return 0


def fill_map(run: "Run", args: FillArgs) -> int:
    """Fill the hole of a map and write the proposals as a picture."""
    import torch

    from unordinal.data.maps import read_map, read_mask
    from unordinal.rundata import data_of
    from unordinal.tasks.filling import fill

    if args.mask is None or args.grid is None:
        raise ValueError("a map needs --mask, a picture of the hole, and --grid, where to write what fills it")
    require_maps(run.spec)
    if args.map is None:
        known = first_maps(data_of(run, None, progress), "test", 1)[0].long()
    else:
        known = torch.from_numpy(read_map(args.map, run.spec)).long()
    hole = torch.from_numpy(read_mask(args.mask))
    if known.shape != hole.shape:
        sizes = " and ".join(" x ".join(map(str, shape)) for shape in (known.shape, hole.shape))
        raise ValueError(f"the map and the mask must have the same size, got {sizes}")
    if not bool(hole.any()):
        raise ValueError(f"{args.mask} is all black: there is nothing to fill")
    x, scores = fill(run.model, torch.where(hole, -1, known), num=args.num, seed=args.seed, progress=progress)
    given = torch.where(hole, run.spec.num_classes, known)
    write_grid(args.grid, [("given", given.unsqueeze(0)), ("filled, the likeliest first", x)], run.spec)
    say(f"{counted(len(x), 'proposal')} written to {args.grid}")
    if args.json:
        values = [{"log_prob": score, "map": row.tolist()} for score, row in zip(scores.tolist(), x, strict=True)]
        print_json({"proposals": values, "seed": args.seed})
    return 0
