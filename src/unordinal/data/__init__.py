"""Data sets of classes: texts, arrays, FASTA files and maps, split into train, val and test and memory-mapped."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unordinal.data.arrays import ArraySource
from unordinal.data.cafe import CafeSource
from unordinal.data.cityscapes import CityscapesSource
from unordinal.data.docs import DocsSource
from unordinal.data.download import Enwik8Source, Text8Source
from unordinal.data.fasta import FastaSource
from unordinal.data.given import GivenSource
from unordinal.data.guess import guess_format
from unordinal.data.identifiers import NamesSource
from unordinal.data.lines import LinesSource
from unordinal.data.maps import MapsSource
from unordinal.data.source import FileSource, Source
from unordinal.data.spec import DataSpec
from unordinal.data.splits import Data, Split
from unordinal.data.streets import StreetsSource
from unordinal.data.tables import TableSource
from unordinal.data.text import TextSource
from unordinal.data.toy import EightGaussiansSource
from unordinal.data.vocabularies import Vocabulary
from unordinal.names import check_known, unknown
from unordinal.progress import Progress, silent

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DATASETS", "Data", "DataSpec", "Source", "Split", "Vocabulary", "frame_of", "load_data", "source_of"]

DATASETS: dict[str, type[Source]] = {
    "docs": DocsSource,
    "text8": Text8Source,
    "enwik8": Enwik8Source,
    "eight-gaussians": EightGaussiansSource,
    "text": TextSource,
    "lines": LinesSource,
    "array": ArraySource,
    "fasta": FastaSource,
    "streets": StreetsSource,
    "cityscapes": CityscapesSource,
    "maps": MapsSource,
    "table": TableSource,
    "cafe": CafeSource,
    "names": NamesSource,
}
"""The kinds of data by name; kinds can be added."""


def source_of(what: Any, *, lines: bool = False, column: str | None = None) -> Source:
    """Return the source of whatever a user gives as data, without reading it.

    Args:
        what: a path, whose format is recognised; a data set by name, such as text8 or text:PATH; an array, a tensor or
            a list of integer classes; a dict of three of these with the keys train, val and test; a list of texts; a
            pandas DataFrame; or a `Source`.
        lines: take every line of a text file as an example of its own.
        column: take every text in this column of a table as an example of its own.

    Returns:
        The source, whose `load` reads the data.

    >>> source_of("docs").name, source_of([[0, 1], [1, 0]]).shape
    ('docs', 'sequences')
    """
    if lines or column is not None:
        return lines_of(what, column)
    if isinstance(what, Source):
        return what
    if type(what).__module__.startswith("pandas"):
        return TableSource(frame=what) if hasattr(what, "columns") else LinesSource(texts=list(what))
    is_list = isinstance(what, list | tuple) or getattr(getattr(what, "dtype", None), "kind", "") in ("U", "O", "T")
    if is_list and len(what) and all(isinstance(text, str) for text in what):
        return LinesSource(texts=list(what))
    if not isinstance(what, str | os.PathLike):
        return GivenSource(what)
    name = os.fspath(what)
    key, colon, argument = name.partition(":")
    kind = DATASETS.get(key)
    takes_path = kind is not None and ":" in kind.usage
    if not colon and Path(name).expanduser().exists() and (kind is None or takes_path):
        return file_source(DATASETS[guess_format(Path(name))], name)
    if kind is None and not colon and (Path(name).suffix or "/" in name):
        expected = "a text file, an .npy or .npz, a CSV or FASTA file or a folder of PNGs"
        raise ValueError(f"there is no file {name}; expected {expected}")
    if kind is None:
        usages = {known.usage: key for key, known in DATASETS.items()}
        raise unknown("data", name, usages, like=usages)
    if takes_path and not argument and "[" not in kind.usage:
        raise ValueError(f"data {name!r} lacks a path; expected {kind.usage}")
    if colon and not takes_path:
        raise ValueError(f"data {key!r} takes no argument, got {name!r}")
    return file_source(kind, argument) if argument else kind()


def lines_of(what: Any, column: str | None) -> LinesSource:
    """Return the source of the lines of a text file, or of the texts in a column of a table."""
    if hasattr(what, "columns") and column is not None:
        check_known("column", column, [str(name) for name in what.columns])
        return LinesSource(texts=what[column].fillna("").astype(str).tolist())
    source = source_of(what)
    if isinstance(source, LinesSource):
        return replace(source, column=column or source.column)
    if isinstance(source, TextSource | TableSource) and source.path:
        return LinesSource(path=source.path, column=column)
    expected = "`column` is for tables" if column is not None else "`lines` is for text files"
    raise ValueError(f"{expected}; {source.name} is not one")


def file_source(kind: type[Source], path: str) -> Source:
    """Return the source of a path, which is made absolute, so that a run finds its data from any working folder."""
    assert issubclass(kind, FileSource | CityscapesSource | TableSource | LinesSource)
    return kind(path=str(Path(path).expanduser().resolve()))


def frame_of(what: Any) -> "pd.DataFrame":
    """Return the table that a user gives, a file or a DataFrame, as a DataFrame."""
    source = source_of(what)
    if not isinstance(source, TableSource):
        raise ValueError(f"expected a table, a .csv, .tsv or .parquet file or a DataFrame; got {source.name}")
    return source.read()


def load_data(what: Any, *, vocabulary: Vocabulary | None = None, progress: Progress = silent, **settings: Any) -> Data:
    """Load data.

    The first time, texts and files are encoded and stored in the cache folder; later they are read from there.

    Args:
        what: a path, a data set by name, an array, or a `Source`; see `source_of`.
        vocabulary: the vocabulary to encode a text or FASTA file with, usually that of a trained model. By default it
            follows from the settings and from the data.
        progress: receives the progress of downloading and preparing the data.
        **settings: those of the format, such as `length`, `split` and `alphabet` of a text.

    Returns:
        The data set with its splits.

    >>> data = load_data("eight-gaussians")
    >>> data.spec.num_classes, data.spec.event_shape, len(data.test)
    (91, (2,), 10000)
    """
    from unordinal.overrides import changed_settings

    chosen = {name: settings.pop(name) for name in ("lines", "column") if name in settings}
    return changed_settings(source_of(what, **chosen), settings).load(vocabulary=vocabulary, progress=progress)
