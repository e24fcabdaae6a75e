"""Lay the bytes of a file out as examples of a model, and write them back: text, lines, tables and arrays.

What the model's classes cannot express goes to a side stream of plain values, and is counted apart.
"""

import csv
import io
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from unordinal.data.schema import Column
from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary, points_of

SURROGATES = (0xD800, 0xE000)  # code points that stand for bytes that are not UTF-8


@dataclass(frozen=True)
class Laid:
    """A file as examples.

    Args:
        kind: the name of the layout.
        rows: classes, of shape (N, *D); the number of classes after the end of an example.
        last_size: how many positions of the last row count.
        side: what the classes cannot express, as plain values.
        num_outside: how many symbols, lines or cells that is.
        facts: what is needed to write the file back, as plain values.
    """

    kind: str
    rows: np.ndarray
    last_size: int
    side: list[Any] = field(default_factory=list)
    num_outside: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


def kind_of(spec: DataSpec) -> str:
    """Return the layout of the files that a model of these data compresses."""
    if spec.schema:
        return "table"
    if spec.vocabulary is None or spec.is_map or spec.has_places:
        return "array"
    return "lines" if spec.ends else "text"


def laid_out(raw: bytes, spec: DataSpec, where: str) -> Laid:
    """Lay a file out as examples; raise a ValueError if it is not of the kind that the model knows."""
    if spec.labels:
        raise ValueError("models with labels cannot compress files, which have none; train one without labels")
    kind = kind_of(spec)
    if kind in ("text", "lines"):
        return text_rows(raw, spec) if kind == "text" else line_rows(raw, spec)
    return table_rows(raw, spec, where) if kind == "table" else array_rows(raw, spec, where)


def written_back(laid: Laid, spec: DataSpec) -> bytes:
    """Return the file that examples were laid out from."""
    return {"text": text_bytes, "lines": line_bytes, "table": table_bytes, "array": array_bytes}[laid.kind](laid, spec)


