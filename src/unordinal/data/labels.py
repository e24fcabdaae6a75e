"""What is given with the examples of an array: labels, lengths and the number of classes of each column.

An .npz file, or a dict in Python, holds them next to the examples, under these names:

    x                       the examples, or train, val and test; a single array may have any name
    num_classes             one number, or one for each column; also num_categories
    lengths                 how many symbols of each example count; train_lengths, ... next to train, ...
    label, labels           one label of each example (N,), or several (N, J); train_label, ... next to train, ...
    label_NAME              a label with a name; train_label_NAME, ... next to train, ...

An array x may also have its lengths and labels as x_lengths and x_label. A label is missing where it is negative, or an
empty text.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unordinal.data.spec import Label
from unordinal.data.splits import Split

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Given:
    """What is given with examples.

    Args:
        lengths: the number of symbols of each example, by the name of its array.
        labels: the labels of each example, by the name of its array and the name of the label.
        num_classes: the number of classes of all columns, or of each; None if it is not said.
    """

    lengths: dict[str, np.ndarray] = field(default_factory=dict)
    labels: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    num_classes: Any = None


def parted(arrays: Mapping[str, Any], where: str) -> tuple[dict[str, Any], Given, list[str]]:
    """Return the examples, by "train", "val" and "test" or by "", what is given with them, and the names left over."""
    names = list(arrays)
    num = next((name for name in ("num_classes", "num_categories") if name in names), None)
    is_split, only = set(SPLITS) <= set(names), ""
    about = [name for name in names if is_about(name, names)]
    plain = [name for name in names if name not in about]
    if is_split:
        examples = {name: arrays[name] for name in SPLITS}
    elif "x" in names or len(plain) == 1:
        only = "x" if "x" in names else plain[0]
        examples = {"": arrays[only]}
    else:
        raise ValueError(
            f"{where} has the arrays {', '.join(names) or 'none'}; expected train, val and test, or one array to split"
        )
    used, given = {num, *(SPLITS if is_split else (only,))}, Given(num_classes=arrays.get(num or ""))
    for part, x in examples.items():
        for name in about:
            short = name.removeprefix(f"{part or only}_")
            if part and short == name:  # of another part, or of none
                continue
            if short == "lengths" and not (len(arrays[name]) != len(x) and np.sum(arrays[name]) == len(x)):
                given.lengths[part] = checked_number(arrays[name], x, name, where)  # not the lengths of pieces of rows
                used.add(name)
            elif short.startswith("label"):
                found = checked_number(arrays[name], x, name, where)
                given.labels.setdefault(part, {}).update(named_labels(short, found))
                used.add(name)
    return examples, given, [name for name in names if name not in used]


def is_about(name: str, names: Collection[str]) -> bool:
    """Return whether an array says something about examples, those of another array or all, instead of holding them."""
    rest = next((name.removeprefix(f"{other}_") for other in names if name.startswith(f"{other}_")), name)
    return rest.startswith("label") or rest in ("lengths", "num_classes", "num_categories")


def checked_number(values: Any, x: Any, name: str, where: str) -> np.ndarray:
    """Return an array that has an entry for each example; raise a ValueError if it has another number of them."""
    found = np.asarray(values)
    if found.ndim == 0 or len(found) != len(x):
        num = len(found) if found.ndim else 1
        raise ValueError(f"{where}: the array {name} has {num:,} entries, but there are {len(x):,} examples")
    return found


def read_labels(path: Path, num: int, where: str) -> dict[str, np.ndarray]:
    """Read the labels of a number of examples by name: the lines of a text file, or the columns of a table."""
    from unordinal.data.lines import read_lines
    from unordinal.data.tables import TableSource, is_table
    from unordinal.data.text import TextFile

    if is_table(path):
        frame = TableSource(path=str(path), missing=()).read()
        found = {str(name): frame[name].fillna("").astype(str).to_numpy(object) for name in frame.columns}
    else:
        found = {"label": np.array(read_lines(TextFile.of(path)), object)}
    read = len(next(iter(found.values())))
    if read != num:
        raise ValueError(f"{path} has {read:,} labels, but there are {num:,} examples in {where}")
    return found


def named_labels(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """Return labels by name; several in one array (N, J) are numbered."""
    own = name.removeprefix("labels" if name.startswith("labels") else "label").removeprefix("_") or "label"
    if values.ndim == 1:
        return {own: values}
    return {f"{own}{number}": column for number, column in enumerate(values.T, start=1)}


def encoded(
    given: Mapping[str, Mapping[str, np.ndarray]], where: str
) -> tuple[tuple[Label, ...], dict[str, np.ndarray]]:
    """Return the labels with the names of their classes, and the classes (N, J) of each array."""
    kinds: list[Label] = []
    columns: dict[str, list[np.ndarray]] = {part: [] for part in given}
    names = list(dict.fromkeys(name for part in given.values() for name in part))
    for name in names:
        lacking = [part for part in given if name not in given[part]]
        if lacking:
            raise ValueError(f"{where}: the label {name} is missing in {', '.join(lacking)}; give it for all examples")
        values = {part: np.asarray(labels[name]) for part, labels in given.items()}
        if any(np.issubdtype(v.dtype, np.floating) for v in values.values()):
            raise ValueError(f"{where}: the label {name} holds floats; expected integers or texts")
        is_text = any(v.dtype.kind in "USO" for v in values.values())
        values = {part: as_texts(v) if is_text else v for part, v in values.items()}
        seen = sorted({v for part in values.values() for v in np.unique(part).tolist()})
        kept = [v for v in seen if (v != "" if is_text else v >= 0)]
        if not kept:
            raise ValueError(f"{where}: the label {name} is missing everywhere")
        index = {value: number for number, value in enumerate(kept)}
        kinds.append(Label(name, tuple(map(str, kept))))
        for part, found in values.items():
            columns[part].append(np.array([index.get(value, len(kept)) for value in found.tolist()], np.int64))
    return tuple(kinds), {part: np.stack(found, axis=1) for part, found in columns.items() if found}


def as_texts(values: np.ndarray) -> np.ndarray:
    """Return labels as texts; None and NaN are missing, as an empty text is."""
    missing = {"None": "", "nan": "", "<NA>": "", "NaT": ""}
    texts = [value if isinstance(value, str) else missing.get(str(value), str(value)) for value in values.tolist()]
    return np.array(texts, str)


def ended(x: np.ndarray, lengths: np.ndarray, num_classes: int, where: str) -> np.ndarray:
    """Return rows (N, L) with the number `num_classes` at all positions after the end of each."""
    if x.ndim != 2:
        raise ValueError(f"{where}: lengths are for rows of symbols, (N, length); got shape {x.shape}")
    if lengths.ndim != 1 or not np.issubdtype(lengths.dtype, np.integer):
        raise ValueError(
            f"{where}: lengths are {lengths.dtype} of shape {lengths.shape}; expected one integer for each row"
        )
    wrong = np.flatnonzero((lengths < 0) | (lengths > x.shape[1]))
    if len(wrong):
        raise ValueError(f"{where}: the length of row {wrong[0]} is {lengths[wrong[0]]}; expected 0 to {x.shape[1]}")
    return np.where(np.arange(x.shape[1]) < lengths[:, None], x, num_classes)


def length_counts(train: Split, num_classes: int, num_values: int) -> tuple[tuple[int, ...], ...]:
    """Count the lengths 0, ..., L of training examples: one row, or one for each class of a label and one for all."""
    lengths, longest = (np.asarray(train.symbols) < num_classes).sum(axis=1), train.symbols.shape[1]
    groups = [] if train.labels is None else [lengths[train.labels[:, 0] == value] for value in range(num_values)]
    return tuple(tuple(np.bincount(group, minlength=longest + 1).tolist()) for group in (*groups, lengths))


def counts_of(train: Split, place: int, num_values: int) -> tuple[int, ...]:
    """Count the classes of a label in the training examples, without missing ones."""
    assert train.labels is not None
    return tuple(np.bincount(train.labels[:, place], minlength=num_values + 1)[:num_values].tolist())
