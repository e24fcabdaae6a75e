"""`unordinal presets`: which models there are."""

import textwrap
from dataclasses import dataclass
from typing import Any

from unordinal.cli.parsing import parse
from unordinal.cli.words import Words
from unordinal.config import RunConfig
from unordinal.console import print_json


@dataclass(frozen=True)
class PresetsArgs:
    """List the models, and the experiments of the paper.

    Examples:
        unordinal presets
        unordinal presets --json
    """

    parameters: bool = False
    """Count the parameters of every experiment at every size, which takes some seconds."""
    json: bool = False
    """One JSON object on stdout."""


def main(words: Words) -> int:
    args = parse(words, PresetsArgs)
    from unordinal.experiments import EXPERIMENTS
    from unordinal.pretrained import PREFIX, PRETRAINED
    from unordinal.recipes import RECIPES, SIZES, configured

    models = {name: {"description": r.description, "takes": list(r.takes)} for name, r in RECIPES.items()}
    presets: dict[str, dict[str, Any]] = {}
    for name, (recipe, task) in EXPERIMENTS.items():
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
    """Print the models by the shape of the data that they take."""
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
    """Print the paper's experiments by data set."""
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
    """Print the bundled models."""
    from unordinal.pretrained import PREFIX, PRETRAINED

    print("\nBundled models: unordinal sample pretrained:NAME\n")
    for name, entry in PRETRAINED.items():
        print(f"  {PREFIX}{name}\n    {entry.description}")


def num_parameters(config: RunConfig) -> int:
    """Return the number of parameters of an experiment's model, counted without allocating them."""
    import torch

    from unordinal.data.spec import DataSpec
    from unordinal.experiments import DATA, EXPERIMENTS

    data = DATA[EXPERIMENTS[config.preset][1]]
    with torch.device("meta"):
        model = config.model.build(DataSpec(config.data.name, data.num_classes, data.shape))
    return sum(p.numel() for p in model.parameters())
