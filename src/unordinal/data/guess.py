"""Recognise the format of a file or folder, so that the user does not have to name it."""

from pathlib import Path

from unordinal.data.arrays import array_axes
from unordinal.data.fasta import ENDINGS as FASTA_ENDINGS
from unordinal.data.tables import PACKED, is_table


def guess_format(path: Path) -> str:
    """Return the name in DATASETS of the format to read a path as: text, array, maps, fasta or table."""
    path = path.expanduser()
    ending = path.suffix.lower()
    inner = path.with_suffix("").suffix.lower() if ending in PACKED else ending
    if is_table(path):
        return "table"
    if path.is_dir():
        return "maps"
    if ending in (".npy", ".npz"):
        return "maps" if array_axes(path) == 3 else "array"
    if inner in FASTA_ENDINGS:
        return "fasta"
    return "text"
