"""`unordinal classify RUN [DATA]`."""

from dataclasses import dataclass
from typing import Annotated

from unordinal.cli.common import MachineArgs
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.names import counted
from unordinal.settings import Flag


@dataclass(frozen=True)
class ClassifyArgs(MachineArgs):
    """Find the label of examples by Bayes' rule, with a model that was trained with labels.

    P(label | x) is in proportion to P(x | label) and to how often the label occurs in the training data. It is exact
    for exact models; for others, bounds of P(x | label) are compared.

    Examples:
        unordinal classify runs/names
        unordinal classify runs/names new_names.txt --json
        unordinal classify runs/frogs frogs.npz --name colour --label class=frog
    """

    run: Annotated[str, POSITIONAL, Flag(metavar="RUN")]
    """A run of a model that was trained with labels."""
    data: Annotated[str | None, POSITIONAL, Flag(metavar="DATA")] = None
    """The examples; default the test split of the run's own data."""


def main(words: Words) -> int:
    from unordinal.runs.data import data_for
    from unordinal.tasks.classifying import Classify, classify, place_of_label

    args, values = parse(words, ClassifyArgs, Classify, skip=("data",))
    asked = Classify(args.data, **values, progress=progress)
    run = args.load(args.run)
    place_of_label(run.spec, asked)  # before anything is read
    loaded = data_for(run, asked.data, progress, is_whole=asked.split is None)
    split = loaded.split(asked.split or "test")
    found = classify(run.model, run.spec, split, asked)
    best = found.probabilities.max(dim=1).values.tolist()
    names = found.label.values
    rows = []
    for number, (value, probability) in enumerate(zip(found.values, best, strict=True)):
        row = {"example": number + 1, found.label.name: value, "probability": probability}
        row["probabilities"] = dict(zip(names, found.probabilities[number].tolist(), strict=True))
        if found.error is not None:
            row["error"] = float(found.error[number])  # of the log-odds of the two likeliest values
        if run.vocabulary is not None:
            row["text"] = run.spec.show(split[number])
        elif split.names:
            row["text"] = split.names[number]
        rows.append(row)
        if not args.json:
            print(f"{number + 1:>6}  {probability:6.1%}  {value}  {row.get('text', '')}".rstrip())
    share = ""
    if found.accuracy is not None and found.truth is not None:
        most = float(found.truth[found.truth < len(names)].bincount().max()) / int((found.truth < len(names)).sum())
        share = f" {found.accuracy:.1%} of those with a label were right; the most frequent one has {most:.1%}."
    say(f"{counted(len(rows), 'example')}: probability, {found.label.name} ({found.kind}).{share}")
    if args.json:
        values = {"label": found.label.name, "kind": found.kind, "accuracy": found.accuracy, "examples": rows}
        print_json({**values, "run": args.run})
    return 0
