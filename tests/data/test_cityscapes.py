"""Cityscapes: its label table, and the archive's layout on a generated one of the same names and label ids."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from unordinal.data import load_data
from unordinal.data.cityscapes import CATEGORIES, CATEGORY_OF, CATEGORY_OF_ID, NUM_TRAIN, NUM_VAL
from unordinal.data.maps import nearest

# Known categories of some ids, from the data set's published table of labels.
KNOWN = {7: "flat", 8: "flat", 11: "construction", 13: "construction", 17: "object", 19: "object", 20: "object"}
KNOWN |= {21: "nature", 22: "nature", 23: "sky", 24: "human", 25: "human", 26: "vehicle", 28: "vehicle", 33: "vehicle"}
KNOWN |= {0: "void", 6: "void"}
# Each category has the colour of one of its labels in the published palette.
COLOURS = {"void": (0, 0, 0), "flat": (128, 64, 128), "construction": (70, 70, 70), "object": (220, 220, 0)}
COLOURS |= {"nature": (107, 142, 35), "sky": (70, 130, 180), "human": (220, 20, 60), "vehicle": (0, 0, 142)}


def test_the_label_table() -> None:
    assert len(CATEGORY_OF_ID) == 34
    for number, category in KNOWN.items():
        assert CATEGORIES[CATEGORY_OF_ID[number]][0] == category
        assert CATEGORIES[CATEGORY_OF[number]][0] == category
    assert {name: tuple(bytes.fromhex(colour[1:])) for name, colour in CATEGORIES} == COLOURS
    counts = np.bincount(CATEGORY_OF_ID, minlength=8).tolist()
    assert counts == [7, 4, 6, 4, 2, 1, 2, 8]  # void, flat, construction, object, nature, sky, human, vehicle
    assert set(CATEGORY_OF[34:].tolist()) == {255}  # unknown


def label_map(index: int) -> np.ndarray:
    return np.random.default_rng(index).integers(0, 34, (8, 16)).astype(np.uint8)


def names() -> list[str]:
    """As in the archive: part, city, city_sequence_frame_gtFine_labelIds.png."""
    train = [f"gtFine/train/city{i % 18:02}/city{i % 18:02}_{i:06}_000019" for i in range(NUM_TRAIN)]
    val = [f"gtFine/val/town{i % 3}/town{i % 3}_{i:06}_000019" for i in range(NUM_VAL)]
    return [f"{stem}_gtFine_labelIds.png" for stem in train + val]


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cityscapes") / "gtFine_trainvaltest.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("README", "as in the original")
        file.writestr("gtFine/test/berlin/berlin_000000_000019_gtFine_labelIds.png", png(np.zeros((8, 16), np.uint8)))
        for index, name in enumerate(names()):
            file.writestr(name, png(label_map(index)))
            if index < 3:  # its neighbours in the archive are not for us
                file.writestr(name.replace("labelIds", "color"), png(np.zeros((8, 16, 3), np.uint8)))
                file.writestr(name.replace("labelIds", "instanceIds"), png(np.zeros((8, 16), np.uint8)))
    return path


@pytest.mark.slow
def test_the_archive_is_read_scaled_and_split(archive: Path, tmp_path: Path) -> None:
    data = load_data(f"cityscapes:{archive}", map_height=4, map_width=8, flips=True)
    assert data.spec.split_sizes == (2500, 475, 500)
    assert data.spec.num_classes == 8
    assert data.spec.categories[5][0] == "sky"
    ordered = sorted(range(NUM_TRAIN), key=lambda i: names()[i])
    for split, place, index in (
        (data.train, 0, ordered[0]),
        (data.val, 0, ordered[2500]),
        (data.val, 474, ordered[-1]),
    ):
        expected = CATEGORY_OF[nearest(label_map(index), 4, 8)]
        assert torch.equal(split[place], torch.from_numpy(expected).long())
    first_test = min(range(NUM_TRAIN, NUM_TRAIN + NUM_VAL), key=lambda i: names()[i])
    assert torch.equal(data.test[0], torch.from_numpy(CATEGORY_OF[nearest(label_map(first_test), 4, 8)]).long())
    assert data.train.flips
    assert not data.test.flips
    with zipfile.ZipFile(archive) as file:  # the folder it unpacks to gives the same
        file.extractall(tmp_path)
    unpacked = load_data(f"cityscapes:{tmp_path}", map_height=4, map_width=8)
    assert unpacked.spec.fingerprint == data.spec.fingerprint
    (tmp_path / names()[5]).write_bytes(png(label_map(9999)))  # a file repaired since: not served from the cache
    assert load_data(f"cityscapes:{tmp_path}", map_height=4, map_width=8).spec.fingerprint != (data.spec.fingerprint)
    default = load_data(f"cityscapes:{archive}")
    assert default.spec.event_shape == (32, 64)
    assert not default.train.flips


def changed(tmp_path: Path, **members: bytes) -> Path:
    path = tmp_path / "gtFine_trainvaltest.zip"
    with zipfile.ZipFile(path, "w") as file:
        for index, name in enumerate(names()):
            file.writestr(name, members.get("bad", b"") if index == 7 and "bad" in members else png(label_map(index)))
    return path


def test_what_is_not_cityscapes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no file or folder .*nowhere\.zip"):
        load_data(f"cityscapes:{tmp_path / 'nowhere.zip'}")
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("leftImg8bit/train/a.png", b"")
    with pytest.raises(ValueError, match=r"other\.zip does not contain gtFine;"):
        load_data(f"cityscapes:{other}")
    with zipfile.ZipFile(other, "w") as file:
        file.writestr(names()[0], png(label_map(0)))
    with pytest.raises(ValueError, match="has 1 label maps in gtFine/train, expected 2,975"):
        load_data(f"cityscapes:{other}")
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match=r"broken\.zip cannot be read as a zip archive"):
        load_data(f"cityscapes:{broken}")
    with pytest.raises(ValueError, match=r"does not contain gtFine/train"):
        load_data(f"cityscapes:{tmp_path}")
    unknown = label_map(0)
    unknown[3, 4] = 40
    with pytest.raises(ValueError, match=r"_000007_000019_gtFine_labelIds\.png has label id 40"):
        load_data(f"cityscapes:{changed(tmp_path, bad=png(unknown))}")


def test_a_damaged_member_is_named(archive: Path, tmp_path: Path) -> None:
    damaged = tmp_path / archive.name
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as file:
        member = file.getinfo(sorted(n for n in names() if "train" in n)[0])
    content[member.header_offset + 30 + len(member.filename) + 60] ^= 0xFF
    damaged.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{archive.name}/{member.filename} cannot be unpacked"):
        load_data(f"cityscapes:{damaged}", map_height=2, map_width=4)


def test_where_it_is_missing_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNORDINAL_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"cityscapes-dataset\.com/downloads/") as caught:
        load_data("cityscapes")
    for part in ("license", str(tmp_path / "downloads"), "`data` streets"):
        assert part in str(caught.value)


def test_the_archive_is_found_where_downloads_are(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNORDINAL_DATA", str(tmp_path))
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / archive.name).symlink_to(archive)
    assert len(load_data("cityscapes", map_height=2, map_width=4).test) == 500
