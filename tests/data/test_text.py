"""Texts: encodings, compressed files, what is refused, and memory."""

import bz2
import gzip
import lzma
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unordinal.data import Vocabulary, load_data
from unordinal.data.text import BLOCK_BYTES
from unordinal.data.vocabularies import TEXT8_SYMBOLS

TEXT = "hello world " * 200


def write(path: Path, text: bytes) -> Path:
    match path.suffix:
        case ".gz":
            path.write_bytes(gzip.compress(text))
        case ".xz":
            path.write_bytes(lzma.compress(text))
        case ".bz2":
            path.write_bytes(bz2.compress(text))
        case ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("inside.txt", text)
        case _:
            path.write_bytes(text)
    return path


@pytest.mark.parametrize("ending", [".txt", ".gz", ".xz", ".bz2", ".zip", ""])
def test_every_compression_gives_the_same_text(ending: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"text{ending}", TEXT.encode())
    data = load_data(f"text:{path}", alphabet="text8", split="0.8,0.1,0.1", length=20)
    assert data.spec.num_classes == 27
    symbols = np.concatenate([data.train.symbols, data.val.symbols, data.test.symbols])
    assert data.spec.vocabulary is not None
    assert data.spec.vocabulary.decode(symbols) == TEXT


def test_characters_are_inferred_and_saved(tmp_path: Path) -> None:
    text = "Grüße, 世界!\n" * 100
    path = write(tmp_path / "t.txt", text.encode())
    data = load_data(f"text:{path}", alphabet="chars", length=20)
    vocabulary = data.spec.vocabulary
    assert vocabulary is not None
    assert vocabulary.symbols == "".join(sorted(set(text)))
    assert vocabulary.decode(data.train[0]) == text[:20]
    again = type(data.spec).from_dict(data.spec.to_dict())
    assert again == data.spec


def test_blocks_that_cut_a_character_in_two_do_no_harm(tmp_path: Path) -> None:
    text = "a" * (BLOCK_BYTES - 1) + "é" * 1000
    path = write(tmp_path / "t.txt", text.encode())
    data = load_data(f"text:{path}", alphabet="chars")
    assert data.spec.vocabulary is not None
    assert data.spec.vocabulary.symbols == "aé"
    assert sum(data.spec.split_sizes) == len(text)
    tail = np.concatenate([data.val.symbols, data.test.symbols])
    assert int((tail == 1).sum()) == 1000


def test_a_models_vocabulary_is_used_for_other_text(tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt", b"cab" * 300)
    data = load_data(f"text:{path}", length=30, vocabulary=Vocabulary("chars", "abcd"))
    assert data.train[0][:3].tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match="the 2 characters of the vocabulary, got 'c' at position 0"):
        load_data(f"text:{path}", length=30, vocabulary=Vocabulary("chars", "ab"))


@pytest.mark.parametrize(
    ("name", "content", "alphabet", "message"),
    [
        ("empty.txt", b"", "text8", "is empty"),
        ("short.txt", b"abc", "text8", "3 symbols, shorter than one sequence of 256"),
        ("upper.txt", b"abc" * 200 + b"Zebra", "text8", "expected a-z and space, got 'Z' at position 600"),
        ("latin.txt", b"caf\xe9" * 200, "chars", "not UTF-8"),
        ("cut.txt", b"a" * 500 + b"\xc3", "chars", "ends inside a UTF-8 character"),
        ("broken.xz", b"not xz at all", "text8", "not a whole .xz file"),
        ("broken.gz", b"not gz at all", "text8", "not a whole .gz file"),
        ("broken.bz2", b"not bz2 at all", "text8", "not a whole .bz2 file"),
        ("broken.zip", b"not zip at all", "text8", "not a whole .zip file"),
        ("many.txt", "".join(map(chr, range(200, 700))).encode(), "chars", "more than 256 different characters"),
        ("val.txt", b"a" * 600, "text8", "the val split has 30 symbols, shorter than one sequence of 256"),
    ],
)
def test_bad_files_are_refused(name: str, content: bytes, alphabet: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_data(f"text:{path}", alphabet=alphabet).require("train", "val")
    assert str(path) in str(caught.value) or "split" in str(caught.value)


def test_missing_files_and_unknown_names_are_refused(tmp_path: Path) -> None:
    for name, message in (
        (f"text:{tmp_path}/none.txt", "no file"),
        (f"text:{tmp_path}", "is a folder"),
        ("text:", "lacks a path"),
        ("doc", "did you mean docs"),
        ("docs:x", "takes no argument"),
    ):
        with pytest.raises(ValueError, match=message):
            load_data(name)


def test_unused_symbols_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt", b"ab" * 1000)
    data = load_data(f"text:{path}", alphabet="text8", split="1000,300,300")
    assert data.notes == ("400 symbols after the test split are not used",)


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt", b"a" * 6000)
    first = load_data(f"text:{path}", alphabet="text8")
    path.write_bytes(b"b" * 6000)
    second = load_data(f"text:{path}", alphabet="text8")
    assert first.spec.fingerprint != second.spec.fingerprint
    assert second.train[0][0] == 2


def test_memory_stays_flat_for_a_large_file(tmp_path: Path) -> None:
    """200 MB of text in a process whose memory may grow by no more than 100 MB."""
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(b"the quick brown fox " * 50_000)
    code = (
        "import resource, sys, torch, numpy, unordinal.data\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "data = unordinal.data.load_data('text:' + sys.argv[1], alphabet='text8')\n"
        "for _ in range(50): data.train.crops(32, torch.Generator())\n"
        "data.test.examples(numpy.arange(100))\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, sum(data.spec.split_sizes))\n"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    grown, symbols = map(int, result.stdout.split())
    assert symbols == 200_000_000
    assert grown < 100


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1, max_size=60), st.integers(0, 3))
def test_the_alphabet_is_the_first_that_fits(text: str, newlines: int) -> None:
    """What is read back equals what was written but for newlines at the end, and their dropping is said."""
    body = (text * 20).replace("\r", "").rstrip("\n")
    if not body or len(set(body)) < 2:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.txt"
        path.write_bytes((body + "\n" * newlines).encode())
        data = load_data(str(path), length=1, split="1,0,0")
        vocabulary = data.spec.vocabulary
        assert vocabulary is not None
        read = vocabulary.decode(np.asarray(data.train.symbols))
        expected = "text8" if set(body) <= set(TEXT8_SYMBOLS) else "chars" if len(set(body)) <= 256 else "bytes"
        assert vocabulary.kind == expected
        kept = newlines if "\n" in body or expected == "bytes" else 0
        assert read == body + "\n" * kept
        assert any("dropped" in note for note in data.notes) == (newlines > kept)
        assert any(note.startswith("read as text, alphabet") for note in data.notes)


def test_newlines_at_the_end_are_dropped_for_a_trained_alphabet_too(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("abc abc " * 40 + "\n\n")
    data = load_data(str(tmp_path / "x.txt"), length=8, vocabulary=Vocabulary.text8())
    assert sum(data.spec.split_sizes) == 320
    assert "2 newlines at the end dropped" in data.notes
    (tmp_path / "y.txt").write_text("abc\nabc " * 40)
    with pytest.raises(ValueError, match=r"got '\\n' at position 3"):
        load_data(str(tmp_path / "y.txt"), length=8, vocabulary=Vocabulary.text8())
