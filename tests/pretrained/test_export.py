"""Runs turned into models that come with the package, and found again by their names."""

from pathlib import Path
from typing import Any

import pytest
import torch

import unordinal
from unordinal import pretrained
from unordinal.pretrained import Pretrained, pretrained_folder
from unordinal.pretrained.export import export


def small_run(book: Path, tmp_path: Path) -> unordinal.Run:
    settings: dict[str, Any] = {"length": 16, "net.width": 16, "net.num_blocks": 1, "net.num_heads": 2}
    return unordinal.fit("arm", book, out=tmp_path / "run", steps=3, progress=False, **settings)


def test_an_exported_run_is_loaded_by_its_name(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = small_run(book, tmp_path)
    sha256 = export(tmp_path / "run", "mine", tmp_path)
    assert sha256 == export(tmp_path / "run", "again", tmp_path)  # the same weights give the same file
    monkeypatch.setattr(pretrained, "HERE", tmp_path)
    monkeypatch.setitem(pretrained.PRETRAINED, "mine", Pretrained("a test", sha256))
    loaded = unordinal.load("pretrained:mine")
    for name, value in run.model.state_dict().items():
        torch.testing.assert_close(loaded.model.state_dict()[name], value, rtol=1e-3, atol=1e-6)
        assert loaded.model.state_dict()[name].dtype == value.dtype
    assert str(tmp_path) not in (tmp_path / "mine" / "config.json").read_text()
    assert len(loaded.sample(2)[0]) == 16
    with pytest.raises(ValueError, match="unknown pretrained model 'mne'; did you mean mine"):
        unordinal.load("pretrained:mne")
    weights = tmp_path / "mine" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x00")
    with pytest.raises(ValueError, match="is not what it should be: expected sha256"):
        pretrained_folder("pretrained:mine")
    weights.unlink()
    with pytest.raises(ValueError, match="found nothing"):
        pretrained_folder("pretrained:mine")
