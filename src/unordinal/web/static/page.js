// The page's panels. Each posts its form to the API and shows what comes back; a link holds the form's values.
import { startMaps } from "./maps.js";

const API = "api/v1/";

/** Return the element with a role within a panel. */
export const part = (panel, role) => panel.querySelector(`[data-role="${role}"]`);
const act = (panel, name) => panel.querySelector(`[data-act="${name}"]`);

/** Make an element with a text and attributes. */
export function make(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) { element.setAttribute(name, value); }
  return element;
}

const KINDS = { absorbing: "masked diffusion", uniform: "diffusion by random letters", multinomial: "multinomial diffusion", arm: "letter by letter" };

/** A model's name as people read it. */
function titleOf(model) {
  const name = model.name.replace("pretrained:", "");
  return KINDS[model.recipe] ? `${KINDS[model.recipe]} (${name})` : name;
}

export function say(panel, text, isError = false) {
  const status = panel.querySelector(".status");
  status.textContent = text;
  status.classList.toggle("error", isError);
}

/** Post values; return the answer, or raise an error with the server's sentence. */
export async function post(path, values, signal) {
  const response = await send(path, values, signal);
  return response.json();
}

async function send(path, values, signal) {
  let response;
  try {
    const body = JSON.stringify(values);
    response = await fetch(API + path, { method: "POST", headers: { "content-type": "application/json" }, body, signal });
  } catch (error) {
    if (error.name === "AbortError") { throw error; }
    throw new Error("The server does not answer; is it still running?");
  }
  if (!response.ok) { throw new Error((await response.json()).error); }
  return response;
}

/** Post values and call `onEvent` with the name and value of every event that comes back. */
export async function stream(path, values, signal, onEvent) {
  const reader = (await send(path, values, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) { break; }
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [, name, data] = event.match(/^event: (.*)\ndata: (.*)$/s);
      const found = JSON.parse(data);
      if (name === "error") { throw new Error(found.error); }
      onEvent(name, found);
    }
  }
}

/** The values of a form's fields, as the API wants them. */
export function valuesOf(form) {
  const values = {};
  for (const field of form.elements) {
    if (!field.name || field.tagName === "OUTPUT") { continue; }
    if (field.value !== "") { values[field.name] = field.type === "number" ? Number(field.value) : field.value; }
  }
  return values;
}

/** Run `work(values, signal)` when a form is sent; its button stops the work while it runs. */
export function onSend(panel, work) {
  const form = panel.querySelector("form");
  const button = form.querySelector('[type="submit"]');
  const name = button.textContent;
  let running = null;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) { running.abort(); return; }
    running = new AbortController();
    button.textContent = "Stop";
    say(panel, "Computing …");
    const began = Date.now();
    const timer = setInterval(() => say(panel, `Computing … ${Math.round((Date.now() - began) / 1000)} s`), 2000);
    remember(panel);
    try {
      await work(valuesOf(form), running.signal);
    } catch (error) {
      if (error.name === "AbortError") { say(panel, "Stopped."); } else { say(panel, error.message, true); }
    }
    clearInterval(timer);
    running = null;
    button.textContent = name;
    form.dispatchEvent(new Event("ended"));
  });
  const link = act(panel, "link");
  link.addEventListener("click", async () => {
    remember(panel);
    try { await navigator.clipboard.writeText(location.href); say(panel, "Link copied."); }
    catch { say(panel, "The address of this page is the link."); }
  });
}

/** Put the values of a panel's form into the page's address. */
function remember(panel) {
  const query = new URLSearchParams(valuesOf(panel.querySelector("form")));
  history.replaceState(null, "", `#${panel.id}?${query}`);
}

