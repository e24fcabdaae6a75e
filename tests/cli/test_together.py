"""Whether torchrun started a process, and whether it did so again."""

import pytest

from unordinal.cli.together import is_restarted, is_started_by_torchrun, run_together
from unordinal.cli.words import split


def test_who_started_a_process_is_read_from_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)
    assert not is_started_by_torchrun()
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert not is_restarted()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert is_started_by_torchrun()
    assert is_restarted()
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert not is_restarted()


def test_a_group_of_one_runs_the_command_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert run_together(lambda words: len(words.plain), split(["a", "b", "--json"])) == 2
