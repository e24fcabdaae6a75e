"""`unordinal decompress`."""

from pathlib import Path

from conftest import Cli, refused


def test_damage_leaves_nothing_behind(cli: Cli, arms: dict[str, Path], tmp_path: Path) -> None:
    path, run = tmp_path / "letter.txt", arms["arm"]
    path.write_text("the quick brown fox jumps over the lazy dog")
    assert cli("compress", path, "--run", run, "--out", tmp_path / "a.un").code == 0
    whole = (tmp_path / "a.un").read_bytes()
    (tmp_path / "cut.un").write_bytes(whole[:-4])
    (tmp_path / "flipped.un").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    before = sorted(tmp_path.iterdir())
    for name in ("cut.un", "flipped.un"):
        refused(
            cli("decompress", tmp_path / name, "--run", run, "--out", tmp_path / "new.txt"), "the archive is damaged"
        )
    refused(cli("decompress", tmp_path / "letter.txt", "--run", run), "is not an archive of `unordinal compress`")
    refused(cli("decompress", tmp_path / "a.un", "--out", tmp_path / "b"), "give its folder as --run")
    refused(cli("decompress", tmp_path / "none.un"), "cannot read")
    assert sorted(tmp_path.iterdir()) == before
