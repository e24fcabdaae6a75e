"""Samples and chains as files, by the endings of their names."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Cli, refused, small_flags
from PIL import Image

import unordinal
from unordinal.cli.writing import check_samples_file, is_folder, one_line, write_folder, write_samples
from unordinal.data.cafe import cafe_orders
from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import REPLACEMENT
from unordinal.tasks.asking import Sample
from unordinal.tasks.shards import file_name


def test_files_are_written_through_links_and_to_pipes(cli: Cli, trained: Path) -> None:
    Path("real.txt").write_text("old")
    Path("link.txt").symlink_to("real.txt")
    assert cli("sample", trained, "--num", 1, "--steps", 2, "--out", "link.txt").code == 0
    assert Path("link.txt").is_symlink()
    assert len(Path("real.txt").read_text()) == 33
    assert cli("sample", trained, "--num", 1, "--steps", 2, "--out", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


def test_sample_writes_files(cli: Cli, trained: Path) -> None:
    common = ("sample", trained, "--num", 3, "--steps", 5)
    for name in ("x.txt", "x.npy", "x.json"):
        assert cli(*common, "--out", name).code == 0
    texts = Path("x.txt").read_text().splitlines()
    classes = np.load("x.npy")
    assert [unordinal.Vocabulary.text8().decode(row) for row in classes] == texts
    assert json.loads(Path("x.json").read_text()) == classes.tolist()
    for name in ("c.txt", "c.json", "c.png"):
        assert cli(*common, "--chain", name).code == 0
    lines = [line.split("\t") for line in Path("c.txt").read_text().splitlines()]
    assert [int(t) for t, _ in lines] == [20, 16, 12, 8, 4, 0]
    assert lines[-1][1] == texts[0]
    assert json.loads(Path("c.json").read_text())[-1]["shown"] == texts[0]
    assert Path("c.png").read_bytes().startswith(b"\x89PNG")


def test_an_invalid_byte_is_kept_in_files(cli: Cli, book: Path) -> None:
    flags = small_flags("enwik8/uniform-dequant-coupling")
    words = ("train", "enwik8/uniform-dequant-coupling", "--data", f"text:{book}", *flags, "--steps", 1)
    assert cli(*words, "--out", "run").code == 0
    sampled = cli("sample", "run", "--num", 2, "--out", "x.npy", "--json").json
    x = np.load("x.npy")
    assert int((x == 256).sum()) == sampled["invalid_codes"] > 0
    assert all(REPLACEMENT in text for text in sampled["samples"])


def size_of(name: str) -> tuple[int, int]:
    with Image.open(name) as image:
        return image.size


def test_chains_are_animated(cli: Cli, trained_maps: dict[str, Path]) -> None:
    run = trained_maps["multinomial"]
    result = cli("sample", run, "--num", 1, "--steps", 5, "--chain", "way.gif", "--out", "x.npy")
    assert result.code == 0, result.err
    with Image.open("way.gif") as image:
        assert getattr(image, "n_frames", 1) == 6
    result = cli("sample", run, "--num", 1, "--steps", 5, "--chain", "way.png", "--out", "x.npy")
    assert result.code == 0, result.err
    assert size_of("way.png")[0] > 100
    assert np.load("x.npy").shape == (1, 8, 16)


def test_endings_in_capitals_are_endings(cli: Cli, trained_maps: dict[str, Path]) -> None:
    result = cli("sample", trained_maps["multinomial"], "--num", 1, "--steps", 2, "--chain", "W.GIF", "--out", "X.NPY")
    assert result.code == 0, result.err
    assert Path("W.GIF").read_bytes()[:3] == b"GIF"
    assert np.load("X.NPY").shape == (1, 8, 16)


def test_samples_of_several_lines_are_set_apart(tmp_path: Path) -> None:
    x = torch.tensor([[0, 1], [1, 0]])
    spec = DataSpec("x", 2, (2,))
    write_samples(tmp_path / "x.txt", x, ["a\nb", "c"], spec)
    assert (tmp_path / "x.txt").read_text() == "a\nb\n-----\nc\n"
    write_samples(tmp_path / "y.txt", x, ["ab", "c"], spec)
    assert (tmp_path / "y.txt").read_text() == "ab\nc\n"


def test_a_line_of_a_chain_is_one_line_and_can_be_read_back() -> None:
    text = "a\\n\nb\r\\"
    assert len(one_line(text).splitlines()) == 1
    assert one_line(text).encode().decode("unicode_escape") == text


def test_samples_in_other_formats(tmp_path: Path) -> None:
    x = torch.zeros(2, 3, dtype=torch.long)
    write_samples(tmp_path / "s.fasta", x, ["AAA", "CCC"], DataSpec("x", 2, (3,)))
    assert (tmp_path / "s.fasta").read_text() == ">sample_1\nAAA\n>sample_2\nCCC\n"
    for name in ("s.gif", "s.jpg", "s.JPEG"):
        with pytest.raises(ValueError, match=rf"\.npy, \.json, \.txt, \.png\), got {name}"):
            check_samples_file(tmp_path / name)
    for name in ("s.png", "s.npy", "s.txt", "s"):
        check_samples_file(tmp_path / name)
    check_samples_file(None)


def test_maps_are_written_as_pngs_whose_indices_are_classes(tmp_path: Path) -> None:
    spec = DataSpec("x", 3, (2, 4), categories=(("a", "#ff0000"), ("b", "#00ff00"), ("c", "#0000ff")))
    x = torch.tensor([[[0, 1, 2, 0], [2, 2, 1, 0]], [[1, 1, 1, 1], [0, 0, 2, 7]]])  # 7 is an invalid code
    write_samples(tmp_path / "one.png", x[:1], [], spec)
    write_samples(tmp_path / "m.png", x, [], spec)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m-1.png", "m-2.png", "one.png"]
    for name, expected in (("one", x[0]), ("m-1", x[0]), ("m-2", x[1].clamp(max=3))):
        with Image.open(tmp_path / f"{name}.png") as image:
            assert image.mode == "P"
            assert np.asarray(image).tolist() == expected.tolist()
            assert np.asarray(image.convert("RGB"))[0, 1].tolist() == [0, 255, 0]


def test_maps_that_were_written_are_read_back(cli: Cli, trained_maps: dict[str, Path]) -> None:
    words = ("sample", trained_maps["multinomial"], "--num", 4, "--steps", 2)
    Path("maps").mkdir()
    assert cli(*words, "--out", "maps/x.png").code == 0
    assert cli(*words, "--out", "x.npy").code == 0
    data = unordinal.load_data("maps", num_classes=8, split="0,0,1")
    assert np.array_equal(data.test.examples(np.arange(4)).numpy(), np.load("x.npy"))


def test_a_name_without_an_ending_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert is_folder(tmp_path / "new")
    assert is_folder(tmp_path)
    assert not is_folder(tmp_path / "new.npy")
    assert not is_folder(tmp_path / "file")
    assert not is_folder(Path("/dev/null"))


def test_texts_are_not_written_as_pictures(cli: Cli, trained: Path) -> None:
    refused(cli("sample", trained, "--num", 1, "--steps", 2, "--out", "x.png"), "pictures are for maps")
    assert not Path("x.png").exists()


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_many_rows_are_written_in_parts_and_continue_after_an_interruption(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pandas as pd

    from unordinal.api import fit
    from unordinal.cli import run, sample
    from unordinal.tasks import shards

    fit("chow-liu", "cafe", num_rows=500, out=tmp_path / "tree", progress=False)
    monkeypatch.setattr(sample, "MANY_ROWS", 100)
    words = ["sample", str(tmp_path / "tree"), "--num", "300", "--batch-size", "3", "--where", "weather=hot"]
    calls, write = [], shards.write_shard

    def interrupted(folder: Path, index: int, *rest: Any) -> None:
        calls.append(index)
        if len(calls) == 3:
            raise KeyboardInterrupt
        write(folder, index, *rest)

    monkeypatch.setattr(shards, "write_shard", interrupted)
    out = tmp_path / f"new{ending}"
    assert run([*words, "--out", str(out)]) == 130
    assert not out.exists()
    assert run([*words, "--out", str(out)]) == 0
    assert calls == [0, 1, 2, 2, 3]  # 96 rows in a file: what was drawn is kept
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("new")] == [f"new{ending}"]
    read = {".csv": pd.read_csv, ".tsv": lambda path: pd.read_csv(path, sep="\t"), ".parquet": pd.read_parquet}
    frame = read[ending](out)
    assert len(frame) == 300
    assert set(frame["weather"]) == {"hot"}
    monkeypatch.setattr(shards, "write_shard", write)
    again = tmp_path / f"again{ending}"
    assert run([*words, "--out", str(again)]) == 0
    pd.testing.assert_frame_equal(read[ending](again), frame)


def test_many_rows_are_drawn_in_files_that_can_be_resumed(tmp_path: Path) -> None:
    run = unordinal.fit("chow-liu", cafe_orders(300), progress=False)
    plan = write_folder(tmp_path / "rows", run, Sample(70_000))
    assert plan.num_files == 3
    assert len(np.load(tmp_path / "rows" / file_name(0))) == 32 * 1024
