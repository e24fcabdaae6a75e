"""Report the progress of a run; write metrics.jsonl and plot it."""

import json
import math
import warnings
from pathlib import Path
from typing import Any, Protocol

from unordinal.data.storage import replacing
from unordinal.data.unpacking import parse_json
from unordinal.model import CategoricalModel


class Reporter(Protocol):
    """Receives the progress of a run; the command line draws a bar from it."""

    def built(self, model: CategoricalModel) -> None: ...

    def started(self, step: int, fraction: float) -> None: ...

    def stepped(self, metrics: dict[str, Any], fraction: float) -> None: ...

    def validated(self, metrics: dict[str, Any]) -> None: ...

    def warned(self, text: str) -> None: ...

    def close(self) -> None: ...


class SilentReporter:
    """Reports nothing but warnings: the library's default."""

    def built(self, model: CategoricalModel) -> None: ...

    def started(self, step: int, fraction: float) -> None: ...

    def stepped(self, metrics: dict[str, Any], fraction: float) -> None: ...

    def validated(self, metrics: dict[str, Any]) -> None: ...

    def warned(self, text: str) -> None:
        warnings.warn(text, stacklevel=2)  # a warning must not go unseen

    def close(self) -> None: ...


class MetricsFile:
    """Writes one JSON object per line. A resumed run drops the lines after the step that it continues from."""

    def __init__(self, path: Path, step: int):
        kept = [line for line in read_lines(path) if line["step"] <= step]
        with replacing(path) as file:
            file.write("".join(json.dumps(line) + "\n" for line in kept).encode())
        self._file = path.open("a")

    def write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read metrics; skip lines that are not valid JSON, such as a last line that a crash cut short."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(errors="replace").splitlines():
        try:
            line = parse_json(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("step"), int):
            lines.append(line)
    return lines


def plot_loss(lines: list[dict[str, Any]], path: Path) -> None:
    """Plot training loss and validation bound over steps, as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    trained = [line for line in lines if math.isfinite(line.get("loss", math.nan))]
    validated = [line for line in lines if math.isfinite(line.get("val_bits_per_dim", math.nan))]
    axes.plot([p["step"] for p in trained], [p["loss"] for p in trained], lw=0.8, alpha=0.6, label="training loss")
    axes.plot(
        [p["step"] for p in validated], [p["val_bits_per_dim"] for p in validated], "o-", label="validation bound (EMA)"
    )
    values = [p["loss"] for p in trained[len(trained) // 20 :]] + [p["val_bits_per_dim"] for p in validated]
    if values:
        low, high = min(values), sorted(values)[int(0.98 * (len(values) - 1))]
        axes.set_ylim(low - 0.05 * (high - low) - 0.01, high + 0.05 * (high - low) + 0.01)
    axes.set(xlabel="step", ylabel="bits per dimension")
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