def in_rows(classes: np.ndarray, length: int) -> tuple[np.ndarray, int]:
    """Return a long sequence as rows of a length, and how many positions of the last row count."""
    num = max(1, -(-len(classes) // length))
    rows = np.zeros((num, length), classes.dtype)
    rows.reshape(-1)[: len(classes)] = classes
    return rows, len(classes) - (num - 1) * length


def known_points(vocabulary: Vocabulary, points: np.ndarray) -> np.ndarray:
    """Return which code points the vocabulary can write."""
    if vocabulary.symbols:
        return np.isin(points, points_of(vocabulary.symbols))
    return (points < SURROGATES[0]) | (points >= SURROGATES[1])


def encoded(vocabulary: Vocabulary, text: str) -> np.ndarray:
    """Return the classes of a text in a small type."""
    classes: np.ndarray = vocabulary.encode(text).numpy()
    return classes.astype(np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32)


def text_rows(raw: bytes, spec: DataSpec) -> Laid:
    """Cut a text into windows; characters that the alphabet lacks go to the side stream, with their distances."""
    assert spec.vocabulary is not None
    length = spec.event_shape[0]
    if spec.vocabulary.kind == "bytes":
        rows, last = in_rows(np.frombuffer(raw, np.uint8).astype(np.uint16), length)
        return Laid("text", rows, last)
    points = points_of(raw.decode("utf-8", "surrogateescape"))
    is_known = known_points(spec.vocabulary, points)
    classes = encoded(spec.vocabulary, text_of(points[is_known]))
    rows, last = in_rows(classes, length)
    outside = np.flatnonzero(~is_known)
    gaps = np.diff(outside, prepend=-1).tolist()
    side = [gaps, points[outside].tolist()] if len(outside) else []
    return Laid("text", rows, last, side, len(outside))


def text_of(points: np.ndarray) -> str:
    """Return the text of code points."""
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def text_bytes(laid: Laid, spec: DataSpec) -> bytes:
    """Return the text of windows, with what the alphabet lacks in its places."""
    assert spec.vocabulary is not None
    classes = laid.rows.reshape(-1)[: (len(laid.rows) - 1) * spec.event_shape[0] + laid.last_size]
    if spec.vocabulary.kind == "bytes":
        return classes.astype(np.uint8).tobytes()
    known = points_of(spec.vocabulary.decode(classes))
    if not laid.side:
        return text_of(known).encode("utf-8", "surrogateescape")
    places = np.cumsum(np.array(laid.side[0], np.int64)) - 1
    points = np.zeros(len(known) + len(places), np.uint32)
    is_known = np.ones(len(points), bool)
    is_known[places] = False
    points[is_known], points[places] = known, np.array(laid.side[1], np.uint32)
    return text_of(points).encode("utf-8", "surrogateescape")


def line_rows(raw: bytes, spec: DataSpec) -> Laid:
    """Take every line as an example; lines that the model cannot write go to the side stream whole."""
    assert spec.vocabulary is not None
    length, text = spec.event_shape[0], raw.decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    is_closed = lines[-1] == ""
    lines = lines[:-1] if is_closed else lines
    rows = np.full((len(lines), length), spec.num_classes, np.uint32)
    side = []
    for number, line in enumerate(lines):
        is_known = bool(known_points(spec.vocabulary, points_of(line)).all()) if line else True
        classes = encoded(spec.vocabulary, line) if is_known and line else np.zeros(0, np.uint16)
        if is_known and len(classes) <= length:
            rows[number, : len(classes)] = classes
        else:
            side.append([number, line])
    return Laid("lines", rows, length, side, len(side), {"is_closed": is_closed})


def line_bytes(laid: Laid, spec: DataSpec) -> bytes:
    """Return the lines of examples."""
    assert spec.vocabulary is not None
    lines = [spec.vocabulary.decode(row[row != spec.num_classes]) for row in laid.rows]
    for number, line in laid.side:
        lines[number] = line
    text = "".join(f"{line}\n" for line in lines)
    return (text if laid.facts["is_closed"] is True else text[:-1]).encode("utf-8", "surrogateescape")


def array_rows(raw: bytes, spec: DataSpec, where: str) -> Laid:
    """Take the examples of an .npy file, or cut one long sequence into examples; all must be classes of the model."""
    stream = io.BytesIO(raw)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(stream)
    except ValueError as error:
        raise ValueError(f"{where} is not an .npy file of classes, which a model of {spec.name} compresses") from error
    start = stream.tell()
    if dtype.kind not in "iu" or is_fortran or len(raw) - start != dtype.itemsize * int(np.prod(shape, dtype=object)):
        raise ValueError(f"{where} must hold whole numbers in C order; save it again with numpy.save")
    values = np.frombuffer(raw, dtype, offset=start)
    if len(values) and not 0 <= int(values.min()) <= int(values.max()) < spec.num_classes:
        got = f"{int(values.min())} to {int(values.max())}"
        raise ValueError(f"{where} must have classes from 0 to {spec.num_classes - 1}, got {got}")
    facts = {"header": raw[:start].decode("latin-1"), "dtype": dtype.str}
    small = values.astype(np.uint16 if spec.num_classes <= 1 << 16 else np.uint32)
    if shape[1:] == tuple(spec.event_shape):
        rows = small.reshape(shape)
        check_columns(rows, spec, where)
        return Laid("array", rows, rows[0].size if len(rows) else 0, facts=facts)
    if len(shape) == 1 and len(spec.event_shape) == 1 and not spec.has_places:
        rows, last = in_rows(small, spec.event_shape[0])
        return Laid("array", rows, last, facts=facts)
    raise ValueError(f"{where} must have shape (N, {', '.join(map(str, spec.event_shape))}), got {shape}")


def check_columns(rows: np.ndarray, spec: DataSpec, where: str) -> None:
    """Raise a ValueError for a class that its column lacks."""
    for place, size in enumerate(spec.columns):
        if len(rows) and int(rows[:, place].max()) >= size:
            raise ValueError(
                f"column {place} of {where} must have classes below {size}, got {int(rows[:, place].max())}"
            )


def array_bytes(laid: Laid, spec: DataSpec) -> bytes:
    """Return the .npy file of examples."""
    num = len(laid.rows)
    count = (num - 1) * int(np.prod(spec.event_shape)) + laid.last_size if num else 0
    values = laid.rows.reshape(-1)[:count].astype(np.dtype(laid.facts["dtype"]))
    return laid.facts["header"].encode("latin-1") + values.tobytes()


def table_rows(raw: bytes, spec: DataSpec, where: str) -> Laid:
    """Take the rows of a CSV file; cells whose text their class does not tell go to the side stream, by column."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 text: byte {raw[error.start]:#04x} at {error.start}") from error
    first = text.partition("\n")[0]
    delimiter = max(",;\t|", key=first.count)
    end = "\r\n" if first.endswith("\r") else "\n"
    table = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    names, body = (table[0] if table else []), table[1:]
    if sorted(names) != sorted(column.name for column in spec.schema):
        expected = ", ".join(column.name for column in spec.schema)
        raise ValueError(f"{where} must have the columns {expected}; got {', '.join(names) or 'none'}")
    for number, row in enumerate(body, start=2):
        if len(row) != len(names):
            raise ValueError(f"line {number} of {where} has {len(row)} cells; expected {len(names)}")
    rows = np.zeros((len(body), len(spec.schema)), np.uint32)
    side: list[Any] = []
    for place, column in enumerate(spec.schema):
        cells = [row[names.index(column.name)] for row in body]
        known = class_texts(column)
        classes = {text: index for index, text in enumerate(known) if text is not None}
        outside = [number for number, cell in enumerate(cells) if cell not in classes]
        classes = {cell: nearest_class(column, cell) for cell in set(cells)} | classes
        rows[:, place] = [classes[cell] for cell in cells]
        gaps = [b - a for a, b in pairwise([-1, *outside])]
        side.append([gaps, [cells[number] for number in outside]] if outside else [])
    num_outside = sum(len(part[1]) for part in side if part)
    facts = {"names": names, "delimiter": delimiter, "end": end, "is_closed": text.endswith("\n")}
    return Laid("table", rows, len(spec.schema), side if num_outside else [], num_outside, facts)


def class_texts(column: Column) -> list[str | None]:
    """Return the text of each class of a column, as it stands in a file; None if the class stands for several."""
    single = [column.shown(low, high) if low == high and not column.is_date else None for low, high in column.bins]
    return [*column.values, *single, *[None] * column.has_other, *[""] * column.has_missing]


def nearest_class(column: Column, cell: str) -> int:
    """Return the class of a cell whose text the classes do not tell, such as its bin; the last class if it has none."""
    if cell in column.merged:
        return column.num_values
    try:
        return column.class_of(cell)
    except ValueError:
        return len(column.classes) - 1


def table_bytes(laid: Laid, spec: DataSpec) -> bytes:
    """Return the CSV file of rows."""
    facts, columns = laid.facts, {}
    for place, column in enumerate(spec.schema):
        known = class_texts(column)
        cells = [known[int(index)] or "" for index in laid.rows[:, place]]
        if laid.side and laid.side[place]:
            gaps, texts = laid.side[place]
            for number, cell in zip((np.cumsum(gaps) - 1).tolist(), texts, strict=True):
                cells[number] = cell
        columns[column.name] = cells
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=facts["delimiter"], lineterminator=facts["end"])
    writer.writerow(facts["names"])
    writer.writerows(zip(*(columns[name] for name in facts["names"]), strict=True))
    text = out.getvalue()
    return (text if facts["is_closed"] is True else text.removesuffix(facts["end"])).encode()
