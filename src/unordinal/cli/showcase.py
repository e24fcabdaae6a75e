"""What `unordinal demo` shows first: what the bundled models can do."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from unordinal.cli.common import MachineArgs
from unordinal.console import progress

if TYPE_CHECKING:
    from unordinal.api import Run

EMERGING_TOKENS, EMERGING_CALLS, EMERGING_ROWS, EMERGING_TEMPERATURE = 24, 24, 7, 0.5
MISTYPED = "The goverment was begining to recieve leters from peple in diferent cities."
GAPS = "the ____ of the city was destroyed by the romans"
PROPOSALS = 3
RINGS, MOLECULES = 3, 6
CONDITIONS, ROWS = ("weather=hot", "drink=tea"), 4


def show_bundled(args: MachineArgs, seed: int) -> None:
    """Print what the bundled models can do, one model after another."""
    show_emerging(args.load("pretrained:english-absorbing"), seed)
    corrected = args.load("pretrained:text8-arm").correct(MISTYPED, progress=progress).text
    print(f"\nA mistyped sentence, and what was meant:\n  {MISTYPED}\n  {corrected}", flush=True)
    print(f"\nGaps, and the likeliest ways to fill them (_ is a letter):\n  {GAPS}", flush=True)
    for proposal in args.load("pretrained:english-arm").fill(GAPS, num=PROPOSALS, progress=progress).proposals:
        print(f"  {proposal.text}")
    print(f"\nMolecules with {RINGS} rings, as SMILES, by pretrained:molecules:")
    molecules = args.load("pretrained:molecules").sample(MOLECULES, label=f"rings={RINGS}", guidance=1, seed=seed)
    print("\n".join(f"  {text}" for text in molecules), flush=True)
    print(f"\nRows of a table that satisfy {' and '.join(CONDITIONS)}, by pretrained:cafe:")
    if find_spec("pandas") is None:
        print("  (tables need packages: pip install 'unordinal[tables]')")
        return
    rows = args.load("pretrained:cafe").sample(ROWS, where=CONDITIONS, seed=seed)
    print("\n".join(f"  {line}" for line in rows.to_string(index=False).splitlines()), flush=True)


def show_emerging(run: "Run", seed: int) -> None:
    """Print the steps in which a text emerges from masks."""
    from unordinal.evaluate.report import chain_rows
    from unordinal.tasks.asking import Sample
    from unordinal.tasks.drawing import sample

    length, temperature = EMERGING_TOKENS, EMERGING_TEMPERATURE
    asked = Sample(
        1, steps=EMERGING_CALLS, sampler="entropy", temperature=temperature, length=length, seed=seed, progress=progress
    )
    drawn = sample(run.model, run.spec, asked, with_chain=True)
    print("Text out of noise, by pretrained:english-absorbing (trained on the beginning of Wikipedia):")
    for _, x in chain_rows(drawn.chain, EMERGING_ROWS):
        print(f"  {run.spec.show_noisy(x)}")
