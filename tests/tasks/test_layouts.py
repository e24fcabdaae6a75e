"""Files laid out as examples come back byte for byte; tables cell by cell."""

import csv
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unordinal.data import load_data
from unordinal.data.schema import Column
from unordinal.data.spec import DataSpec, Label
from unordinal.data.vocabularies import Vocabulary
from unordinal.tasks.layouts import kind_of, laid_out, written_back

TEXTS = {
    "text8": DataSpec("text", 27, (8,), Vocabulary.text8()),
    "bytes": DataSpec("text", 256, (8,), Vocabulary.bytes()),
    "chars": DataSpec("text", 4, (5,), Vocabulary("chars", "aé\n ")),
    "lines": DataSpec("lines", 27, (6,), Vocabulary.text8(), lengths=((1,) * 7,)),
}
COLUMNS = (
    Column("kind", "str", ("frog", "toad"), has_missing=True),
    Column("size", "int64", bins=((1.0, 1.0), (2.0, 9.0)), step=1.0),
    Column("colour", "str", ("red",), has_other=True, merged=("blue",)),
)
TABLE = DataSpec("table", 3, (3,), columns=(3, 2, 2), has_places=True, schema=COLUMNS)


@pytest.mark.parametrize("name", TEXTS)
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))))
@settings(max_examples=60, deadline=None)
def test_any_bytes_come_back(name: str, raw: bytes) -> None:
    spec = TEXTS[name]
    laid = laid_out(raw, spec, "it")
    assert laid.rows.shape[1:] == spec.event_shape
    assert int(laid.rows.max(initial=0)) <= spec.num_classes
    assert written_back(laid, spec) == raw


def test_text_of_tokens_comes_back() -> None:
    spec = load_data("docs", alphabet="bpe:300").spec
    for raw in ("Zoë 🚀 def f(x):\n\treturn x\r\n".encode(), b"\xff\x00abc\xed\xa0\x80", b""):
        laid = laid_out(raw, spec, "it")
        assert written_back(laid, spec) == raw


def test_what_the_alphabet_lacks_is_counted_apart() -> None:
    laid = laid_out(b"a Cat, 9 lives", TEXTS["text8"], "it")
    assert laid.num_outside == 3  # C, comma and 9
    lines = laid_out(b"abc\nABC\nmuch too long\n\n", TEXTS["lines"], "it")
    assert lines.num_outside == 2
    assert len(lines.rows) == 4


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["frog", "toad", "", "newt", 'a "quoted", cell', "two\nlines"]),
            st.sampled_from(["1", "1.0", "5", "x", "", "99"]),
            st.sampled_from(["red", "blue", "green", "(other)"]),
        ),
        max_size=8,
    ),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_tables_come_back_cell_by_cell(rows: list[tuple[str, str, str]], delimiter: str, is_windows: bool) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n" if is_windows else "\n")
    writer.writerows([("size", "kind", "colour"), *((b, a, c) for a, b, c in rows)])
    raw = out.getvalue().encode()
    laid = laid_out(raw, TABLE, "it")
    assert written_back(laid, TABLE) == raw  # made by the same writer, it is the same byte for byte


def test_other_ways_to_quote_keep_the_cells() -> None:
    raw = b'"size","kind","colour"\n"1","frog","red"'
    again = written_back(laid_out(raw, TABLE, "it"), TABLE)
    assert again == b"size,kind,colour\n1,frog,red"


@pytest.mark.parametrize("dtype", ["int64", "uint8", ">i2"])
def test_arrays_come_back(dtype: str) -> None:
    for spec, shape in (
        (DataSpec("maps", 5, (2, 3)), (4, 2, 3)),
        (DataSpec("rows", 5, (6,), has_places=True), (3, 6)),
        (DataSpec("codes", 5, (6,)), (20,)),
        (DataSpec("codes", 5, (6,)), (0,)),
    ):
        x = np.random.default_rng(0).integers(0, 5, shape).astype(dtype)
        stream = io.BytesIO()
        np.save(stream, x)
        laid = laid_out(stream.getvalue(), spec, "it")
        assert kind_of(spec) == laid.kind == "array"
        assert written_back(laid, spec) == stream.getvalue()


def saved(x: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, x)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("raw", "spec", "message"),
    [
        (b"plain", DataSpec("maps", 5, (2, 3)), "it is not an .npy file of classes"),
        (saved(np.zeros((2, 2, 3))), DataSpec("maps", 5, (2, 3)), "must hold whole numbers in C order"),
        (saved(np.full((2, 2, 3), 7)), DataSpec("maps", 5, (2, 3)), "must have classes from 0 to 4, got 7 to 7"),
        (saved(np.zeros((2, 3, 3), int)), DataSpec("maps", 5, (2, 3)), r"must have shape \(N, 2, 3\)"),
        (saved(np.full((2, 3), 2)), DataSpec("rows", 3, (3,), columns=(3, 2, 3)), "classes below 2, got 2"),
        (b"kind,size\n", TABLE, "must have the columns kind, size, colour; got kind, size"),
        (b"kind,size,colour\nfrog,1\n", TABLE, "line 2 of it has 2 cells; expected 3"),
        (b"\xff", TABLE, "it is not UTF-8 text: byte 0xff at 0"),
        (b"abc", DataSpec("x", 2, (3,), labels=(Label("a", ("b",)),)), "models with labels cannot compress"),
    ],
)
def test_what_cannot_be_laid_out_is_refused(raw: bytes, spec: DataSpec, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        laid_out(raw, spec, "it")
