"""Build the API reference into build/docs: `make docs`."""

from pathlib import Path

import pdoc

import unordinal

for name in unordinal.__all__:  # public names are imported when first asked for; pdoc only looks
    getattr(unordinal, name)
pdoc.render.configure(math=True, docformat="markdown")
pdoc.pdoc("unordinal", output_directory=Path("build/docs"))
