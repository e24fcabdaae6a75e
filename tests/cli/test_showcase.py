"""What the demo shows of the bundled models."""

import re

import pytest

from unordinal.cli.common import MachineArgs
from unordinal.cli.showcase import GAPS, MOLECULES, RINGS, show_bundled


def test_every_model_shows_what_it_can_do_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    show_bundled(MachineArgs(), 0)
    shown = capsys.readouterr().out
    corrected = "The government was beginning to receive letters"
    parts = ("Text out of noise", corrected, GAPS, f"Molecules with {RINGS} rings", "Rows of a table")
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)
    rows = shown[places[-1] :].splitlines()[2:6]
    assert all(" hot " in row and " tea " in row for row in rows)
    molecules = [line.strip() for line in shown[places[3] : places[4]].splitlines()[1 : MOLECULES + 1]]
    assert all(re.fullmatch(r"[A-Za-z0-9()\[\]=#+\-@/\\]+", text) for text in molecules)
    digits = [sum(letter in "123456789" for letter in text) for text in molecules]
    assert (
        sum(count >= 2 * RINGS for count in digits) >= MOLECULES - 1
    )  # each ring has a digit where it opens and closes
