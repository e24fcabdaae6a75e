"""A page that plays the chain of a diffusion: text or a map that settles out of noise. It needs nothing but itself."""

import html
import json
from importlib.resources import files

from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.evaluate.pictures import INVALID, palette_of, thin_chain
from unordinal.evaluate.report import shown_time

FRAMES = 120  # at most


def chain_page(chain: list[tuple[float, Tensor]], spec: DataSpec) -> str:
    """Return an HTML page with the chain x_T, ..., x_0 of one example: play, pause, and a slider over the steps."""
    frames = thin_chain(chain, FRAMES)
    values = {"times": [shown_time(t) for t, _ in frames], "settled": settled_at([x for _, x in frames])}
    if spec.is_map:
        values["frames"] = [x.clamp(max=spec.num_classes).tolist() for _, x in frames]
        values["colours"] = [colour for _, colour in (*palette_of(spec), INVALID)]
    else:
        values["frames"] = [[spec.show_noisy(symbol.reshape(1)) for symbol in x] for _, x in frames]
    data = json.dumps(values).replace("<", "\\u003c")  # no text can end the script
    templates = files("unordinal") / "templates"
    page = (templates / "chain.html").read_text().replace("PLAYER", (templates / "player.js").read_text())
    return page.replace("TITLE", html.escape(f"A sample of {spec.name}")).replace("DATA", data)


def settled_at(frames: list[Tensor]) -> list[int]:
    """Return the frame from which on each position keeps its last value, row by row.

    >>> import torch
    >>> settled_at([torch.tensor([0, 1]), torch.tensor([2, 1]), torch.tensor([2, 1])])
    [1, 0]
    """
    last = frames[-1].flatten().tolist()
    found = [0] * len(last)
    for index, frame in enumerate(frames):
        for place, value in enumerate(frame.flatten().tolist()):
            if value != last[place]:
                found[place] = index + 1
    return found
