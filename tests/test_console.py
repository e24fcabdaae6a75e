"""What a person sees while work goes on: plain lines and bars on stderr, JSON on stdout."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from unordinal import console
from unordinal.console import TrainingReporter, plain_progress, print_json, progress, say


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still until `now` is set, and no terminal."""
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: made.now))
    monkeypatch.setattr(console, "stderr", Console(file=io.StringIO(), force_terminal=False))
    return made


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal is sent."""
    sent = io.StringIO()
    monkeypatch.setattr(console, "stderr", Console(file=sent, force_terminal=True, highlight=False, width=200))
    return sent


def test_lines_go_to_stderr_and_json_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    say("a line")
    print_json({"a": [1, None], "b": "ä\n"})
    captured = capsys.readouterr()
    assert captured.err == "a line\n"
    assert captured.out == '{"a": [1, null], "b": "\\u00e4\\n"}\n'


def test_the_time_left_is_in_proportion() -> None:
    assert plain_progress(0.25, 10) == "25%, 10 s, about 30 s left"
    assert plain_progress(1.0, 10) == "100%, 10 s, about 0 s left"
    assert plain_progress(None, 10) == "10 s"
    assert plain_progress(0.0, 10) == "10 s"


def test_long_work_speaks_now_and_then(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Sampling", 40) as advance:
        for _ in range(20):  # a second and one of 40 parts each
            clock.now += 1
            advance(1)
    assert capsys.readouterr().err.splitlines() == [
        "Sampling: 5%, 2 s, about 38 s left",
        "Sampling: 30%, 12 s, about 28 s left",
    ]
    with progress("Fitting", None) as advance:
        clock.now += 3
        advance(1)
    assert capsys.readouterr().err == "Fitting: 3 s\n"
    with progress("Quick", 1) as advance:
        clock.now += 1
        advance(1)
    assert capsys.readouterr().err == ""


def test_a_terminal_sees_a_bar(terminal: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Sampling", 8) as advance:
        advance(2)
    assert "Sampling" in terminal.getvalue()
    assert "25%" in terminal.getvalue()
    assert capsys.readouterr() == ("", "")


def test_training_tells_how_it_goes(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = TrainingReporter("bits per character")
    reporter.started(30, 0.2)
    metrics = {"step": 31, "loss": 2.34567, "symbols_per_second": 12345.6}
    clock.now += 5
    reporter.stepped(metrics, 0.3)  # too early to speak
    clock.now += 5
    reporter.stepped({**metrics, "step": 32}, 0.4)  # 0.2 of the budget in ten seconds
    reporter.validated({"step": 32, "seconds": 10.4, "val_bits_per_dim": 1.5, "val_standard_error": 0.25})
    reporter.close()
    assert capsys.readouterr().err.splitlines() == [
        "Continuing from step 30.",
        "Training: 40%  step 32  loss 2.346  12,346 symbols/s, about 30 s left",
        "step      32       10 s  validation 1.5000 ± 0.2500 bits per character",
    ]


def test_training_has_a_bar_on_a_terminal(terminal: io.StringIO) -> None:
    reporter = TrainingReporter("bits per pixel")
    reporter.started(0, 0.0)
    reporter.stepped({"step": 7, "loss": 1.25, "symbols_per_second": 1000.0}, 0.5)
    reporter.validated({"step": 7, "seconds": 2, "val_bits_per_dim": 0.75, "val_standard_error": 0.0})
    reporter.close()
    assert "validation 0.7500 bits per pixel" in terminal.getvalue()
    assert "50%" in terminal.getvalue()
    assert "step 7  loss 1.250  1,000 symbols/s" in terminal.getvalue()
