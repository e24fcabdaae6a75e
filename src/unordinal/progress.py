"""Progress reports of long computations.

The library never prints. Functions that take long have a `progress` argument, which the command line sets to one that
draws progress bars. Models report what happens while they draw samples to the current `Watcher`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

Advance = Callable[[float], None]
"""Called with the amount of work done since the last call."""

Progress = Callable[[str, float | None], AbstractContextManager[Advance]]
"""Called with a description and the total amount of work, None if it is unknown; used as a context manager:
`with progress("reading", total) as advance: advance(amount)`."""


def ignored(_amount: float) -> None:
    """Do nothing. This is the default of the `advance` arguments of the library."""


@contextmanager
def silent(_description: str, _total: float | None) -> Iterator[Advance]:
    """Report nothing. This is the default of the `progress` arguments of the library."""
    yield ignored


@dataclass
class Watcher:
    """Callbacks and counters that a model updates while it draws samples inside a `watching` block.

    Args:
        advance: called with the number of samples drawn since the last call, which may be a fraction of a sample.
        state: called with the time t and the classes x_t, shape (N, *D), after each step of a diffusion model's chain.
        network_calls: how often the network has run, counted for every sample; 0 if the model does not count its calls.
        effective_particles: the smallest effective number of particles, if samples were drawn by resampling them.

    >>> from unordinal import DataSpec, configured
    >>> model = configured("multinomial").model.build(DataSpec("toy", num_classes=3, event_shape=(4,)))
    >>> times = []
    >>> with watching(Watcher(state=lambda t, x: times.append(t))) as watcher:
    ...     x = model.sample(2, steps=5)
    >>> watcher.network_calls, times
    (10, [1000, 800, 600, 400, 200, 0])
    """

    advance: Advance = field(default=ignored)
    state: Callable[[float, Any], None] = field(default=lambda _time, _x: None)
    network_calls: int = 0
    effective_particles: float | None = None


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[Watcher]:
    """Make `watcher` the one that models report to while they draw samples inside this `with` block.

    Blocks can be nested: the innermost watcher receives the reports. Other threads are not watched.

    Args:
        watcher: the callbacks and counters to update.

    Returns:
        A context manager that yields `watcher`.

    >>> with watching(Watcher()) as watcher:
    ...     current_watcher() is watcher
    True
    """
    token = _watcher.set(watcher)
    try:
        yield watcher
    finally:
        _watcher.reset(token)


def current_watcher() -> Watcher:
    """Return the watcher of the innermost `watching` block, or a new one outside of such a block."""
    return _watcher.get() or Watcher()
