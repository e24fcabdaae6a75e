// Plays the steps of a chain: a button, a slider, and a function that draws one step.

/** Draw rows of classes on a canvas; -1 is an erased pixel. */
export function paint(canvas, rows, colours) {
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  const context = canvas.getContext("2d");
  rows.forEach((row, y) => row.forEach((value, x) => {
    context.fillStyle = value < 0 ? ((x + y) % 2 ? "#888888" : "#bbbbbb") : colours[value];
    context.fillRect(x, y, 1, 1);
  }));
}

/** Show symbols, each with a class that says what has become of it. */
export function spell(view, symbols, kindOf) {
  view.replaceChildren(...symbols.map((symbol, place) => {
    const mark = document.createElement("span");
    mark.className = kindOf(place);
    mark.textContent = symbol;
    return mark;
  }));
}

/** The frame from which on each position keeps its last symbol. */
export function settledAt(frames) {
  const last = frames[frames.length - 1];
  return last.map((symbol, place) => {
    let index = frames.length - 1;
    while (index > 0 && frames[index - 1][place] === symbol) { index -= 1; }
    return index;
  });
}

/** Frames with play, pause and a slider; `show(index)` draws one. Each frame has a time `t`. */
export class Player {
  constructor(box, show) {
    this.box = box;
    this.slider = box.querySelector('[name="step"]');
    this.button = box.querySelector('[data-act="play"]');
    this.show = show;
    this.timer = null;
    this.frames = [];
    this.button.addEventListener("click", () => (this.timer === null ? this.start() : this.stop()));
    this.slider.addEventListener("input", () => { this.stop(); this.draw(Number(this.slider.value)); });
  }
  ready() { this.button.disabled = false; }
  clear() { this.stop(); this.frames = []; this.box.hidden = true; }
  add(frame) {
    this.button.disabled = true; // until the last one has come
    this.frames.push(frame);
    this.box.hidden = false;
    this.slider.max = this.frames.length - 1;
    this.draw(this.frames.length - 1);
  }
  draw(index) {
    this.slider.value = index;
    this.box.querySelector("output").textContent = `t = ${this.frames[index].t}`;
    this.slider.setAttribute("aria-valuetext", `t = ${this.frames[index].t}`);
    this.show(index);
  }
  stop() { clearInterval(this.timer); this.timer = null; this.button.textContent = "Play"; }
  start() {
    if (this.frames.length === 0) { return; }
    if (Number(this.slider.value) >= this.frames.length - 1) { this.draw(0); }
    this.button.textContent = "Pause";
    this.timer = setInterval(() => {
      const next = Number(this.slider.value) + 1;
      if (next >= this.frames.length) { this.stop(); } else { this.draw(next); }
    }, 90);
  }
}
