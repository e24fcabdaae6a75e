"""What the demo shows of the bundled models."""

import pytest

from unordinal.cli.common import MachineArgs
from unordinal.cli.showcase import GAPS, show_bundled


def test_every_model_shows_what_it_can_do_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    show_bundled(MachineArgs(), 0)
    shown = capsys.readouterr().out
    parts = ("Text out of noise", "The government was beginning to receive letters", GAPS, "Rows of a table")
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)
    rows = shown[places[-1] :].splitlines()[2:6]
    assert all(" hot " in row and " tea " in row for row in rows)
