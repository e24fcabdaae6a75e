"""Samples and chains as files, by the endings of their names."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from unordinal.console import progress

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from unordinal.data.spec import DataSpec

STAGES = 6  # of maps on their way out of the noise


def check_samples_file(path: Path | None) -> None:
    """Refuse a picture, before the samples are drawn that it would not show."""
    if path is not None and path.suffix.lower() in (".png", ".gif", ".jpg", ".jpeg"):
        raise ValueError(f"--out writes classes or text (.npy, .json, .txt), got {path.name}; use --grid for pictures")


def write_samples(path: Path, x: "Tensor", shown: list[str]) -> None:
    """Samples as classes or as text, by the file's ending."""
    import numpy as np

    from unordinal.data.storage import replacing

    with replacing(path) as file:
        if path.suffix.lower() == ".npy":
            np.save(file, x.numpy().astype(smallest_type_of(int(x.max()))))
        elif path.suffix.lower() == ".json":
            file.write(json.dumps(x.tolist()).encode())
        elif path.suffix.lower() in (".fasta", ".fa"):
            file.write("".join(f">sample_{i}\n{text}\n" for i, text in enumerate(shown, start=1)).encode())
        else:
            between = "\n-----\n" if any("\n" in text for text in shown) else "\n"
            file.write((between.join(shown) + "\n").encode())


def smallest_type_of(largest: int) -> "type[np.unsignedinteger]":
    """The smallest integer for classes up to this one; a code that means no class may be one beyond all classes."""
    import numpy as np

    return np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.uint32


def write_chain(path: Path, chains: list[tuple[float, "Tensor"]], spec: "DataSpec") -> None:
    """Write x_T, ..., x_0 in the format of the file's ending; most formats show only the first sample in `chains`."""
    from unordinal.data.storage import replacing
    from unordinal.evaluate.chain_page import chain_page
    from unordinal.evaluate.pictures import plot_map_chain, plot_stages
    from unordinal.evaluate.report import chain_rows, plot_chain, shown_time

    kind, chain = path.suffix.lower(), [(t, x[0]) for t, x in chains]
    with replacing(path) as file:
        if kind == ".gif":
            plot_map_chain(chain, spec, file, progress)
        elif kind == ".png" and spec.is_map:
            plot_stages(chain_rows(chains, STAGES), spec, file)
        elif kind == ".png":
            plot_chain(chain, spec, file)
        elif kind in (".html", ".htm"):
            file.write(chain_page(chain, spec).encode())
        elif kind == ".json":
            file.write(json.dumps([{"t": t, "x": x.tolist(), "shown": spec.show_noisy(x)} for t, x in chain]).encode())
        else:
            file.write("".join(f"{shown_time(t)}\t{one_line(spec.show_noisy(x))}\n" for t, x in chain).encode())


def one_line(text: str) -> str:
    """The text with its line breaks written as escapes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
