"""A page that plays the chain of a diffusion: text or a map that settles out of noise. It needs nothing but itself."""

import html
import json

from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.evaluate.pictures import INVALID, palette_of, thin_chain
from unordinal.evaluate.report import shown_time

FRAMES = 120  # at most


def chain_page(chain: list[tuple[float, Tensor]], spec: DataSpec) -> str:
    """Return an HTML page with the chain x_T, ..., x_0 of one example: play, pause, and a slider over the steps."""
    frames = thin_chain(chain, FRAMES)
    values = {
        "times": [shown_time(t) for t, _ in frames],
        "settled": settled_at([x for _, x in frames]),
    }
    if spec.is_map:
        values["frames"] = [x.clamp(max=spec.num_classes).tolist() for _, x in frames]
        values["colours"] = [colour for _, colour in (*palette_of(spec), INVALID)]
    else:
        values["frames"] = [[spec.show_noisy(symbol.reshape(1)) for symbol in x] for _, x in frames]
    data = json.dumps(values).replace("<", "\\u003c")  # no text can end the script
    return PAGE.replace("TITLE", html.escape(f"A sample of {spec.name}")).replace("DATA", data)


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


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>TITLE</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
#view { font-family: ui-monospace, monospace; font-size: 1.1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
#view .settled { color: light-dark(#1b7837, #7fd493); }
#view .draft { color: light-dark(#5f6368, #9aa0a6); }
canvas { width: 100%; image-rendering: pixelated; }
.controls { display: flex; gap: 1rem; align-items: center; margin: 1rem 0; }
input { flex: 1; }
button { font: inherit; padding: .3rem 1rem; }
</style></head><body>
<h1>TITLE</h1>
<div class="controls">
<button id="play" type="button">Pause</button>
<input id="step" type="range" min="0" value="0" aria-label="Step of the chain">
<output id="time"></output>
</div>
<div id="view" aria-live="off"></div>
<p>Green has its final value; grey still changes.</p>
<script>
"use strict";
const data = DATA;
const view = document.getElementById("view"), step = document.getElementById("step");
const play = document.getElementById("play"), time = document.getElementById("time");
const last = data.frames.length - 1;
step.max = last;
let timer = null;
function drawText(index) {
  view.replaceChildren(...data.frames[index].map((symbol, place) => {
    const mark = document.createElement("span");
    mark.className = index >= data.settled[place] ? "settled" : "draft";
    mark.textContent = symbol;
    return mark;
  }));
}
function drawMap(index) {
  const rows = data.frames[index], canvas = document.createElement("canvas");
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  const context = canvas.getContext("2d");
  rows.forEach((row, y) => row.forEach((value, x) => {
    context.fillStyle = data.colours[value];
    context.fillRect(x, y, 1, 1);
  }));
  view.replaceChildren(canvas);
}
function show(index) {
  step.value = index;
  time.textContent = "t = " + data.times[index];
  (data.colours ? drawMap : drawText)(index);
}
function stop() { clearInterval(timer); timer = null; play.textContent = "Play"; }
function start() {
  if (Number(step.value) >= last) { show(0); }
  play.textContent = "Pause";
  timer = setInterval(() => {
    const next = Number(step.value) + 1;
    show(Math.min(next, last));
    if (next >= last) { stop(); }
  }, 90);
}
play.addEventListener("click", () => (timer === null ? start() : stop()));
step.addEventListener("input", () => { stop(); show(Number(step.value)); });
show(0);
start();
</script>
</body></html>
"""
