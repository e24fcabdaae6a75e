"""Ctrl-C and SIGTERM as a request to save and stop, instead of an exception in the middle of a step."""

import signal
import threading
from types import FrameType
from typing import Any, Self


class Interrupts:
    """Notes the first SIGINT or SIGTERM in `received` while it is open; a second Ctrl-C interrupts at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # handlers can only be set there
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = signal.Signals(number)
