"""Maps from arrays and from folders of PNGs: what is read, and what is refused by the file's name."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SHARED_DATA
from PIL import Image

from unordinal.api import fit
from unordinal.data import load_data
from unordinal.data.maps import nearest, read_indices


def random_maps(num: int, height: int = 4, width: int = 6, num_classes: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, num_classes, (num, height, width)).astype(np.uint8)


def write_png(path: Path, pixels: np.ndarray, mode: str = "L") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    if mode == "P":
        image.putpalette([c for k in range(256) for c in (k, 255 - k, 9)])
    image.save(path)


def folder_of(tmp_path: Path, maps: np.ndarray, mode: str = "L") -> Path:
    for index, pixels in enumerate(maps):
        write_png(tmp_path / "maps" / f"{index:03}.png", pixels, mode)
    return tmp_path / "maps"


@pytest.mark.parametrize("mode", ["L", "P"])
def test_a_folder_of_pngs_is_read_in_order_of_names(tmp_path: Path, mode: str) -> None:
    maps = random_maps(40)
    data = load_data(f"maps:{folder_of(tmp_path, maps, mode)}", split="30,5,5", flips=True)
    assert data.spec.event_shape == (4, 6)
    assert data.spec.num_classes == 3
    assert torch.equal(data.train.examples(np.arange(30)), torch.from_numpy(maps[:30]).long())
    assert torch.equal(data.test[4], torch.from_numpy(maps[39]).long())
    assert data.train.flips
    assert not data.test.flips


def raw_png(pixels: np.ndarray, depth: int, colour_type: int) -> bytes:
    """A PNG of indices written by hand: `colour_type` 0 is grey levels, 3 a palette; `depth` bits per pixel."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    height, width = pixels.shape
    bits = np.unpackbits(pixels.astype(">u2").view(np.uint8).reshape(height, width, 2), axis=2)[..., -depth:]
    rows = np.packbits(bits.reshape(height, -1), axis=1)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    palette = chunk(b"PLTE", bytes(range(3)) * min(2**depth, 256)) if colour_type == 3 else b""
    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return start + palette + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("depth", "colour_type"), [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (1, 3), (2, 3), (4, 3), (8, 3)]
)
def test_indices_of_every_depth_are_read_as_they_are(depth: int, colour_type: int) -> None:
    pixels = random_maps(1, 6, 10, num_classes=min(2**depth, 200))[0]
    assert np.array_equal(read_indices(io.BytesIO(raw_png(pixels, depth, colour_type)), "x.png"), pixels)


def test_sixteen_bits_may_hold_more_classes_than_there_can_be() -> None:
    pixels = np.array([[1, 2], [300, 4]])
    with pytest.raises(ValueError, match=r"x\.png has class 300; expected 0 to 255"):
        read_indices(io.BytesIO(raw_png(pixels, 16, 0)), "x.png")


def test_other_files_are_ignored_and_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, random_maps(10))
    (folder / "000.png").rename(folder / "000.PNG")
    (folder / "readme.txt").write_text("maps")
    data = load_data(f"maps:{folder}", split="8,1,1")
    assert sum(data.spec.split_sizes) == 10  # an ending in capitals is one too
    assert "readme.txt" in data.notes[0]


