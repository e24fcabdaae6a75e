"""`unordinal compress` and `unordinal decompress`."""

from pathlib import Path

from conftest import Cli, refused


def test_a_file_comes_back(cli: Cli, arms: dict[str, Path], tmp_path: Path) -> None:
    path, run = tmp_path / "letter.txt", arms["arm"]
    path.write_bytes("the quick brown fox, très bien \xff\r\n".encode("latin-1"))
    result = cli("compress", path, "--run", run, "--json")
    assert result.code == 0, result.err
    assert result.json["size"] == path.stat().st_size
    assert "It was restored and compared" in result.err
    archive = tmp_path / "letter.txt.un"
    assert archive.stat().st_size == result.json["archive_bytes"]
    again = tmp_path / "again.txt"
    assert cli("decompress", archive, "--run", run, "--out", again).code == 0
    assert again.read_bytes() == path.read_bytes()
    refused(cli("compress", path, "--run", run), "exists already; choose another name with --out")
    refused(cli("decompress", archive, "--run", run), "exists already; choose another name with --out")
