"""Messages and progress for the user of the command line.

Progress is shown as a bar on a terminal and as plain lines elsewhere. Everything goes to stderr, except JSON results,
which go to stdout.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from unordinal.progress import Advance, ignored

if TYPE_CHECKING:
    from unordinal.model import CategoricalModel

SECONDS_BETWEEN_LINES = 10.0
QUIET_SECONDS = 2.0  # without a terminal, work that is shorter than this is not reported

stderr = Console(stderr=True, highlight=False)


is_muted = False  # of several processes that train together, one talks


def mute() -> None:
    """Print nothing from now on."""
    global is_muted  # noqa: PLW0603
    is_muted = True


def say(message: str) -> None:
    """Print a message to stderr."""
    if is_muted:
        return
    print(message, file=sys.stderr, flush=True)


def print_json(values: dict[str, Any]) -> None:
    """Print an object as one line of JSON to stdout; commands print it last."""
    if is_muted:
        return
    print(json.dumps(values), flush=True)


def bar(*columns: Any) -> Progress:
    """Return a progress bar with elapsed and remaining time, and with extra columns of rich's progress display."""
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
    """Show progress as a bar with the remaining time on a terminal, and as a line every ten seconds elsewhere."""
    if is_muted:
        yield ignored
        return
    if stderr.is_terminal:
        with bar() as shown:
            task = shown.add_task(description, total=total)
            yield lambda amount: shown.update(task, advance=amount)
        return
    began = last_report = time.monotonic()
    done = 0.0

    def advance(amount: float) -> None:
        nonlocal done, last_report
        done += amount
        now = time.monotonic()
        if now - last_report >= (SECONDS_BETWEEN_LINES if last_report > began else QUIET_SECONDS):
            last_report = now
            say(f"{description}: {plain_progress(done / total if total else None, now - began)}")

    yield advance


def plain_progress(fraction: float | None, seconds: float) -> str:
    """Return the progress of some work as text, from the fraction that is done and the seconds that it took."""
    if not fraction:
        return f"{seconds:.0f} s"
    return f"{fraction:.0%}, {seconds:.0f} s, about {duration(seconds * (1 - fraction) / fraction)} left"


def duration(seconds: float) -> str:
    """Return a duration as text, in seconds, minutes or hours.

    >>> duration(95), duration(600), duration(7000)
    ('95 s', '10 min', '1 h 57 min')
    """
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class TrainingReporter:
    """The progress of a training run: step, loss, speed, remaining time and validation scores.

    Args:
        unit: the unit of validation scores, such as "bits per character".
        built: called with the model once it is built.
    """

    def __init__(self, unit: str, built: Callable[["CategoricalModel"], None] | None = None):
        self.unit, self.built = unit, built or (lambda _model: None)
        self._bar = bar(TextColumn("{task.fields[status]}")) if stderr.is_terminal else None
        self._task: Any = None
        self._start_time = self._last_report = 0.0
        self._first_fraction = 0.0

    def started(self, step: int, fraction: float) -> None:
        """Report that training starts at a step, with a fraction of the budget already spent."""
        self._start_time = self._last_report = time.monotonic()
        self._first_fraction = fraction
        if step:
            say(f"Continuing from step {step}.")
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("Training", total=1.0, status="")
            self._bar.update(self._task, completed=fraction)

    def stepped(self, metrics: dict[str, Any], fraction: float) -> None:
        """Report an optimiser step and the fraction of the budget that is spent."""
        now = time.monotonic()
        if self._bar is None and now - self._last_report < SECONDS_BETWEEN_LINES:
            return
        self._last_report = now
        status = f"step {metrics['step']}  loss {metrics['loss']:.3f}"
        status += f"  {metrics['symbols_per_second']:,.0f} symbols/s"
        if self._bar is not None:
            self._bar.update(self._task, completed=fraction, status=status)
        else:
            gained = fraction - self._first_fraction
            left = f", about {duration((now - self._start_time) * (1 - fraction) / gained)} left" if gained > 0 else ""
            say(f"Training: {fraction:.0%}  {status}{left}")

    def validated(self, metrics: dict[str, Any]) -> None:
        """Report the score of a validation."""
        line = f"step {metrics['step']:>7}  {metrics['seconds']:>7.0f} s"
        error = f" ± {metrics['val_standard_error']:.4f}" if metrics["val_standard_error"] else ""
        line += f"  validation {metrics['val_bits_per_dim']:.4f}{error} {self.unit}"
        if self._bar is not None:
            self._bar.console.print(line)
        else:
            say(line)

    def warned(self, text: str) -> None:
        """Report something unexpected that does not stop the run."""
        say(f"Warning: {text}.")

    def close(self) -> None:
        """Remove the progress bar."""
        if self._bar is not None:
            self._bar.stop()
