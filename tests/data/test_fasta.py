"""FASTA files: what is read is what was written, and what is no FASTA is refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unordinal.data import load_data
from unordinal.data.fasta import read_records
from unordinal.data.text import TextFile
from unordinal.progress import silent


def written(path: Path, records: list[tuple[str, str]], width: int = 7) -> Path:
    """A FASTA file with lines of `width` letters."""
    lines = []
    for name, sequence in records:
        lines += [f">{name} a description", *(sequence[i : i + width] for i in range(0, len(sequence), width))]
    path.write_text("\n".join(lines) + "\n")
    return path


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("ACGTN", min_size=1, max_size=40), min_size=1, max_size=6))
def test_what_is_read_is_what_was_written(sequences: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        records = [(f"seq{i}", sequence) for i, sequence in enumerate(sequences)]
        path = written(Path(folder) / "x.fasta", records)
        assert read_records(TextFile.of(path), silent) == records


def test_sequences_of_one_length_are_examples(tmp_path: Path) -> None:
    records = [(f"s{i}", "ACGT"[i % 4] * 3 + "acg") for i in range(40)]
    data = load_data(str(written(tmp_path / "x.fa", records)), split="30,5,5")
    assert data.spec.event_shape == (6,)
    assert data.spec.vocabulary is not None
    assert data.spec.vocabulary.symbols == "ACGT"
    assert [data.spec.show(data.train[i]) for i in range(4)] == ["AAAACG", "CCCACG", "GGGACG", "TTTACG"]
    assert "120 lower-case letters read as capitals" in data.notes
    assert data.spec.unit == "bits per character"


def test_sequences_of_several_lengths_are_joined(tmp_path: Path) -> None:
    path = written(tmp_path / "x.fasta", [("a", "ACGT" * 50), ("b", "TTTTT" * 60)])
    data = load_data(str(path), length=20, records="joined")
    assert data.spec.event_shape == (20,)
    assert data.spec.show(data.train[0]) == "ACGT" * 5
    assert any("joined end to end" in note for note in data.notes)
    longer = written(tmp_path / "y.fasta", [("a", "ACGT" * 2000), ("b", "TTTTT" * 60)])
    assert load_data(str(longer)).spec.event_shape == (256,)


def test_sequences_of_several_lengths_are_examples_that_end(tmp_path: Path) -> None:
    records = [(f"r{k}", "ACGT"[k % 4] * (1 + k % 5)) for k in range(40)]
    (tmp_path / "kinds.txt").write_text("".join(f"kind{k % 4}\n" for k in range(40)))
    path = written(tmp_path / "x.fasta", records)
    data = load_data(str(path), label_file=str(tmp_path / "kinds.txt"))
    assert data.spec.ends
    assert data.spec.event_shape == (5,)
    shown = [
        data.spec.show(x) for part in (data.train, data.val, data.test) for x in part.examples(np.arange(len(part)))
    ]
    assert shown == [sequence for _, sequence in records]
    assert data.train.names[:2] == ["r0", "r1"]
    assert data.spec.labels[0].values == ("kind0", "kind1", "kind2", "kind3")
    with pytest.raises(ValueError, match="have no labels; leave out `labels`"):
        load_data(str(path), label_file=str(tmp_path / "kinds.txt"), records="joined")


@pytest.mark.parametrize(
    ("text", "letters", "message"),
    [
        (">a\nACGN\n", "ACGT", "the record 'a' has the letter 'N' at position 3; expected ACGT"),
        ("ACGT\n", None, "line 1 comes before any line with >"),
        ("", None, "contains no records"),
        (">a\nACGT\n>b\nAC!T\n", None, "the record 'b' has the letter '!' at position 2; expected ACGT"),
        (">a\n>b\nAC\n", None, "the record 'a' has no sequence"),
        (">a\nAAAA\n", None, "at least two different characters"),
        (">a\nACGT\n", "AACGT", "at least two different characters"),
    ],
)
def test_what_is_no_fasta_is_refused(text: str, letters: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.fasta"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_data(f"fasta:{path}", letters=letters)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.fasta").write_bytes(b">a\n\xff\xfe")
    with pytest.raises(ValueError, match="it is not text"):
        load_data(str(tmp_path / "x.fasta"))