/** If the page's address holds the values of a form, fill it in and send it. */
function recall() {
  const [id, query] = location.hash.slice(1).split("?");
  const panel = id && document.getElementById(id);
  if (!panel || panel.hidden || !query) { return; }
  const form = panel.querySelector("form");
  if (!form) { return; }
  for (const [name, value] of new URLSearchParams(query)) {
    const field = form.elements.namedItem(name);
    if (field) {
      field.value = value;
      field.dispatchEvent(new Event("change"));
      field.dispatchEvent(new Event("input"));
    }
  }
  panel.scrollIntoView();
  form.requestSubmit();
}

/** Offer the models that can do a task; without any, the panel stays hidden. */
export function offer(panel, models, task, preferred) {
  const able = models.filter((model) => model.tasks.includes(task));
  panel.hidden = able.length === 0;
  const select = panel.querySelector('[name="model"]');
  select.replaceChildren(...able.map((model) => make("option", titleOf(model), { value: model.name })));
  const best = able.find(preferred);
  if (best) { select.value = best.name; }
  return able;
}

/** Frames of a chain with play, pause and a slider; `show(index)` draws one. */
export class Player {
  constructor(panel, show) {
    this.panel = panel;
    this.box = panel.querySelector(".player");
    this.slider = this.box.querySelector('[name="step"]');
    this.button = this.box.querySelector('[data-act="play"]');
    this.show = show;
    this.timer = null;
    this.frames = [];
    this.button.addEventListener("click", () => (this.timer === null ? this.start() : this.stop()));
    this.slider.addEventListener("input", () => { this.stop(); this.draw(Number(this.slider.value)); });
    panel.querySelector("form").addEventListener("ended", () => this.ready());
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

/** Draw a new seed into a form. */
function newSeed(form) { form.elements.seed.value = Math.floor(Math.random() * 1e6); }

function startEmerging(models) {
  const panel = document.getElementById("emerge");
  const texts = models.filter((model) => model.alphabet && model.event_shape.length === 1);
  const able = offer(panel, texts, "stream", (model) => model.recipe === "absorbing");
  const form = panel.querySelector("form"), view = part(panel, "view");
  const chosen = () => able.find((model) => model.name === form.elements.model.value);
  const offerSamplers = () => {
    const model = chosen();
    if (!model) { return; }
    const names = model.samplers.map((name) => make("option", name, { value: name }));
    form.elements.sampler.replaceChildren(make("option", "default", { value: "" }), ...names);
  };
  form.elements.model.addEventListener("change", offerSamplers);
  offerSamplers();
  let settled = null; // from which frame on each position keeps its last symbol; known at the end
  const player = new Player(panel, (index) => {
    const symbols = player.frames[index].symbols, first = player.frames[0].symbols;
    view.replaceChildren(...symbols.map((symbol, place) => {
      const isNoise = symbol === "·" || symbol === first[place];
      const isSettled = settled ? index >= settled[place] : first[place] === "·" && symbol !== "·";
      const kind = isSettled ? "settled" : isNoise ? "noise" : "draft";
      return make("span", symbol, { class: kind });
    }));
  });
  onSend(panel, async (values, signal) => {
    settled = null;
    player.clear();
    panel.querySelector(".legend").hidden = false;
    const hasMasks = chosen().samplers.includes("first-hitting");
    if (hasMasks && values.steps > values.length) { // one letter per step is the most there is to do
      values.steps = values.length;
      form.elements.steps.value = values.length;
    }
    await stream("sample/stream", values, signal, (name, found) => {
      if (name === "frame") {
        player.add(found);
        if (player.frames.length === 1) { view.scrollIntoView({ block: "nearest" }); }
      }
      if (name === "done") {
        settled = settledAt(player.frames.map((frame) => frame.symbols));
        player.draw(player.frames.length - 1);
        say(panel, `${found.network_calls} network calls.`);
        panel.querySelector(".status").append(make("span", ` The text: ${found.sample}`, { class: "unseen" }));
      }
    });
  });
  act(panel, "again").addEventListener("click", () => {
    newSeed(form);
    const isRunning = form.querySelector('[type="submit"]').textContent === "Stop";
    if (isRunning) { form.addEventListener("ended", () => form.requestSubmit(), { once: true }); }
    form.requestSubmit(); // stops a drawing that runs
  });
}

/** The frame from which on each position keeps its last symbol. */
function settledAt(frames) {
  const last = frames[frames.length - 1];
  return last.map((symbol, place) => {
    let index = frames.length - 1;
    while (index > 0 && frames[index - 1][place] === symbol) { index -= 1; }
    return index;
  });
}

function startCorrecting(models) {
  const panel = document.getElementById("correct");
  offer(panel, models, "correct", (model) => model.tasks.includes("correct_beam"));
  const form = panel.querySelector("form"), view = part(panel, "view"), detail = part(panel, "detail");
  const rate = form.elements.error_rate;
  rate.addEventListener("input", () => { form.elements.rate.textContent = `${rate.value} %`; });
  let text = "", suggestions = [], accepted = [];
  const result = () => {
    let out = "", done = 0;
    suggestions.forEach((s, i) => {
      out += text.slice(done, s.from) + (accepted[i] ? s.new : s.old);
      done = s.from + s.old.length;
    });
    return out + text.slice(done);
  };
  const describe = (s, i) => `“${s.old}” to “${s.new}”, probability ${s.probability.toFixed(2)}, ${accepted[i] ? "accepted" : "rejected"}`;
  const draw = () => {
    const parts = [];
    let done = 0;
    suggestions.forEach((s, i) => {
      parts.push(document.createTextNode(text.slice(done, s.from)));
      const button = make("button", "", { type: "button", class: "suggestion", "aria-pressed": String(accepted[i]), title: describe(s, i) });
      button.append(make("del", s.old === " " ? "␣" : s.old), make("ins", s.new === " " ? "␣" : s.new));
      button.setAttribute("aria-label", describe(s, i));
      button.addEventListener("click", () => { accepted[i] = !accepted[i]; draw(); view.querySelectorAll("button")[i].focus(); });
      for (const kind of ["focus", "mouseenter"]) { button.addEventListener(kind, () => { detail.textContent = describe(s, i); }); }
      parts.push(button);
      done = s.from + s.old.length;
    });
    parts.push(document.createTextNode(text.slice(done)));
    view.replaceChildren(...parts);
    part(panel, "after").hidden = suggestions.length === 0;
    const num = suggestions.length, kept = accepted.filter((value) => value).length;
    const what = num === 1 ? "1 suggestion" : `${num} suggestions`;
    say(panel, num === 0 ? "No suggestion." : `${what}, ${kept} accepted. Press one to reject it, and again to accept it.`);
  };
  onSend(panel, async (values, signal) => {
    detail.textContent = "";
    view.replaceChildren();
    part(panel, "after").hidden = true;
    const beam = values.text.length <= 120 ? 64 : 16;
    const asked = { ...values, error_rate: Number(values.error_rate) / 100, beam };
    const found = await post("correct", asked, signal);
    text = values.text;
    suggestions = found.suggestions.map((s) => ({ ...s, from: unitsOf(text, s.start) }));
    accepted = suggestions.map(() => true);
    draw();
  });
  act(panel, "copy").addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(result()); say(panel, "Copied."); } catch { say(panel, result()); }
  });
  const decide = (value) => { accepted = accepted.map(() => value); draw(); };
  act(panel, "all").addEventListener("click", () => decide(true));
  act(panel, "none").addEventListener("click", () => decide(false));
}

