"""What a report shows of a trained model."""

from pathlib import Path

import numpy as np
import pytest

from unordinal.data import source_of
from unordinal.experiments import DATA
from unordinal.reproduce.jobs import Job
from unordinal.reproduce.show import CHAIN_ROWS, MAPS, TEXTS, in_digits, of_digits, shown_of
from unordinal.run import Run
from unordinal.runs.folder import RunFolder
from unordinal.train.start import build_model


def untrained(model: str, task: str, **settings: object) -> Run:
    """Return a small run of a model that was not trained."""
    known = next(name for name in DATA if name == task)
    job = Job("key", "scores", model, known, DATA[known].stand_in, "tiny", 1.0, settings=settings)
    config = job.config()
    data = config.data.load()
    return Run(build_model(config, data.spec, None).eval(), data.spec, config, RunFolder(Path("unused")), data)


def test_maps_come_back_from_their_digits() -> None:
    x = np.arange(24).reshape(4, 6)
    assert np.array_equal(of_digits(in_digits(x)), x)


def test_texts_have_samples_a_chain_and_a_correction() -> None:
    run = untrained("text8/multinomial", "text8", **{"length": 32, "model.num_steps": 20, "net.width": 16})
    shown = shown_of(run, source_of("docs").adapted(alphabet="text8", length=32).load())
    assert len(shown["samples"]) == TEXTS
    assert all(len(text) == 32 for text in shown["samples"])
    assert 2 <= len(shown["chain"]) <= CHAIN_ROWS + 1
    spelling = shown["spelling"]
    assert len(spelling["truth"]) == len(spelling["typed"]) == len(spelling["corrected"])
    assert 0 < sum(a != b for a, b in zip(spelling["truth"], spelling["typed"], strict=True)) < 12


def test_maps_are_drawn() -> None:
    run = untrained("cityscapes/multinomial", "cityscapes", **{"net.width": 8, "model.num_steps": 4})
    shown = shown_of(run, source_of("streets").load())
    assert len(shown["maps"]) == MAPS
    assert of_digits(shown["maps"][0]).shape == (32, 64)


def test_probabilities_of_the_toy_are_parts_of_the_largest() -> None:
    run = untrained("toy/discrete-flow", "toy", **{"net.width": 8})
    data = source_of("eight-gaussians").load()
    shown = shown_of(run, data)["probabilities"]
    assert set(shown) == {"data", "model", "samples"}
    assert all(np.array(values).max() == 1000 for values in shown.values())
    assert data.pmf is not None
    expected = data.pmf / data.pmf.max() * 1000
    assert np.array(shown["data"]) == pytest.approx(expected, abs=0.5)
