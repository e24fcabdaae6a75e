"""Watchers hear of what happens inside their block, and of nothing else."""

import threading

import pytest

from unordinal.progress import Watcher, current_watcher, silent, watching


def test_silence_takes_any_amount() -> None:
    with silent("reading", None) as advance:
        advance(3.5)
    with silent("reading", 10) as advance:
        advance(10)


def test_only_what_happens_inside_the_block_is_told() -> None:
    told: list[float] = []
    states: list[tuple[float, object]] = []
    current_watcher().advance(1)
    with watching(Watcher(told.append, lambda time, x: states.append((time, x)))) as watcher:
        assert current_watcher() is watcher
        current_watcher().advance(2)
        current_watcher().state(0.5, "x")
        current_watcher().network_calls += 1
    current_watcher().advance(4)
    current_watcher().network_calls += 1
    assert (told, states, watcher.network_calls) == ([2], [(0.5, "x")], 1)


def test_nobody_hears_of_anothers_work() -> None:
    """Without a watcher each call has a fresh one: nothing adds up over the life of the process."""
    current_watcher().network_calls += 5
    assert current_watcher().network_calls == 0


def test_blocks_nest_and_end_with_an_error() -> None:
    outer, inner = Watcher(), Watcher()
    with watching(outer):
        with watching(inner):
            assert current_watcher() is inner
        assert current_watcher() is outer
        with pytest.raises(KeyError), watching(inner):
            raise KeyError
        assert current_watcher() is outer
    assert current_watcher() is not outer


def test_another_thread_is_not_watched() -> None:
    seen: list[Watcher] = []
    with watching(Watcher()) as watcher:
        thread = threading.Thread(target=lambda: seen.append(current_watcher()))
        thread.start()
        thread.join()
        assert seen[0] is not watcher