/** Where the character with this number begins in a text of JavaScript, which counts in units of UTF-16. */
function unitsOf(text, number) { return [...text].slice(0, number).join("").length; }

function startFilling(models) {
  const panel = document.getElementById("fill");
  const masked = models.filter((model) => !model.is_exact); // reading both sides, and quicker
  offer(panel, masked.some((model) => model.tasks.includes("fill")) ? masked : models, "fill", () => true);
  const form = panel.querySelector("form"), view = part(panel, "view"), undo = act(panel, "undo");
  let withGaps = "";
  onSend(panel, async (values, signal) => {
    view.replaceChildren();
    const found = await post("fill", values, signal);
    withGaps = values.text;
    undo.hidden = true;
    const gaps = [...withGaps];
    const best = Math.max(...found.proposals.map((proposal) => proposal.log_prob));
    const weights = found.proposals.map((proposal) => Math.exp(proposal.log_prob - best));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    view.replaceChildren(...found.proposals.map((proposal, index) => {
      const item = make("li"), button = make("button", "", { type: "button", title: "Put this into the text" });
      [...proposal.text].forEach((letter, place) => {
        button.append(gaps[place] === "_" ? make("mark", letter) : document.createTextNode(letter));
      });
      button.addEventListener("click", () => { form.elements.text.value = proposal.text; undo.hidden = false; say(panel, "Put into the text."); });
      const share = `${(100 * weights[index] / sum).toFixed(0)} %`;
      item.append(button, make("small", share, { title: `log-probability ${proposal.log_prob.toFixed(2)} nats (${found.kind})` }));
      return item;
    }));
    say(panel, `${found.proposals.length} proposals, each with its share of their probability.`);
  });
  undo.addEventListener("click", () => { form.elements.text.value = withGaps; undo.hidden = true; form.elements.text.focus(); });
}

