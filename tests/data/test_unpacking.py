"""Limits on what is unpacked, on JSON and on links; tests/test_security.py has hostile files of every kind."""

from pathlib import Path

import pytest

from unordinal.data.unpacking import (
    FREE,
    RATIO,
    UNPACKED,
    UnpackingError,
    allow_unpacking,
    check_links,
    check_member,
    check_unpacked,
    parse_json,
    read_json,
)


def test_the_limit_grows_with_the_file_up_to_a_point_and_by_hand() -> None:
    check_unpacked(FREE, 1, "x")
    check_unpacked(RATIO * MILLION, MILLION, "x")
    check_unpacked(UNPACKED, UNPACKED, "x")
    for num, packed in ((FREE + 1, 1), (RATIO * MILLION + 1, MILLION), (UNPACKED + 1, UNPACKED)):
        with pytest.raises(UnpackingError, match=f"x has {packed:,} bytes and unpacks to {num:,} or more"):
            check_unpacked(num, packed, "x")
    try:
        allow_unpacking(10 * UNPACKED)
        check_unpacked(10 * UNPACKED, 1, "x")
        allow_unpacking(5)
        with pytest.raises(UnpackingError, match="beyond the limit of 5"):
            check_unpacked(6, 6, "x")
        with pytest.raises(ValueError, match="at least 1"):
            allow_unpacking(0)
    finally:
        allow_unpacking(None)


MILLION = 1_000_000


def test_names_links_and_json(tmp_path: Path) -> None:
    check_member("a/b.txt", "x")
    with pytest.raises(UnpackingError):
        check_member("a/../../b", "x")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").touch()
    (tmp_path / "in" / "b").symlink_to("a")
    (tmp_path / "in" / "c").symlink_to(tmp_path)
    check_links(tmp_path / "in", [tmp_path / "in" / name for name in "ab"])
    with pytest.raises(UnpackingError, match="c is a link that leads out of"):
        check_links(tmp_path / "in", [tmp_path / "in" / "c"])
    assert parse_json("[" * 100 + "]" * 100)
    for levels in (101, 100_000):
        with pytest.raises(ValueError, match="nested more than 100 levels deep"):
            parse_json("[" * levels + "]" * levels)
    (tmp_path / "x.json").write_text('{"a": 1}')
    assert read_json(tmp_path / "x.json") == {"a": 1}
