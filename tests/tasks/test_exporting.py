"""Networks as ONNX files: equal to PyTorch under onnxruntime, for any batch and length."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unordinal import Vocabulary, configured
from unordinal.data.spec import DataSpec
from unordinal.tasks.exporting import export_onnx

onnxruntime = pytest.importorskip("onnxruntime")
TEXT = DataSpec("toy", 27, (24,), Vocabulary.text8())
MAPS = DataSpec("toy", 4, (8, 16))
SMALL: dict[str, Any] = {"model.net.width": 16, "model.net.num_blocks": 1}


def session_of(model: Any, spec: DataSpec, path: Path) -> Any:
    export_onnx(model, spec, path)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    "name", ["arm", "uniform", *(pytest.param(name, marks=pytest.mark.slow) for name in ("absorbing", "multinomial"))]
)
def test_a_network_of_text_gives_the_same_logits(name: str, tmp_path: Path) -> None:
    from unordinal.overrides import with_settings

    torch.manual_seed(0)
    settings = SMALL if name != "arm" else {**SMALL, "model.ngrams.orders": (3,), "model.ngrams.rows": 64}
    model = with_settings(configured(name), settings).model.build(TEXT)
    for weight in model.parameters():  # outputs that start at zero would all be equal
        torch.nn.init.normal_(weight, std=0.2)
    session = session_of(model, TEXT, tmp_path / "model.onnx")
    network = model.network
    assert network is not None
    for batch, length in ((2, 24), (1, 5), (3, 40)):
        x = torch.randint(27, (batch, length))
        given = {"x": x}
        if "t" in network.inputs:
            is_whole = not network.inputs["t"].is_floating_point()
            given["t"] = torch.randint(1, 100, (batch,)) if is_whole else torch.rand(batch)
        with torch.no_grad():
            wanted = network.module(**given)
        named = {part.name for part in session.get_inputs()}
        (found,) = session.run(["logits"], {k: v.numpy() for k, v in given.items() if k in named})
        assert np.abs(found - wanted.numpy()).max() < 1e-4
    meta = session.get_modelmeta().custom_metadata_map
    assert meta["symbols"] == TEXT.vocabulary.symbols  # type: ignore[union-attr]
    assert meta["num_classes"] == "27"


def test_a_network_of_maps_takes_any_batch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = configured("absorbing", "tiny", "maps").model.build(MAPS)
    session = session_of(model, MAPS, tmp_path / "model.onnx")
    x, t = torch.randint(5, (3, 8, 16)), torch.rand(3)
    assert model.network is not None
    with torch.no_grad():
        wanted = model.network.module(x, t)
    named = {part.name for part in session.get_inputs()}
    (found,) = session.run(["logits"], {k: v for k, v in {"x": x.numpy(), "t": t.numpy()}.items() if k in named})
    assert np.abs(found - wanted.numpy()).max() < 1e-4


def test_a_model_without_a_single_network_is_refused(tmp_path: Path) -> None:
    model = configured("argmax-ar").model.build(TEXT)
    assert model.network is None
    with pytest.raises(ValueError, match="no single network"):
        export_onnx(model, TEXT, tmp_path / "model.onnx")
