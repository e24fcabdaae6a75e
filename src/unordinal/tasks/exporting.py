"""Write a model's network to an ONNX file, which other programs run without this library."""

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim

from unordinal.data.spec import DataSpec
from unordinal.data.storage import replacing
from unordinal.model import CategoricalModel

MOST = 1 << 16  # of a batch, and of the symbols of a sequence


def export_onnx(model: CategoricalModel, spec: DataSpec, path: Path) -> None:
    """Write the network of a model to an ONNX file that takes any batch size and, for sequences, any length.

    Its inputs are `x`, classes (B, *D), in which the class K is a mask where the noise has masks, and, for diffusions,
    `t`, times (B,). Its output is `logits` (B, *D, K). What else is needed to use it stands in the metadata: the number
    of classes, the shape of an example, the symbols of the alphabet and the number of steps of a discrete diffusion.

    Args:
        model: a diffusion, or an autoregressive model, on the CPU.
        spec: the description of its data.
        path: the file.
    """
    network = model.network
    if network is None:
        raise ValueError(f"a {type(model).__name__} has no single network; export a diffusion or arm")
    names = list(network.inputs)
    batch = Dim("batch", min=1, max=MOST)
    sides = {1: Dim("length", min=2, max=MOST)} if len(model.event_shape) == 1 else {}
    shapes = tuple({0: batch, **(sides if name == "x" else {})} for name in names)
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns of packages that are not needed
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: Any = torch.onnx.export(
                network.module.eval(),
                tuple(network.inputs.values()),
                dynamo=True,
                dynamic_shapes=shapes,
                input_names=names,
                output_names=["logits"],
                verbose=False,
            )
    finally:
        log.setLevel(level)
    for key, value in metadata_of(model, spec).items():
        found.model.metadata_props[key] = value
    with replacing(path) as file:
        file.write(found.model_proto.SerializeToString())


def metadata_of(model: CategoricalModel, spec: DataSpec) -> dict[str, str]:
    """Return what a user of the file needs to know, as texts."""
    return {
        "num_classes": str(model.num_classes),
        "event_shape": json.dumps(list(model.event_shape)),
        "symbols": "" if spec.vocabulary is None else spec.vocabulary.symbols,
        "tokenizer": "" if spec.vocabulary is None else spec.vocabulary.to_dict().get("tokenizer", ""),
        "num_steps": "" if model.times is None or model.times.num is None else str(model.times.num),
        "reads": "the positions before" if model.stepper is not None else "the noisy example",
    }