def test_a_folder_may_hold_its_splits(tmp_path: Path) -> None:
    maps = random_maps(9)
    for index, pixels in enumerate(maps):
        write_png(tmp_path / ("train", "val", "test")[index // 3] / f"{index}.png", pixels)
    data = load_data(f"maps:{tmp_path}")
    assert data.spec.split_sizes == (3, 3, 3)
    assert torch.equal(data.val[0], torch.from_numpy(maps[3]).long())


def test_an_npz_keeps_its_splits_and_flips_only_training(tmp_path: Path) -> None:
    maps = random_maps(60)
    np.savez(tmp_path / "m.npz", train=maps[:40], val=maps[40:50], test=maps[50:])
    data = load_data(f"maps:{tmp_path / 'm.npz'}", flips=True)
    x, starts = data.train.crops(200, torch.Generator().manual_seed(0))
    plain = torch.from_numpy(maps[starts]).long()
    is_mirror = (x == plain.flip(2)).flatten(1).all(1) & ~(x == plain).flatten(1).all(1)
    assert bool(((x == plain).flatten(1).all(1) | is_mirror).all())
    assert 60 < int(is_mirror.sum()) < 140
    off = load_data(f"maps:{tmp_path / 'm.npz'}", flips=False)
    x, starts = off.train.crops(50, torch.Generator().manual_seed(0))
    assert torch.equal(x, torch.from_numpy(maps[starts]).long())


def test_nearest_takes_the_pixel_at_the_centre() -> None:
    pixels = np.arange(8 * 12).reshape(8, 12)
    expected = np.array([[pixels[r, c] for c in (1, 4, 7, 10)] for r in (2, 6)])
    assert np.array_equal(nearest(pixels, 2, 4), expected)
    assert np.array_equal(nearest(pixels, 8, 12), pixels)


def test_land_cover_is_read_as_it_is() -> None:
    path = SHARED_DATA / "landcover32x64.npz"
    if not path.exists():
        pytest.skip(f"no {path} here")
    data = load_data(f"maps:{path}")
    assert data.spec.event_shape == (32, 64)
    assert data.spec.split_sizes == (2500, 475, 500)
    assert data.spec.num_classes == 8


def break_colours(folder: Path) -> None:
    Image.fromarray(np.zeros((4, 6, 3), np.uint8)).save(folder / "005.png")


def break_size(folder: Path) -> None:
    write_png(folder / "005.png", np.zeros((4, 8), np.uint8))


def break_odd(folder: Path) -> None:
    write_png(folder / "000.png", np.zeros((5, 6), np.uint8))


def break_file(folder: Path) -> None:
    (folder / "005.png").write_bytes(b"no picture")


def break_jpeg(folder: Path) -> None:
    Image.fromarray(np.zeros((4, 6), np.uint8)).save(folder / "005.png", format="JPEG")


def break_animated(folder: Path) -> None:
    frames = [Image.fromarray(np.full((4, 6), k, np.uint8)) for k in range(2)]
    frames[0].save(folder / "005.png", save_all=True, append_images=frames[1:])


def break_truncated(folder: Path) -> None:
    whole = (folder / "005.png").read_bytes()
    (folder / "005.png").write_bytes(whole[:45])


@pytest.mark.parametrize(
    ("damage", "message", "settings"),
    [
        (break_colours, r"005\.png is a colour image \(its mode is RGB\); expected one class index per pixel", {}),
        (break_size, r"005\.png is 4 x 8, but 000\.png is 4 x 6", {}),
        (break_odd, r"000\.png: maps of 5 x 6; expected an even height and width", {}),
        (break_file, r"005\.png cannot be read as a PNG", {}),
        (break_jpeg, r"005\.png cannot be read as a PNG", {}),
        (break_animated, r"005\.png is animated; expected a single image", {}),
        (break_truncated, r"005\.png cannot be read as a PNG", {}),
        (None, r"\d+\.png has class 2, but num_classes is 2", {"num_classes": 2}),
        (None, "unknown setting 'map_height'", {"map_height": 32}),
        (None, "unknown setting 'length'", {"length": 9}),
    ],
)
def test_what_is_no_map_is_refused_by_name(tmp_path: Path, damage: Any, message: str, settings: Any) -> None:
    folder = folder_of(tmp_path, random_maps(10))
    if damage:
        damage(folder)
    with pytest.raises(ValueError, match=message):
        load_data(f"maps:{folder}", **settings)


def test_arrays_that_are_no_maps_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((20, 8), np.uint8) + np.arange(8, dtype=np.uint8) % 2)
    with pytest.raises(ValueError, match=r"rows\.npy has shape \(20, 8\); expected maps"):
        load_data(f"maps:{tmp_path / 'rows.npy'}")
    np.save(tmp_path / "odd.npy", random_maps(20, 3, 4))
    with pytest.raises(ValueError, match=r"odd\.npy: maps of 3 x 4; expected an even"):
        load_data(f"maps:{tmp_path / 'odd.npy'}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"no PNGs in .*empty"):
        load_data(f"maps:{tmp_path / 'empty'}")
    write_png(tmp_path / "one.png", random_maps(1)[0])
    with pytest.raises(ValueError, match=r"one\.png is a single image"):
        load_data(f"maps:{tmp_path / 'one.png'}")


def test_a_palette_gives_the_classes_their_colours(tmp_path: Path) -> None:
    data = load_data(str(folder_of(tmp_path, random_maps(40), "P")))
    assert data.spec.categories == (("0", "#00ff09"), ("1", "#01fe09"), ("2", "#02fd09"))
    far = load_data(str(folder_of(tmp_path / "far", 85 * random_maps(40), "P")))
    assert far.spec.categories == (("level 0", "#00ff09"), ("level 85", "#55aa09"), ("level 170", "#aa5509"))
    assert load_data(str(folder_of(tmp_path / "grey", random_maps(40)))).spec.categories == ()


def test_examples_are_called_by_their_files(tmp_path: Path) -> None:
    data = load_data(str(folder_of(tmp_path, random_maps(40))), split="30,5,5")
    assert data.train.names[:2] == ["000.png", "001.png"]
    assert data.test.names == [f"{index:03}.png" for index in range(35, 40)]


def test_subfolders_are_labels(tmp_path: Path) -> None:
    """Drawn streets of two kinds: as they are, and upside down."""
    streets = load_data("streets", map_height=8, map_width=16).test.examples(np.arange(30)).numpy().astype(np.uint8)
    for index, pixels in enumerate(streets):
        write_png(tmp_path / "maps" / "upright" / f"{index}.png", pixels)
        write_png(tmp_path / "maps" / "fallen" / f"{index}.png", pixels[::-1].copy())
    data = load_data(tmp_path / "maps")
    (label,) = data.spec.labels
    assert (label.name, label.values) == ("class", ("fallen", "upright"))
    assert min(label.counts) > 15
    for split in (data.train, data.val, data.test):
        assert split.labels is not None
        for row, name in enumerate(split.names):
            kind, number = Path(name).parent.name, int(Path(name).stem)
            assert label.values[int(split.labels[row, 0])] == kind
            wanted = streets[number] if kind == "upright" else streets[number][::-1]
            assert np.array_equal(split[row].numpy(), wanted)
    settings: dict[str, Any] = {"net.width": 8, "net.num_levels": 2, "num_steps": 10}
    run = fit("multinomial", tmp_path / "maps", steps=2, batch_size=2, progress=False, **settings)
    assert run.sample(2, label={"class": "fallen"}, guidance=2.0).shape == (2, 8, 16)
    assert run.classify(num_examples=2, repeats=2).probabilities.shape == (2, 2)