const STEPS = [1, 2, 4, 6, 9]; // bits at which the colour changes
const levelOf = (bits) => STEPS.filter((step) => bits >= step).length;

function startMeasuring(models) {
  const panel = document.getElementById("bits");
  offer(panel, models, "bits", (model) => model.has_positions);
  onSend(panel, async (values, signal) => {
    part(panel, "view").replaceChildren();
    const found = await post("bits", values, signal);
    const lines = [...found.lines].sort((a, b) => a.line - b.line);
    part(panel, "view").replaceChildren(...lines.flatMap((line) => {
      const error = line.error === null ? "" : ` ± ${line.error.toFixed(1)}`;
      const sum = `${line.bits.toFixed(1)}${error} bits, ${line.bits_per_symbol.toFixed(2)} per letter`;
      const head = make("h3", found.lines.length > 1 ? `Line ${line.line}: ${sum}` : sum);
      if (!line.positions) { return [head, make("p", line.symbols, { class: "mono" })]; }
      const cells = make("ol", "", { class: "cells", "aria-label": "Letters and their bits" });
      [...line.symbols].forEach((symbol, place) => {
        const bits = line.positions[place];
        const cell = make("li", "", { class: `level${levelOf(bits)}` });
        cell.append(make("b", symbol === " " ? "␣" : symbol), make("small", bits.toFixed(1)));
        cells.append(cell);
      });
      return [head, cells];
    }));
    const sum = found.lines.reduce((total, line) => total + line.bits, 0);
    const notes = [`${sum.toFixed(1)} bits in all.`];
    if (lines.some((line) => !line.positions)) { notes.push("This model bounds the bits of a whole line, with an error (±); it has none for single letters."); }
    if (lines.some((line) => line.symbols !== line.text)) { notes.push("Capitals and accents were read as plain letters, everything else (digits, commas, line ends) as spaces."); }
    say(panel, notes.join(" "));
  });
}

async function start() {
  let models;
  try {
    models = (await (await fetch(`${API}models`)).json()).models;
  } catch {
    document.querySelector("main").prepend(make("p", "The server does not answer; is it still running?", { class: "error", role: "alert" }));
    return;
  }
  startEmerging(models);
  startCorrecting(models);
  startFilling(models);
  startMeasuring(models);
  startMaps(models);
  for (const link of document.querySelectorAll("nav a")) { link.hidden = document.querySelector(link.hash).hidden; }
  recall();
  document.body.dataset.ready = "true";
}

start();
