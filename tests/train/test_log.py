"""The metrics of a run: whole lines, those past a checkpoint dropped, and a picture of them."""

import json
import math
from pathlib import Path

from PIL import Image

from unordinal.train.log import MetricsFile, plot_loss, read_lines


def test_going_on_drops_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert read_lines(path) == []
    metrics = MetricsFile(path, 0)
    for step in (10, 20, 20, 30):
        metrics.write({"step": step, "loss": step / 3})
    assert [line["step"] for line in read_lines(path)] == [10, 20, 20, 30]  # flushed line by line
    metrics.close()
    with path.open("a") as file:
        file.write('{"step": 40, "lo')  # a crash in the middle of a line
    assert len(read_lines(path)) == 4
    metrics = MetricsFile(path, 20)
    metrics.write({"step": 25})
    metrics.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [{"step": 10, "loss": 10 / 3}, *[{"step": 20, "loss": 20 / 3}] * 2, {"step": 25}]


def test_losses_that_are_no_numbers_do_not_spoil_the_picture(tmp_path: Path) -> None:
    lines = [{"step": step, "loss": 9.0 if step < 5 else math.inf} for step in range(1, 9)]
    lines += [{"step": 8, "val_bits_per_dim": math.nan}, {"step": 9, "val_bits_per_dim": 2.0}]
    for name, shown in (("some", lines), ("none", [])):
        plot_loss(shown, tmp_path / "plots" / f"{name}.png")
        with Image.open(tmp_path / "plots" / f"{name}.png") as picture:
            assert picture.format == "PNG"


def test_lines_that_are_none_of_ours_are_left_out(tmp_path: Path) -> None:
    text = '{"step": 1}\n[1]\n{"loss": 2}\n' + "[" * 500 + "]" * 500 + '\n{"step": 2}\n{"st'
    (tmp_path / "metrics.jsonl").write_text(text)
    assert read_lines(tmp_path / "metrics.jsonl") == [{"step": 1}, {"step": 2}]
