"""Where a text comes from."""

import io
import sys
from pathlib import Path

import pytest

from unordinal.cli import texts
from unordinal.cli.texts import given_text


def test_a_text_is_an_argument_a_file_or_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("né\r\n".encode())
    assert given_text("x", None) == "x"
    assert given_text(None, path) == "né\r\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("ß\n".encode())))
    assert given_text(None, None) == "ß\n"


def test_what_is_no_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"ab\xff")
    with pytest.raises(ValueError, match=r"a\.txt is not UTF-8 text: byte 0xff at 2"):
        given_text(None, path)
    with pytest.raises(ValueError, match=r"cannot read .*: No such file"):
        given_text(None, tmp_path / "none.txt")
    with pytest.raises(ValueError, match="not both"):
        given_text("x", path)
    monkeypatch.setattr(texts, "MOST_BYTES", 2)
    with pytest.raises(ValueError, match="cut it into parts"):
        given_text(None, path)
