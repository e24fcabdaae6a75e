"""Give mutated files to every reader, and random words to the command line, in a process of limited memory.

    python tests/fuzzing.py FOLDER --files 10000 --lines 200

A reader may answer with data or with a ValueError or OSError of one line; anything else, or more than a few seconds, is
a finding. It prints a JSON object: how many files of each kind there were, how many got past the first check of their
format, and the findings.
"""

import argparse
import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import random
import resource
import shutil
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

MEMORY = 2 << 30  # bytes of address space beyond what the process has when it starts
SECONDS = 5.0
FIRST_CHECKS = (
    *("is not an array", "cannot be read as a PNG", "is not a whole", "truncated or damaged", "config.json is damaged"),
    *("cannot be read", "is not UTF-8", "notes.json", "is not a FASTA file", "it is not of format"),
)
NUMBERS = (b"0", b"-1", b"1", b"3", b"255", b"256", b"65536", b"4294967296", b"99999999999999999999", b"1e309", b"NaN")


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """Return a valid file with a few changes, most of them small."""
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 16))
        digits = [i for i, byte in enumerate(data[:4000]) if 48 <= byte <= 57]
        match rng.randrange(8):
            case 0 | 1:
                if place < len(data):
                    data[place] ^= 1 << rng.randrange(8)
            case 2:
                data[place : place + length] = rng.randbytes(length)
            case 3:
                del data[place : place + length]
            case 4:
                data[place:place] = data[place : place + length]
            case 5:
                if digits:
                    at = rng.choice(digits)
                    data[at : at + 1] = rng.choice(NUMBERS)
            case 6:
                tail = rng.randrange(len(data) + 1)
                data[tail:] = b"" if rng.random() < 0.3 else data[tail:]
            case _:
                half = len(data) // 2
                spot = rng.randrange(half, len(data) + 1)
                data[spot : spot + 1] = rng.randbytes(1)
    return bytes(data)


def valid_files(folder: Path) -> dict[str, bytes]:
    """A valid file of every kind that is read."""
    text = ("the quick brown fox jumps over the lazy dog and says: \u00e9t\u00e9 42 times.\n" * 20).encode()
    file = io.BytesIO()
    array = np.arange(600).reshape(100, 6) % 5
    np.save(file, array.astype(np.uint8))
    arrays = io.BytesIO()
    np.savez_compressed(arrays, train=array[:80], val=array[80:90], test=array[90:])
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("book.txt", text)
    picture = io.BytesIO()
    Image.fromarray((np.arange(64).reshape(8, 8) % 3).astype(np.uint8)).save(picture, "PNG")
    fasta = b"".join(b">r%d\nACGTACGTAC\n" % i for i in range(60))
    return {
        "book.txt": text,
        "book.txt.gz": gzip.compress(text),
        "book.txt.xz": lzma.compress(text),
        "book.txt.bz2": bz2.compress(text),
        "book.zip": zipped.getvalue(),
        "x.npy": file.getvalue(),
        "x.npz": arrays.getvalue(),
        "x.png": picture.getvalue(),
        "x.fasta": fasta,
        "config.json": (folder / "run" / "config.json").read_bytes(),
        "model.safetensors": (folder / "run" / "model.safetensors").read_bytes(),
        "notes.json": next((folder / "run").glob("checkpoints/*/notes.json")).read_bytes(),
        "manifest.json": (folder / "many" / "manifest.json").read_bytes(),
    }


def readers(folder: Path) -> dict[str, Callable[[str, bytes], Any]]:
    """What reads a file of each kind, given its name and its bytes."""
    from unordinal.api import load
    from unordinal.data import load_data
    from unordinal.data.guess import guess_format
    from unordinal.runs.checkpoint import read_notes
    from unordinal.tasks.shards import read_manifest

    place = folder / "mutated"
    place.mkdir(exist_ok=True)
    run = folder / "copy"
    shutil.copytree(folder / "run", run, dirs_exist_ok=True)
    whole = {name: (run / name).read_bytes() for name in ("config.json", "model.safetensors")}
    maps = folder / "maps"
    maps.mkdir(exist_ok=True)

    def data(name: str, raw: bytes) -> Any:
        (place / name).write_bytes(raw)
        path = place / name
        settings: dict[str, Any] = {"length": 4} if name.startswith("book") else {}
        return load_data(f"{guess_format(path)}:{path}", **settings)

    def picture(_name: str, raw: bytes) -> Any:
        for index in range(20):
            (maps / f"{index}.png").write_bytes(valid["x.png"])
        (maps / "7.png").write_bytes(raw)
        return load_data(f"maps:{maps}")

    def of_run(name: str, raw: bytes) -> Any:
        (run / name).write_bytes(raw)
        try:
            return load(run)
        finally:
            (run / name).write_bytes(whole[name])

    def notes(name: str, raw: bytes) -> Any:
        (place / name).write_bytes(raw)
        return read_notes(place)

    def manifest(name: str, raw: bytes) -> Any:
        (place / name).write_bytes(raw)
        return read_manifest(place / name)

    valid = valid_files(folder)
    found: dict[str, Callable[[str, bytes], Any]] = dict.fromkeys(valid, data)
    found |= {"x.png": picture, "config.json": of_run, "model.safetensors": of_run}
    return found | {"notes.json": notes, "manifest.json": manifest}


