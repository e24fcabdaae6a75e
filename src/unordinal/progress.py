"""How work tells how far it is. The library never prints; the command line passes an implementation that does."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

Advance = Callable[[float], None]
"""Called with the amount of work done since the last call."""

Progress = Callable[[str, float | None], AbstractContextManager[Advance]]
"""`with progress("reading", total) as advance: advance(n)`; a total of None is not known beforehand."""


@contextmanager
def silent(_description: str, _total: float | None) -> Iterator[Advance]:
    """Progress that nobody sees: the library's default."""
    yield lambda _amount: None


@dataclass
class Watcher:
    """Told by a model what happens while it draws samples."""

    advance: Advance = field(default=lambda _amount: None)  # samples done since the last call, in parts of a sample
    state: Callable[[float, Any], None] = field(default=lambda _time, _x: None)  # x_t (N, *D) at time t of a chain
    network_calls: int = 0  # how often the network has run, where the model counts that


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[Watcher]:
    """Let models tell `watcher` of the samples that they draw inside this block."""
    token = _watcher.set(watcher)
    try:
        yield watcher
    finally:
        _watcher.reset(token)


def current_watcher() -> Watcher:
    """Whom to tell; nobody unless somebody is `watching`."""
    return _watcher.get() or Watcher()
