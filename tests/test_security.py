"""No file that is read runs code, fills the memory or leads out of its folder."""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SMALL, Cli, refused

from unordinal.cli import run as run_command
from unordinal.data import unpacking
from unordinal.data.download import check_address

MB = 1 << 20
ZEROS = bytes(4 * MB)
SECONDS = 2.0


class Malicious:
    """Unpickling it makes a folder."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.mark),)


@pytest.fixture(scope="module")
def run(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints."""
    out = tmp_path_factory.mktemp("security") / "run"
    words = ["train", "text8/multinomial", *SMALL, "--data", f"text:{book}", "--steps", "4", "--out", str(out)]
    assert run_command(words) == 0
    return out


def results_of(cases: list[list[str]], tmp_path: Path) -> list[dict[str, Any]]:
    """What the commands answer in a process of limited memory."""
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    command = [sys.executable, str(Path(__file__).with_name("hostile.py")), str(tmp_path / "cases.json")]
    env = {**os.environ, "UNORDINAL_DATA": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def training(data: Path) -> list[str]:
    return ["train", "arm", "--data", str(data), "--steps", "1", "--length", "4", "--out", str(data.parent / "never")]


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def zipped(name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def npy(header: str) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def png(width: int, height: int) -> bytes:
    """A PNG that says how large it is and is mostly missing."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return start + chunk(b"IDAT", zlib.compress(bytes(MB))) + chunk(b"IEND", b"")


def repeated(kind: str, times: int) -> bytes:
    """A compressed file that unpacks to `times` blocks of zeros."""
    if kind == "gz":
        packer: Any = zlib.compressobj(9, zlib.DEFLATED, 31)
    else:
        packer = lzma.LZMACompressor(preset=0) if kind == "xz" else bz2.BZ2Compressor()
    return b"".join([*(packer.compress(ZEROS) for _ in range(times)), packer.flush()])


def test_bombs_and_absurd_headers_are_refused_in_little_time_and_memory(run: Path, tmp_path: Path) -> None:
    cases: list[tuple[list[str], str]] = []
    for kind in ("gz", "xz", "bz2"):
        bomb = written(tmp_path / kind / f"book.txt.{kind}", repeated(kind, 15))
        cases.append((training(bomb), "beyond the limit of 16,777,216"))
    bomb = written(tmp_path / "zip" / "book.zip", zipped("book.txt", bytes(60 * MB)))
    cases.append((training(bomb), "beyond the limit"))
    fasta = written(tmp_path / "fasta" / "x.fasta.gz", gzip.compress(b">a\n" + b"A" * (40 * MB)))
    cases.append((training(fasta), "beyond the limit"))
    empty = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 4), }"
    arrays = written(tmp_path / "npz" / "x.npz", zipped("x.npy", npy(empty % (15 * MB)) + bytes(60 * MB)))
    cases.append((training(arrays), "beyond the limit"))
    lying = written(tmp_path / "npz2" / "x.npz", zipped("x.npy", npy(empty % 10**15)))
    cases.append((training(lying), "is not an array"))
    large = written(tmp_path / "npy" / "x.npy", npy(empty % 10**15))
    cases.append((training(large), "is not an array"))
    written(tmp_path / "maps" / "a.png", png(9_000, 9_000))
    cases.append((["data", str(tmp_path / "maps")], "beyond the limit"))
    for name, content in {
        "header": struct.pack("<Q", 90 * MB) + b"{" + b" " * (95 * MB),
        "longer": struct.pack("<Q", 1 << 62) + b"{}",
        "wrong": struct.pack("<Q", 2) + b"[]",
        "shapes": struct.pack("<Q", 64) + b'{"a":{"dtype":"F32","shape":[9999999999],"data_offsets":[0,4]}}'.ljust(64),
    }.items():
        shutil.copytree(run, tmp_path / name / "run")
        written(tmp_path / name / "run" / "model.safetensors", content)
        cases.append((["sample", str(tmp_path / name / "run")], "damaged"))
    for name, content in {
        "deep": b"[" * 900_000 + b"]" * 900_000,
        "nested": b'{"unordinal": 2, "run": ' + b'{"a": ' * 500 + b"1" + b"}" * 502,
        "long": b'"' + b"x" * (70 * MB) + b'"',
    }.items():
        shutil.copytree(run, tmp_path / name / "run")
        written(tmp_path / name / "run" / "config.json", content)
        cases.append((["sample", str(tmp_path / name / "run")], "config.json"))
    found = results_of([words for words, _ in cases], tmp_path)
    assert len(found) == len(cases)
    for (words, part), result in zip(cases, found, strict=True):
        lines = result["said"].strip().splitlines()
        assert result["code"] == 2, (words, result)
        assert part in lines[-1], (words, result)
        assert "Traceback" not in result["said"]
        assert result["seconds"] < SECONDS, (words, result)
    assert not list(tmp_path.glob("*/never"))


def test_a_larger_limit_is_given_by_hand(tmp_path: Path, cli: Cli) -> None:
    bomb = written(tmp_path / "book.txt.gz", gzip.compress(b"ab" * (10 * MB)))
    words = ["data", bomb]
    refused(cli(*words), "bytes and", "unpacks to 20,", "raise the limit with --max-bytes")
    try:
        assert cli(*words, "--max-bytes", 30 * MB).code == 0
        refused(cli(*words, "--max-bytes", "many"), "--max-bytes takes a number of bytes, got 'many'")
        refused(cli(*words, "--max-bytes=0"), "must be at least 1")
    finally:
        unpacking.allow_unpacking(None)


PICKLED = [
    *("book.txt", "book.txt.gz", "book.txt.xz", "book.txt.bz2", "book.zip", "x.npy", "x.npz", "x.fasta", "maps/a.png")
]


@pytest.mark.parametrize("name", PICKLED)
def test_a_pickle_in_the_place_of_data_is_not_run(name: str, tmp_path: Path, cli: Cli) -> None:
    mark = tmp_path / "ran"
    file = written(tmp_path / name, pickle.dumps(Malicious(mark)))
    result = cli(*training(file.parent if file.suffix == ".png" else file))
    assert result.code == 2, result.err
    assert result.complaint
    assert not mark.exists()
    for member in ("x.npy", "x.pkl"):
        if file.suffix == ".npz":
            header = npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }")
            written(file, zipped(member, header + pickle.dumps(Malicious(mark))))
            assert cli(*training(file)).code == 2
            assert not mark.exists()


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "model.safetensors",
        "metrics.jsonl",
        "checkpoints/*/state.pt",
        "checkpoints/*/notes.json",
        ".lock",
    ],
)
def test_a_pickle_in_the_place_of_a_file_of_a_run_is_not_run(
    name: str, run: Path, book: Path, tmp_path: Path, cli: Cli
) -> None:
    mark, copy = tmp_path / "ran", tmp_path / "run"
    shutil.copytree(run, copy)
    places = list(copy.glob(name))
    assert places
    for place in places:
        place.write_bytes(pickle.dumps(Malicious(mark)))
    resume = ["train", "text8/multinomial", *SMALL, "--data", f"text:{book}", "--out", copy, "--resume", "--steps", 6]
    for words in (["sample", copy, "--num", 1, "--length", 8], ["evaluate", copy, "--num-examples", 1], resume):
        result = cli(*words)
        assert result.code in (0, 2), result.err
        assert "Traceback" not in result.err
        assert not mark.exists()


def test_a_pickle_in_the_cache_of_prepared_data_is_not_run(
    book: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNORDINAL_DATA", str(tmp_path / "cache"))
    assert cli("data", book).code == 0
    for ending in ("json", "bin"):
        for place in (tmp_path / "cache" / "prepared").glob(f"*.{ending}"):
            place.write_bytes(pickle.dumps(Malicious(tmp_path / "ran")))
        assert cli("data", book).code in (0, 2)
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["../book.txt", "/etc/book.txt", "a/../../book.txt", "..\\book.txt", "C:\\book.txt"])
def test_an_archive_that_leads_out_of_itself_is_refused(name: str, tmp_path: Path, cli: Cli) -> None:
    archive = written(tmp_path / "inner" / "book.zip", zipped(name, b"some text " * 100))
    refused(cli(*training(archive)), "leads out of the archive")
    arrays = written(tmp_path / "inner" / "x.npz", zipped(name + ".npy", npy("{}")))
    refused(cli(*training(arrays)), "leads out of the archive")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner"]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "metrics.jsonl", "checkpoints", "plots", ".lock"])
def test_a_link_out_of_a_run_is_refused(name: str, run: Path, tmp_path: Path, cli: Cli, book: Path) -> None:
    copy, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(run, copy)
    shutil.move(copy / name, outside)
    (copy / name).symlink_to(outside)
    before = {path: path.stat().st_mtime_ns for path in (outside, *outside.rglob("*"))}
    resume = ["train", "text8/multinomial", *SMALL, "--data", f"text:{book}", "--out", copy, "--resume", "--steps", 6]
    for words in (["sample", copy], resume, ["train", "--out", copy, "--resume", "--steps", 6]):
        result = cli(*words)
        assert result.code == 2, (words, result.err)
        assert "link" in result.complaint
    assert before == {path: path.stat().st_mtime_ns for path in (outside, *outside.rglob("*"))}


def test_a_link_out_of_a_folder_of_maps_is_refused(tmp_path: Path, cli: Cli) -> None:
    from PIL import Image

    (tmp_path / "maps").mkdir()
    for index in range(30):
        image = Image.fromarray((np.arange(64).reshape(8, 8) % 3).astype(np.uint8))
        image.save(tmp_path / "maps" / f"{index}.png")
    assert cli("data", tmp_path / "maps").code == 0
    shutil.move(tmp_path / "maps" / "7.png", tmp_path / "outside.png")
    (tmp_path / "maps" / "7.png").symlink_to(tmp_path / "outside.png")
    refused(cli("data", tmp_path / "maps"), "7.png is a link that leads out of")


def test_downloads_are_over_https() -> None:
    check_address("https://example.org/x.zip")
    check_address("http://127.0.0.1:8000/x.zip")
    for url in ("http://example.org/x.zip", "file:///etc/passwd", "ftp://example.org/x"):
        with pytest.raises(ValueError, match="over https only"):
            check_address(url)
