"""How long work tells of its advance. The library never prints; the command line passes an implementation that does."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[float], None]
"""Called with the amount of work done since the last call."""

Progress = Callable[[str, float | None], AbstractContextManager[Advance]]
"""`with progress("reading", total) as advance: advance(n)`; a total of None is not known beforehand."""


@contextmanager
def silent(_description: str, _total: float | None) -> Iterator[Advance]:
    """Progress that nobody sees: the library's default."""
    yield lambda _amount: None
