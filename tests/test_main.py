"""The entry point bounds how long OpenMP's threads spin, unless the user has chosen."""

import os

import pytest

from unordinal.__main__ import SPIN_COUNT, SPINNING, bound_spinning


def test_spinning_is_bounded_unless_the_user_has_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SPINNING:
        monkeypatch.delenv(name, raising=False)
    bound_spinning()
    assert os.environ["GOMP_SPINCOUNT"] == SPIN_COUNT
    for name, chosen in (("OMP_WAIT_POLICY", "passive"), ("KMP_BLOCKTIME", "0")):
        monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
        monkeypatch.setenv(name, chosen)
        bound_spinning()
        assert "GOMP_SPINCOUNT" not in os.environ
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    bound_spinning()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
