"""The format of a path is recognised from its ending and content."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unordinal.data import load_data, source_of
from unordinal.data.guess import guess_format


def test_every_format_is_recognised(tmp_path: Path) -> None:
    for name, array in (
        ("row.npy", np.zeros(9, int)),
        ("codes.npy", np.zeros((9, 4), int)),
        ("maps.npy", np.zeros((9, 4, 4), int)),
    ):
        np.save(tmp_path / name, array)
    np.savez(tmp_path / "maps.npz", train=np.zeros((9, 4, 4), int), val=np.zeros((9, 4, 4), int))
    (tmp_path / "book.txt").write_text("a")
    (tmp_path / "README").write_text("a")
    (tmp_path / "book.txt.gz").write_bytes(gzip.compress(b"a"))
    (tmp_path / "genes.fasta").write_text(">a\nACGT")
    (tmp_path / "genes.fa.gz").write_bytes(gzip.compress(b">a\nACGT"))
    (tmp_path / "pngs").mkdir()
    expected = {"row.npy": "array", "codes.npy": "array", "maps.npy": "maps", "maps.npz": "maps", "book.txt": "text"}
    expected |= {
        "README": "text",
        "book.txt.gz": "text",
        "genes.fasta": "fasta",
        "genes.fa.gz": "fasta",
        "pngs": "maps",
    }
    for name, format_name in expected.items():
        assert guess_format(tmp_path / name) == format_name, name
        source = source_of(str(tmp_path / name))
        assert source.name == f"{format_name}:{tmp_path / name}"
        assert source == source_of(tmp_path / name)
        assert source.shape == ("maps" if format_name == "maps" else "sequences")
    assert source_of(f"array:{tmp_path / 'maps.npy'}").shape == "maps"  # said outright


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.csv.gz"])
def test_tables_are_recognised_by_their_endings(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("a,b")
    assert guess_format(tmp_path / name) == "table"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for name in (str(tmp_path / "nothing"), "missing.txt", "folder/"):
        with pytest.raises(ValueError, match=r"no file .*; expected a text"):
            load_data(name)
    with pytest.raises(ValueError, match="unknown data 'dosc'; did you mean docs"):
        load_data("dosc")


def test_a_folder_of_pictures(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for index in range(20):
        Image.fromarray(rng.integers(0, 3, (4, 6)).astype(np.uint8)).save(tmp_path / f"{index}.png")
    assert load_data(str(tmp_path)).spec.event_shape == (4, 6)
