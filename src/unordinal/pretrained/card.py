"""Model cards: a README.md next to a model's files that describes it, with the metadata of the Hugging Face hub."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from unordinal.config import RunConfig
from unordinal.data.spec import DataSpec
from unordinal.runs.folder import RunFolder


def card_of(folder: RunFolder, config: RunConfig, spec: DataSpec, *, parameters: int, licence: str | None) -> str:
    """Return the card of a run: its own README.md with metadata in front of it, or one made from what is known.

    Args:
        folder: the folder of the run.
        config: its configuration.
        spec: the description of its data.
        parameters: how many weights the model has.
        licence: the licence of the weights, by its name on the hub, such as "cc-by-sa-4.0"; None leaves it out.
    """
    own = folder.path / "README.md"
    body = own.read_text() if own.is_file() else made(folder, config, spec, parameters)
    if body.startswith("---\n"):
        return body
    return metadata_of(config, spec, licence) + body


def metadata_of(config: RunConfig, spec: DataSpec, licence: str | None) -> str:
    """Return the metadata of the hub, in YAML."""
    task = "text-generation" if spec.vocabulary is not None else None
    values: Mapping[str, str | None] = {"library_name": "unordinal", "license": licence, "pipeline_tag": task}
    lines = [f"{name}: {value}" for name, value in values.items() if value]
    tags = ["unordinal", "categorical-data", config.recipe]
    return "\n".join(["---", *lines, "tags:", *(f"- {tag}" for tag in tags), "---", "", ""])


def made(folder: RunFolder, config: RunConfig, spec: DataSpec, parameters: int) -> str:
    """Return a card made from what is known of a run."""
    shape = " x ".join(map(str, spec.event_shape))
    bits = folder.published_bits
    score = "It was never validated." if bits is None else f"Validation: {bits:.4f} {spec.unit}."
    data = Path(spec.name.partition(":")[2] or spec.name).name
    told = f"- **Values of the data** in config.json: {spec.num_values:,} (names of categories, edges of bins).\n"
    template = (files("unordinal") / "templates" / "card.md").read_text()
    return template.format(
        preset=config.preset, size=config.size, data=data, parameters=parameters, step=folder.published_step,
        num_classes=spec.num_classes, shape=shape, score=score, told=told if spec.num_values else "",
    )  # fmt: skip
