"""Sources: names and paths that become one, settings that only some have, and sources that move."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unordinal.data import DATASETS, load_data, source_of
from unordinal.data.arrays import ArraySource
from unordinal.data.cityscapes import CityscapesSource
from unordinal.data.download import Enwik8Source, Text8Source
from unordinal.data.fasta import FastaSource
from unordinal.data.given import GivenSource
from unordinal.data.lines import LinesSource
from unordinal.data.maps import MapsSource
from unordinal.data.source import WHOLE, FileSource, Source
from unordinal.data.spec import DataSpec
from unordinal.data.streets import StreetsSource
from unordinal.data.tables import TableSource
from unordinal.data.text import TextSource
from unordinal.data.vocabularies import Vocabulary
from unordinal.settings import settings_of

TEXT = DataSpec("text:a.txt", 27, (64,), Vocabulary.text8())
MAPS = DataSpec("maps:a", 4, (8, 16), None, levels="0,85,170,255")


def made(kind: type[Source]) -> Source:
    takes_path = issubclass(kind, FileSource | TableSource | LinesSource) and ":" in kind.usage
    return kind(path="/folder/file.x") if takes_path else kind()  # type: ignore[call-arg]


@pytest.mark.parametrize("key", DATASETS)
def test_the_name_of_a_source_leads_back_to_it(key: str) -> None:
    source = made(DATASETS[key])
    assert source.key == key
    assert source.usage.partition(":")[0].removesuffix("[") == key
    assert source.description
    assert source_of(source.name) == source
    assert source_of(source) is source


@pytest.mark.parametrize("key", DATASETS)
def test_every_setting_of_a_source_has_a_text_and_a_default_that_it_accepts(key: str) -> None:
    source = made(DATASETS[key])
    for name, setting in settings_of(type(source)).items():
        assert setting.text, name
        setting.check(getattr(source, name))


def test_a_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "book.txt").write_text("a text")
    monkeypatch.chdir(tmp_path)
    expected = TextSource(str(tmp_path / "book.txt"))
    for what in ("book.txt", "text:book.txt", Path("book.txt"), "./book.txt", "text:../" + tmp_path.name + "/book.txt"):
        assert source_of(what) == expected, what
    monkeypatch.setenv("HOME", str(tmp_path))
    assert source_of("~/book.txt") == source_of("text:~/book.txt") == expected


def test_a_file_with_the_name_of_a_format_is_that_file_but_no_file_hides_a_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("text", "maps", "docs", "text8"):
        (tmp_path / name).write_text("a text")
    assert source_of("text") == TextSource(str(tmp_path / "text"))
    assert source_of("maps") == TextSource(str(tmp_path / "maps"))
    assert source_of("docs").name == "docs"
    assert source_of("text8") == Text8Source()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("text:", "data 'text:' lacks a path; expected text:PATH"),
        ("fasta", "data 'fasta' lacks a path; expected fasta:PATH"),
        ("docs:x", "data 'docs' takes no argument, got 'docs:x'"),
        ("streets:", "data 'streets' takes no argument"),
        ("dosc", "unknown data 'dosc'; did you mean docs"),
        ("txet:book", r"unknown data 'txet:book'; did you mean text:PATH"),
        ("none.txt", r"there is no file none\.txt; expected a text file"),
    ],
)
def test_names_that_are_not_data_are_refused(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        source_of(name)


def test_a_source_has_a_short_name_for_results() -> None:
    assert TextSource("/a/book.txt").short_name == "book.txt"
    assert MapsSource("/a/maps/").short_name == "maps"
    assert StreetsSource().short_name == "streets"
    assert GivenSource([[0, 1]]).short_name


def test_only_sources_with_a_path_move() -> None:
    moved = TextSource("/a/book.txt", alphabet="chars", length=32).moved(lambda path: path.replace("/a", "/b"))
    assert moved == TextSource("/b/book.txt", alphabet="chars", length=32)
    assert CityscapesSource("/a").moved(lambda _: "/b") == CityscapesSource("/b")
    for stays in (CityscapesSource(), StreetsSource(), Enwik8Source()):
        assert stays.moved(lambda _: "/b") is stays


def test_adapting_takes_what_the_format_has() -> None:
    values: Any = {"length": 32, "letters": "ACGT", "alphabet": "chars", "flips": True}
    assert TextSource("a").adapted(**values) == TextSource("a", alphabet="chars", length=32)
    assert FastaSource("a").adapted(**values) == FastaSource("a", letters="ACGT", length=32)
    assert StreetsSource().adapted(**values) == StreetsSource(flips=True)


def test_for_a_model_the_settings_are_those_of_its_own_data() -> None:
    own = ArraySource("own", letters="ab", num_classes=2)
    text = TextSource("a", alphabet="chars", length=999, split="0.5,0.25,0.25")
    assert text.for_model(TEXT, own, WHOLE) == TextSource("a", alphabet="chars", length=64, split=WHOLE)
    array = ArraySource("a", flips=True).for_model(DataSpec("array:own", 2, (9,), None), own, None)
    assert array == ArraySource("a", num_classes=2, letters="ab", places=False, length=9)
    maps = MapsSource("a", flips=True).for_model(MAPS, MapsSource("own"), "0,0,1")
    assert maps == MapsSource("a", num_classes=4, levels="0,85,170,255", split="0,0,1")
    assert StreetsSource(flips=True).for_model(MAPS, maps, None) == StreetsSource(map_height=8, map_width=16)


@pytest.mark.parametrize(
    ("what", "settings", "message"),
    [
        ("docs", {"length": 0}, "`length` must be a whole number of at least 1, got 0"),
        ("docs", {"length": 2.5}, r"length cannot be 2\.5"),
        ("docs", {"alphabet": "text9"}, "unknown alphabet 'text9'; did you mean text8"),
        ("docs", {"lenght": 4}, "unknown setting 'lenght'; did you mean length"),
        ("docs", {"letters": "ab"}, "unknown setting 'letters'"),
        ("streets", {"split": "1,1,1"}, "unknown setting 'split'"),
        ("eight-gaussians", {"length": 4}, "unknown setting 'length'"),
        ([[0, 1]], {"num_classes": 1}, "has class 1, but num_classes is 1"),
        ([[0, 1]], {"alphabet": "text8"}, "unknown setting 'alphabet'"),
        ([[0, 1]], {"arrays": [[1, 0]]}, "unknown setting 'arrays'"),
        ("text:a.txt", {"path": "b.txt"}, "unknown setting 'path'"),
    ],
)
def test_settings_that_a_format_lacks_or_refuses(what: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_data(what, **settings)


def test_values_are_checked_when_a_source_is_made() -> None:
    wrong: Any = "text9"
    for make, message in (
        (lambda: TextSource("a", length=0), "`length` must be a whole number of at least 1, got 0"),
        (lambda: TextSource("a", alphabet=wrong), "unknown alphabet 'text9'; did you mean text8"),
        (lambda: MapsSource("a", num_classes=1), "`num_classes` must be a whole number of at least 2, got 1"),
        (lambda: StreetsSource(map_height=31), "`map_height` must be even and at least 2, got 31"),
        (lambda: CityscapesSource(map_width=0), "`map_width` must be a whole number of at least 2, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(dataclasses.FrozenInstanceError):
        source_of("docs").length = 4  # type: ignore[attr-defined]


def test_a_data_set_of_ones_own_is_loaded_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass(frozen=True)
    class Coins(Source):
        """Coins."""

        num: int = 40
        """How many coins are tossed."""

        key, usage, description = "coins", "coins", "tossed coins"

        def load(self, **_: Any) -> Any:
            return load_data(np.arange(2 * self.num).reshape(-1, 2) % 2)

    monkeypatch.setitem(DATASETS, "coins", Coins)
    assert source_of("coins") == Coins()
    assert load_data("coins", num=80).spec.split_sizes == (72, 4, 4)
    with pytest.raises(ValueError, match="unknown data 'coisn'; did you mean coins"):
        source_of("coisn")


def test_a_source_that_was_typed_at_a_prompt_works_without_its_texts() -> None:
    code = """
from dataclasses import dataclass
from unordinal.data.source import Source

@dataclass(frozen=True)
class Typed(Source):
    num: int = 4
    key, usage, description = "typed", "typed", "typed at a prompt"

    def load(self, **_):
        return None
"""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(code, names)
    assert names["Typed"](5).adapted(num=7).num == 7
    with pytest.raises(ValueError, match="`num` must be a whole number, got 'x'"):
        names["Typed"]("x")
