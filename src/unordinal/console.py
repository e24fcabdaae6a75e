"""What a person sees while work goes on: bars on a terminal, plain lines elsewhere. Everything here goes to stderr."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from unordinal.progress import Advance

if TYPE_CHECKING:
    from unordinal.model import CategoricalModel

SECONDS_BETWEEN_LINES = 10.0
QUIET_SECONDS = 2.0  # work shorter than this stays unmentioned where there is no terminal

stderr = Console(stderr=True, highlight=False)


def say(message: str) -> None:
    """A line for the person."""
    print(message, file=sys.stderr, flush=True)


def print_json(values: dict[str, Any]) -> None:
    """One object on one line, the last of stdout."""
    print(json.dumps(values), flush=True)


def bar(*columns: Any) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        *columns,
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("to go"),
        console=stderr,
        transient=True,
    )


@contextmanager
def progress(description: str, total: float | None) -> Iterator[Advance]:
    """A bar with an estimate on a terminal, a line every ten seconds elsewhere."""
    if stderr.is_terminal:
        with bar() as shown:
            task = shown.add_task(description, total=total)
            yield lambda amount: shown.update(task, advance=amount)
        return
    began = spoke = time.monotonic()
    done = 0.0

    def advance(amount: float) -> None:
        nonlocal done, spoke
        done += amount
        now = time.monotonic()
        if now - spoke >= (SECONDS_BETWEEN_LINES if spoke > began else QUIET_SECONDS):
            spoke = now
            say(f"{description}: {plain_progress(done / total if total else None, now - began)}")

    yield advance


def plain_progress(fraction: float | None, seconds: float) -> str:
    if not fraction:
        return f"{seconds:.0f} s"
    return f"{fraction:.0%}, {seconds:.0f} s, about {duration(seconds * (1 - fraction) / fraction)} left"


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(95), duration(600), duration(7000)
    ('95 s', '10 min', '1 h 57 min')
    """
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class TrainingReporter:
    """The bar of a training run: step, loss, speed, time left."""

    def __init__(self, unit: str, told: Callable[["CategoricalModel"], None] | None = None):
        self.unit, self.built = unit, told or (lambda _model: None)
        self._bar = bar(TextColumn("{task.fields[status]}")) if stderr.is_terminal else None
        self._task: Any = None
        self._began = self._spoke = 0.0
        self._first = 0.0

    def started(self, step: int, fraction: float) -> None:
        self._began = self._spoke = time.monotonic()
        self._first = fraction
        if step:
            say(f"Going on from step {step}.")
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("Training", total=1.0, status="")
            self._bar.update(self._task, completed=fraction)

    def stepped(self, metrics: dict[str, Any], fraction: float) -> None:
        now = time.monotonic()
        if self._bar is None and now - self._spoke < SECONDS_BETWEEN_LINES:
            return
        self._spoke = now
        status = f"step {metrics['step']}  loss {metrics['loss']:.3f}"
        status += f"  {metrics['symbols_per_second']:,.0f} symbols/s"
        if self._bar is not None:
            self._bar.update(self._task, completed=fraction, status=status)
        else:
            gained = fraction - self._first
            left = f", about {duration((now - self._began) * (1 - fraction) / gained)} left" if gained > 0 else ""
            say(f"Training: {fraction:.0%}  {status}{left}")

    def validated(self, metrics: dict[str, Any]) -> None:
        line = f"step {metrics['step']:>7}  {metrics['seconds']:>7.0f} s"
        error = f" ± {metrics['val_standard_error']:.4f}" if metrics["val_standard_error"] else ""
        line += f"  validation {metrics['val_bits_per_dim']:.4f}{error} {self.unit}"
        if self._bar is not None:
            self._bar.console.print(line)
        else:
            say(line)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
