"""Write samples and chains to files, by the endings of their names."""

import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unordinal.console import progress, say
from unordinal.names import counted

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from unordinal.api import Run
    from unordinal.data.spec import DataSpec

STAGES = 6  # of maps on their way out of the noise


def check_samples_file(path: Path | None) -> None:
    """Raise a ValueError for a kind of picture that cannot be written, before the samples are drawn."""
    if path is not None and path.suffix.lower() in (".gif", ".jpg", ".jpeg"):
        raise ValueError(f"--out writes classes, text or maps (.npy, .json, .txt, .png), got {path.name}")


def write_samples(path: Path, x: "Tensor", shown: list[str], spec: "DataSpec") -> None:
    """Write samples as classes, as text or as pictures, by the file's ending."""
    import numpy as np

    from unordinal.data.storage import replacing

    if path.suffix.lower() == ".png":
        write_maps(path, x, spec)
        return
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


def write_frame(frame: Any, path: Path | None, *, shows: bool = True) -> None:
    """Write a DataFrame to a .csv, .tsv or .parquet file, or print it as CSV."""
    from unordinal.data.storage import replacing

    if path is None:
        if shows:
            print(frame.to_csv(index=False), end="")
        return
    kind = path.suffix.lower()
    with replacing(path) as file:
        if kind == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            file.write(frame.to_csv(index=False, sep="\t" if kind == ".tsv" else ",").encode())


def write_maps(path: Path, x: "Tensor", spec: "DataSpec") -> None:
    """Write each map as a PNG whose palette indices are its classes: NAME.png, or NAME-1.png, NAME-2.png, ..."""
    import numpy as np
    from PIL import Image

    from unordinal.data.storage import replacing
    from unordinal.evaluate.pictures import INVALID, palette_of

    colours = [int(colour[1:], 16).to_bytes(3, "big") for _, colour in (*palette_of(spec), INVALID)]
    for number, row in enumerate(x.clamp(max=spec.num_classes), start=1):
        picture = Image.fromarray(row.numpy().astype(np.uint8), mode="P")
        picture.putpalette(b"".join(colours))
        with replacing(path if len(x) == 1 else path.with_stem(f"{path.stem}-{number}")) as file:
            picture.save(file, format="PNG")


def is_folder(path: Path) -> bool:
    """Return whether samples are written to a folder: its name has no ending, and it is not a file, pipe or device."""
    return not path.suffix and (path.is_dir() or not path.exists())


def write_folder(folder: Path, run: "Run", num: int, batch_size: int, seed: int, *, settings: dict[str, Any]) -> int:
    """Draw many samples into a folder, file by file, report where they are, and return the exit code."""
    from unordinal.parallel.group import current_group
    from unordinal.runs.lock import locked
    from unordinal.tasks.shards import MANIFEST, Plan, draw_shards, weights_identity

    group, began = current_group(), time.monotonic()
    plan = Plan(weights_identity(run.model.state_dict()), num, batch_size, seed, settings)
    with locked(folder) if group.is_first else nullcontext():
        drawn = draw_shards(run.model, run.spec, folder, plan, group=group, progress=progress, warn=warned)
    files, seconds = counted(plan.num_files, "file"), time.monotonic() - began
    say(f"{counted(num, 'sample')} in {files} at {folder}, {drawn} of them drawn now in {seconds:.0f} s.")
    say(f"{folder / MANIFEST} lists them.")
    return 0


def warned(text: str) -> None:
    say(f"Warning: {text}.")


def smallest_type_of(largest: int) -> "type[np.unsignedinteger]":
    """Return the smallest integer type for classes up to this one; an invalid code may be one beyond all classes."""
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
    """Return the text with its line breaks written as escapes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
