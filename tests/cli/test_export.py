"""`unordinal export`, and the example of docs/sharing.md."""

import re
import subprocess
import sys
from pathlib import Path

from conftest import Cli, refused

PAGE = Path(__file__).parents[2] / "docs" / "sharing.md"


def test_the_example_of_the_docs_samples_with_onnxruntime_alone(cli: Cli, tmp_path: Path) -> None:
    result = cli("export", "pretrained:english-absorbing", "model.onnx", "--json")
    assert result.code == 0, result.err
    assert result.json["bytes"] > 10_000_000
    (code,) = re.findall(r"```python\n(import numpy.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.strip().splitlines()) <= 30
    assert "torch" not in code
    assert "unordinal" not in code
    made = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(r"[a-z ]{40,}\n", made.stdout), made.stdout


def test_bad_input(cli: Cli, trained_flow: Path, tmp_path: Path) -> None:
    refused(cli("export", "pretrained:text8-arm", "model.pt"), "ends in .onnx, got model.pt")
    refused(cli("export", "pretrained:text8-arm", "no/model.onnx"), "no folder no")
    refused(cli("export", trained_flow, "model.onnx"), "argmax-ar", "no single network")
    assert not (tmp_path / "model.onnx").exists()
