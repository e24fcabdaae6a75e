"""Models that are counted leave the files of a training."""

import json
from pathlib import Path

import numpy as np

from unordinal.api import fit


def test_a_counted_run_has_weights_metrics_and_a_configuration(tmp_path: Path) -> None:
    run = fit("independent", np.random.default_rng(0).integers(0, 3, (200, 4)), out=tmp_path / "run", progress=False)
    assert run.folder.published_step == 1
    (line,) = (json.loads(text) for text in run.folder.metrics.read_text().splitlines())
    assert line["val_bits_per_dim"] == run.folder.published_bits
    assert abs(run.score().bits_per_dim - np.log2(3)) < 0.1
