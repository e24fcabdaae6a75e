"""Signals while a run is open: the first is noted, a second Ctrl-C interrupts, and handlers come back."""

import signal
import threading

import pytest

from unordinal.train.interrupt import Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_only_noted_and_handlers_come_back(number: signal.Signals) -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts() as interrupts:
        assert interrupts.received is None
        signal.raise_signal(number)
        assert interrupts.received is number
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_second_ctrl_c_interrupts_at_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # whoever ends processes may ask twice
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert interrupts.received is signal.SIGTERM
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_the_handlers_alone() -> None:
    before, inside = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with Interrupts():
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == [before]