def fuzz_files(folder: Path, num: int, rng: random.Random) -> dict[str, Any]:
    valid, reads = valid_files(folder), readers(folder)
    tried: Counter[str] = Counter()
    past: Counter[str] = Counter()
    findings: list[str] = []
    cache = Path(os.environ["UNORDINAL_DATA"])
    for index in range(num):
        name = list(valid)[index % len(valid)]
        raw = mutated(valid[name], rng)
        tried[name] += 1
        began = time.monotonic()
        try:
            reads[name](name, raw)
            past[name] += 1
        except (ValueError, OSError) as error:
            past[name] += not any(part in str(error) for part in FIRST_CHECKS)
        except BaseException as error:
            findings.append(f"file {index}, {name}: {type(error).__name__}: {error}")
            (folder / f"finding-{index}-{name}").write_bytes(raw)
        if time.monotonic() - began > SECONDS:
            findings.append(f"file {index}, {name}: {time.monotonic() - began:.1f} s")
        if index % 200 == 0:
            shutil.rmtree(cache / "prepared", ignore_errors=True)
    share = sum(past.values()) / max(1, num)
    return {"files": num, "tried": dict(tried), "past": dict(past), "share past": round(share, 3), "findings": findings}


def fuzz_lines(folder: Path, num: int, rng: random.Random) -> dict[str, Any]:
    """Random command lines: the words of real ones, shuffled, cut and spoilt."""
    from unordinal.cli import COMMANDS, run

    run_path, book = str(folder / "run"), str(folder / "book.txt")
    flags = ["--num", "--length", "--seed", "--steps", "--lr", "--batch-size", "--data", "--json", "--help", "--out"]
    flags += ["--prompt", "--bound", "--k", "--repeats", "--split", "--temperature", "--run", "--file", "--max-bytes"]
    values = ["0", "-1", "3", "1e9", "nan", "x", "", "--", "..", run_path, book, "arm", "\u00e9", "iwbo", "test", "\0"]
    left_out = {"serve", "demo", "bench"}  # which would go on for long
    names = [name for name in COMMANDS if name not in left_out]
    codes: Counter[int] = Counter()
    findings: list[str] = []
    here = Path.cwd()
    (folder / "work").mkdir(exist_ok=True)
    os.chdir(folder / "work")
    for index in range(num):
        words = [rng.choice([*names, "nonsense"])] + ([run_path] if rng.random() < 0.4 else [])
        for _ in range(rng.randrange(5)):
            words += [rng.choice(flags), *([rng.choice(values)] if rng.random() < 0.8 else [])]
        if words[0] == "train":
            words += ["--steps", "1", "--length", "8", "--model.net.width", "16"]
        err, out = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
                code = run(words)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException as error:
            findings.append(f"line {index} {words}: {type(error).__name__}: {error}")
            continue
        codes[code] += 1
        if code not in (0, 2) or "Traceback" in err.getvalue():
            findings.append(f"line {index} {words}: exit code {code}: {err.getvalue()[-300:]}")
    os.chdir(here)
    return {"lines": num, "codes": dict(codes), "findings": findings}


def prepared(folder: Path) -> None:
    """A small run and a folder of its samples, to be mutated."""
    from unordinal.cli import run

    (folder / "book.txt").write_text("the quick brown fox jumps over the lazy dog " * 40)
    words = ["train", "arm", "--data", str(folder / "book.txt"), "--steps", "2", "--length", "8", "--batch-size", "2"]
    words += ["--model.net.width", "16", "--model.net.num-blocks", "1", "--model.net.num-heads", "2"]
    assert run([*words, "--validate-examples", "2", "--out", str(folder / "run")]) == 0
    assert run(["sample", str(folder / "run"), "--num", "2", "--out", str(folder / "many")]) == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    os.environ["UNORDINAL_DATA"] = str(args.folder / "cache")
    with contextlib.redirect_stderr(io.StringIO()):
        prepared(args.folder)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, resource.RLIM_INFINITY))
    found = {  # each with random numbers of its own: files hold paths, whose lengths differ
        "files": fuzz_files(args.folder, args.files, random.Random(args.seed)),
        "lines": fuzz_lines(args.folder, args.lines, random.Random(args.seed)),
    }
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 1 if found["files"]["findings"] or found["lines"]["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
