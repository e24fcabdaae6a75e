"""Data sets from arrays of classes: .npz or .npy files of any integer type, NumPy arrays or tensors."""

import hashlib
import lzma
import math
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, ClassVar

import numpy as np

from unordinal.config import Shape
from unordinal.data.labels import SPLITS, Given, counts_of, encoded, ended, is_about, length_counts, parted
from unordinal.data.source import WHOLE, ArraySettings, FileSource, Source
from unordinal.data.spec import MAX_CLASSES, DataSpec, smallest_type
from unordinal.data.splits import DEFAULT_SPLIT, Data, cut, split_sizes
from unordinal.data.storage import stored_symbols
from unordinal.data.text import DEFAULT_LENGTH
from unordinal.data.unpacking import UnpackingError, checked_archive
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Progress, silent

BLOCK_BYTES = 1 << 22
UNREADABLE = (  # whatever a damaged archive or header lets zipfile and NumPy raise
    *(ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(NotImplementedError, RuntimeError, MemoryError, SyntaxError, OverflowError, TypeError, LookupError, TokenError),
)


@dataclass(frozen=True)
class ArraySource(FileSource, ArraySettings):
    """An .npz or .npy file of the user's."""

    key: ClassVar[str] = "array"
    usage: ClassVar[str] = "array:PATH"
    description: ClassVar[str] = (
        "your own classes: an .npz or .npy of integers, (N, length), (N, height, width) or one long sequence (N,), "
        "with labels, lengths and classes of columns if there are any"
    )

    @property
    def shape(self) -> Shape:
        return "maps" if array_axes(Path(self.path)) == 3 else "sequences"

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        arrays, given, notes = read_arrays(Path(self.path))
        source = Path(self.path).expanduser().resolve()
        return load_arrays(arrays, self, given=given, source=source, notes=notes, progress=progress)


def read_arrays(path: Path) -> tuple[dict[str, Any], Given, tuple[str, ...]]:
    """Read an .npy file, or an .npz file with arrays `train`, `val` and `test` or with a single array.

    Returns:
        The arrays by name, "" for a single one, what is given with their examples, and notes on arrays that were
        ignored.
    """
    path = path.expanduser().resolve()
    if not path.exists():
        raise ValueError(f"there is no file {path}; expected an .npz or .npy of integer classes")
    try:
        loaded = opened(path)
    except UnpackingError:
        raise
    except UNREADABLE as error:
        raise ValueError(f"{path} is not an array; expected an .npz or .npy of integer classes") from error
    if isinstance(loaded, np.ndarray):
        return {"": loaded}, Given(), ()
    keys = list(loaded.files)
    needed = {"x", *SPLITS, *(key for key in keys if is_about(key, keys))} if len(keys) > 1 else set(keys)
    try:
        arrays = {key: loaded[key] if key in needed else None for key in keys}
    except UNREADABLE as error:
        raise ValueError(f"{path} is damaged, or its arrays are not numbers; expected integer classes") from error
    rest = [key for key in keys if key not in needed]
    if "x" not in keys and not set(SPLITS) <= set(keys) and len(rest) == 1:
        arrays[rest[0]] = loaded[rest[0]]
    examples, given, ignored = parted(arrays, str(path))
    return examples, given, (f"ignored arrays: {', '.join(ignored)}",) if ignored else ()


def opened(path: Path) -> Any:
    """Return the array of an .npy file, mapped into memory, or the arrays of an .npz file, not yet unpacked.

    No object is ever unpickled. The arrays of an .npz must have the sizes that the archive states, which are limited.
    """
    loaded = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    assert loaded.zip is not None
    checked_archive(loaded.zip, path.stat().st_size, path)
    for member in loaded.zip.infolist():
        with loaded.zip.open(member) as file:
            if member.filename.endswith(".npy"):
                shape, dtype = header_of(file)
                if math.prod(shape) * dtype.itemsize > member.file_size:
                    raise ValueError(f"{path} [{member.filename}] is too small for the shape {shape} that it states")
    return loaded


def header_of(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the type that the header of an .npy file states."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def array_axes(path: Path) -> int:
    """Return the number of axes of the (first) array in an .npy or .npz file, or 0 if it cannot be read."""
    try:
        loaded = opened(path.expanduser())
        return loaded.ndim if isinstance(loaded, np.ndarray) else axes_in(loaded)
    except UNREADABLE:
        return 0


def axes_in(loaded: Any) -> int:
    """Return the number of axes of the first array of an opened .npz file, from its header."""
    name = next((name for name in loaded.zip.namelist() if name.endswith(".npy")), "")
    with loaded.zip.open(name) as file:
        return len(header_of(file)[0])


def load_arrays(
    arrays: dict[str, Any],
    asked: Source,
    *,
    given: Given | None = None,
    num_classes: int | None = None,
    letters: str | None = None,
    source: Path | None = None,
    notes: tuple[str, ...] = (),
    where: str | None = None,
    progress: Progress = silent,
) -> Data:
    """Make a data set from arrays.

    Args:
        arrays: arrays named train, val and test, or a single one named "" that is split here. Each has N examples
            (N, *D), or is one long sequence of symbols (N,), which is cut into sequences like a text.
        asked: where the arrays come from, with the settings `num_classes`, `letters`, `length`, `split`, `places` and
            `flips`, as far as its format has them.
        given: what is given with the examples: labels, lengths and the classes of columns.
        num_classes: the number of classes, if it is not a setting; by default the largest class + 1.
        letters: the names of the classes, if they are not a setting.
        source: the file of the arrays, which is prepared once; None keeps the arrays in memory.
        notes: remarks for the user of the data set.
        where: the name of the arrays in error messages; by default the path of `source`.
        progress: receives the progress of preparing the arrays.

    Returns:
        The data set with its splits.
    """
    where, given = where or (str(source) if source else "the array"), given or Given()
    length, split, flips, places = (getattr(asked, name, None) for name in ("length", "split", "flips", "places"))
    letters = letters or getattr(asked, "letters", None)
    checked = {
        part: validated_classes(np.asarray(a), f"{where} [{part}]" if part else where) for part, a in arrays.items()
    }
    first = next(iter(checked.values()))
    for part, array in checked.items():
        if array.shape[1:] != first.shape[1:]:
            raise ValueError(f"{where}: examples of {part} have shape {array.shape[1:]}, others {first.shape[1:]}")
    num_classes, columns = classes_of(checked, asked, given, num_classes, letters, where)
    labels, classes = encoded(given.labels, where)
    for part, lengths in given.lengths.items():
        checked[part] = ended(checked[part], lengths, num_classes, where)
    stored, fingerprint = stored_arrays(checked, smallest_type(num_classes + bool(given.lengths)), source, progress)
    if length is not None and first.ndim > 1 and length != first.shape[-1]:
        notes = (*notes, f"its examples have shape {first.shape[1:]}; `length` only applies to one long sequence")
    length = None if first.ndim > 1 else (length or DEFAULT_LENGTH)
    if len(checked) == len(SPLITS):
        if split not in (None, WHOLE):
            raise ValueError(f"{where} has its own train, val and test; leave out `split`")
        sizes = (len(checked["train"]), len(checked["val"]), len(checked["test"]))
    else:
        what = "symbols" if length else "examples"
        sizes = split_sizes(DEFAULT_SPLIT if split is None else split, len(stored), what)
    event_shape = (length,) if length else first.shape[1:]
    if flips and len(event_shape) != 2:
        raise ValueError(f"`flips` mirrors maps left to right; leave it out with {where}, which gives sequences")
    ordered = np.concatenate([classes[part] for part in checked]) if labels else None
    train, val, test = cut(stored, sizes, length, flips=bool(flips), labels=ordered)
    labels = tuple(
        replace(label, counts=counts_of(train, place, len(label.values))) for place, label in enumerate(labels)
    )
    vocabulary = Vocabulary("chars", letters) if letters else None
    spec = DataSpec(asked.name, num_classes, tuple(event_shape), vocabulary, fingerprint, sizes)
    counts = length_counts(train, num_classes, len(labels[0].values) if labels else 0) if given.lengths else ()
    has_places = first.ndim == 2 and not counts and bool(places)
    spec = replace(spec, columns=columns, has_places=has_places, lengths=counts, labels=labels)
    missing = [len(train) - sum(label.counts) for label in labels]
    about = (
        f"label {one.name} of {len(one.values)} values, {num:,} missing"
        for one, num in zip(labels, missing, strict=True)
    )
    return Data(spec, train, val, test, (*notes, *about))


def stored_arrays(
    arrays: dict[str, np.ndarray], dtype: type[np.unsignedinteger], source: Path | None, progress: Progress
) -> tuple[np.ndarray, str]:
    """Return all examples in a small type, from the cache if they come from a file, and their sha256."""

    def blocks() -> Iterator[np.ndarray]:
        with progress("Preparing the array", sum(len(a) for a in arrays.values())) as advance:
            for array in arrays.values():
                rows = max(1, BLOCK_BYTES // max(1, array.itemsize * array[0].size))
                for start in range(0, len(array), rows):
                    block = np.ascontiguousarray(array[start : start + rows]).astype(dtype)
                    yield block
                    advance(len(block))

    shape = next(iter(arrays.values())).shape[1:]
    if source is None:
        stored = np.concatenate([b.ravel() for b in blocks()])
        return stored.reshape(-1, *shape), hashlib.sha256(stored.tobytes()).hexdigest()
    status = source.stat()
    key = {"path": str(source), "bytes": status.st_size, "changed": status.st_mtime_ns, "arrays": sorted(arrays)}
    stored, described = stored_symbols(key, blocks, dict, dtype)
    return stored.reshape(-1, *shape), described["sha256"]


def classes_of(
    arrays: dict[str, np.ndarray], asked: Source, given: Given, num: int | None, letters: str | None, where: str
) -> tuple[int, tuple[int, ...]]:
    """Return the number of classes, and that of each column where they are given and differ."""
    wanted: Any = num or getattr(asked, "num_classes", None)
    wanted = given.num_classes if wanted is None and letters is None else wanted
    largest = max(int(a.max()) for a in arrays.values())
    if wanted is None or np.size(wanted) == 1:
        return number_of_classes(largest, letters, None if wanted is None else int(np.ravel(wanted)[0]), where), ()
    columns, shape = tuple(int(k) for k in np.ravel(wanted)), next(iter(arrays.values())).shape[1:]
    if shape != (len(columns),):
        raise ValueError(f"{where}: `num_classes` has {len(columns)} numbers, but examples have shape {shape}")
    for part, array in arrays.items():
        wrong = np.argwhere(array >= np.array(columns))
        if len(wrong):
            row, column = wrong[0].tolist()
            found = f"{where} [{part}]" if part else where
            found = f"{found} has class {array[row, column]} in row {row}, column {column}"
            raise ValueError(f"{found}, which has {columns[column]} classes; classes run from 0")
    return number_of_classes(largest, letters, max(columns), where), columns if len(set(columns)) > 1 else ()


def number_of_classes(largest: int, letters: str | None, configured: int | None, where: str) -> int:
    """Return the number of letters, else the configured number of classes, else the largest class + 1."""
    if letters is not None and (len(set(letters)) != len(letters) or len(letters) < 2):
        raise ValueError(f"`letters` must be at least two different characters, one per class; got {letters!r}")
    if letters is not None and configured not in (None, len(letters)):
        raise ValueError(f"`letters` names {len(letters)} classes, but `num_classes` is {configured}")
    num_classes = len(letters) if letters is not None else configured or largest + 1
    if largest >= num_classes:
        raise ValueError(f"{where} has class {largest}, but num_classes is {num_classes}; classes run from 0")
    if num_classes > MAX_CLASSES:
        raise ValueError(f"{where} has {num_classes} classes; at most {MAX_CLASSES} are supported")
    if num_classes < 2:
        raise ValueError(
            f"{where} has only class 0, so there is nothing to learn; set `num_classes` if there are other classes"
        )
    return num_classes


def validated_classes(array: np.ndarray, where: str) -> np.ndarray:
    """Return the array, or raise a ValueError if it does not contain classes."""
    if array.dtype == bool:
        array = array.view(np.uint8)
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{where} has dtype {array.dtype}; expected integer classes 0..K-1")
    if array.ndim == 0 or array.size == 0:
        raise ValueError(f"{where} has shape {array.shape}; expected (N, *D) examples or (N,) symbols")
    if array.min() < 0:
        raise ValueError(f"{where} has class {array.min()}; expected classes from 0 to K-1")
    if array.max() >= MAX_CLASSES:
        raise ValueError(f"{where} has class {array.max()}; at most {MAX_CLASSES} classes are supported")
    return array
