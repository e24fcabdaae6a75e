"""Write samples and chains to files, by the endings of their names."""

import json
import shutil
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unordinal.console import progress, say
from unordinal.names import counted
from unordinal.progress import silent

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from unordinal.api import Run
    from unordinal.data.spec import DataSpec
    from unordinal.tasks.asking import Sample
    from unordinal.tasks.shards import Plan

ROWS_BATCH = 1024  # rows of a table, so that files are small enough to resume after an interruption
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
            shown = [one_line(text) for text in shown] if spec.ends else shown
            between = "\n-----\n" if any("\n" in text for text in shown) else "\n"
            file.write((between.join(shown) + "\n").encode())


def write_frame(frame: Any, path: Path | None, *, shows: bool = True) -> None:
    """Write a DataFrame to a .csv, .tsv or .parquet file, or print it as CSV."""
    from unordinal.data.storage import replacing

    if path is None:
        if shows:
            print(frame.to_csv(index=False), end="")
        return
    with replacing(path) as file, TableWriter(file, path) as writer:
        writer.write(frame)


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


def write_folder(folder: Path, run: "Run", asked: "Sample") -> "Plan":
    """Draw many samples into a folder, file by file, and report where they are; return what the folder holds."""
    from unordinal.parallel.group import current_group
    from unordinal.runs.lock import locked
    from unordinal.tasks.asking import BATCH, model_settings
    from unordinal.tasks.drawing import sample
    from unordinal.tasks.shards import MANIFEST, Plan, draw_shards, weights_identity

    group, began = current_group(), time.monotonic()
    settings = model_settings(run.model, run.spec, asked) | ({"where": list(asked.where)} if asked.where else {})
    batch = asked.batch_size or (ROWS_BATCH if run.spec.schema else BATCH)  # a file holds 32 of them
    plan = Plan(weights_identity(run.model.state_dict()), asked.num, batch, asked.seed, settings)

    def drawn(num: int, seed: int) -> "Tensor":
        return sample(run.model, run.spec, replace(asked, num=num, seed=seed, progress=silent)).x

    with locked(folder) if group.is_first else nullcontext():
        given: Any = {"group": group, "progress": progress, "warn": warned, "drawn": drawn}
        num = draw_shards(run.model, run.spec, folder, plan, **given)
    files, seconds = counted(plan.num_files, "file"), time.monotonic() - began
    say(f"{counted(asked.num, 'sample')} in {files} at {folder}, {counted(num, 'file')} drawn now in {seconds:.0f} s.")
    say(f"{folder / MANIFEST} lists them.")
    return plan


def write_many_rows(path: Path, run: "Run", asked: "Sample") -> None:
    """Write many rows of a table to a file in bounded memory; after an interruption, the same command continues.

    The rows are first drawn into a folder next to the file, which is removed when the file is complete.
    """
    import numpy as np

    from unordinal.data.storage import replacing
    from unordinal.parallel.group import current_group
    from unordinal.parallel.randomness import mixed_seed
    from unordinal.tasks.shards import file_name

    parts = path.with_name(f"{path.name}.parts")
    plan = write_folder(parts, run, asked)
    if not current_group().is_first:
        return
    with (
        replacing(path) as file,
        progress(f"Writing {path.name}", plan.num) as advance,
        TableWriter(file, path) as writer,
    ):
        for index in range(plan.num_files):
            x = np.load(parts / file_name(index))
            writer.write(run.spec.frame(x, mixed_seed(asked.seed, index, 1)))
            advance(len(x))
    shutil.rmtree(parts)
    say(f"{counted(plan.num, 'row')} written to {path}.")


class TableWriter:
    """Writes DataFrames one after another to a file, as .csv, .tsv or .parquet by its name."""

    def __init__(self, file: Any, path: Path):
        self.file, self.kind, self.num = file, path.suffix.lower(), 0
        self.parquet: Any = None

    def write(self, frame: Any) -> None:
        if self.kind == ".parquet":
            import pyarrow
            import pyarrow.parquet

            table = pyarrow.Table.from_pandas(frame, preserve_index=False)
            self.parquet = self.parquet or pyarrow.parquet.ParquetWriter(self.file, table.schema)
            self.parquet.write_table(table.cast(self.parquet.schema))
        else:
            separator = "\t" if self.kind == ".tsv" else ","
            self.file.write(frame.to_csv(index=False, header=self.num == 0, sep=separator).encode())
        self.num += len(frame)

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, *_: object) -> None:
        if self.parquet is not None:
            self.parquet.close()


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
    """Return the text with its line breaks, and other characters that are not printed, written as escapes."""
    if text.isprintable():
        return text
    text = text.replace("\\", "\\\\")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
