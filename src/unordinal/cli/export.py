"""`unordinal export RUN FILE.onnx`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from unordinal.cli.common import check_output
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.settings import Flag


@dataclass(frozen=True)
class ExportArgs:
    """Write a run's network to an ONNX file, for use without this library.

    The network of a diffusion takes noisy classes and a time, and gives logits of the clean classes; that of an
    autoregressive model takes classes and gives the logits of each position given those before it. docs/sharing.md
    shows how to sample with onnxruntime alone.

    Examples:
        unordinal export runs/diffusion diffusion.onnx
        unordinal export pretrained:text8-arm arm.onnx
    """

    run: Annotated[str, POSITIONAL, Flag(metavar="RUN")]
    """Folder of a run, or a bundled model."""
    file: Annotated[Path, POSITIONAL]
    """The file to write, which ends in .onnx."""
    json: bool = False
    """End with one JSON object on stdout."""


def main(words: Words) -> int:
    args = parse(words, ExportArgs)
    if args.file.suffix.lower() != ".onnx":
        raise ValueError(f"expected a file that ends in .onnx, got {args.file}")
    check_output(args.file)
    from unordinal.api import load

    try:
        import onnxscript  # noqa: F401
    except ModuleNotFoundError as error:
        raise ValueError(
            f"exporting needs the package {error.name}; install it with: pip install 'unordinal[onnx]'"
        ) from error
    from unordinal.tasks.exporting import export_onnx

    run = load(args.run)
    if run.model.network is None:
        raise ValueError(
            f"{args.run} is a {run.config.preset}, which has no single network to export; export a diffusion or arm"
        )
    with progress("Exporting", None):
        export_onnx(run.model, run.spec, args.file)
    size = args.file.stat().st_size
    say(f"Network written to {args.file}, {size / 1e6:.1f} MB")
    if args.json:
        print_json({"file": str(args.file), "bytes": size, "run": str(args.run)})
    return 0
