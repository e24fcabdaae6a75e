// The page: one panel at a time, chosen by tabs. The example of a panel is run when the panel is first shown.
import { fetchModels, make } from "./parts.js";
import { startBits } from "./panels/bits.js";
import { startCorrect } from "./panels/correct.js";
import { startEmerge } from "./panels/emerge.js";
import { startFill } from "./panels/fill.js";
import { startLines } from "./panels/lines.js";
import { startMaps } from "./panels/maps.js";
import { startRows } from "./panels/rows.js";

/** Each panel, and the function that starts it: it returns whether a model is served that the panel can use. */
const PANELS = { emerge: startEmerge, correct: startCorrect, fill: startFill, bits: startBits, maps: startMaps, lines: startLines, rows: startRows };
const tabs = () => [...document.querySelectorAll('[role="tab"]:not([hidden])')];

/** Show one panel, and run its example the first time. */
function show(id, runExample = true) {
  for (const tab of document.querySelectorAll('[role="tab"]')) {
    const isChosen = tab.dataset.panel === id;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    document.getElementById(tab.dataset.panel).hidden = !isChosen;
  }
  const panel = document.getElementById(id);
  if (runExample && panel.dataset.used !== "true") { send(panel, true); }
}

/** Send a panel's form; quietly, if the page's address is to stay as it is. */
function send(panel, isQuiet) {
  panel.dataset.quiet = String(isQuiet);
  panel.querySelector("form").requestSubmit();
  panel.dataset.quiet = "false";
}

/** Show the panel that the page's address names, with the values that it holds; return whether it names one. */
function recall(able) {
  const [id, query] = location.hash.slice(1).split("?");
  if (!able.includes(id)) { return false; }
  show(id, !query);
  if (!query) { return true; }
  const panel = document.getElementById(id), form = panel.querySelector("form");
  for (const [name, value] of new URLSearchParams(query)) {
    const field = form.elements.namedItem(name);
    if (!field) { continue; }
    if (field.type === "checkbox") { field.checked = value === "true"; } else { field.value = value; }
    field.dispatchEvent(new Event("change"));
    field.dispatchEvent(new Event("input"));
  }
  send(panel, false);
  return true;
}

/** Let the arrow keys move between tabs. */
function moveByKeys(event) {
  const all = tabs(), place = all.indexOf(document.activeElement);
  const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: all.length - 1 }[event.key];
  if (next === undefined || place < 0) { return; }
  event.preventDefault();
  const tab = all[(next + all.length) % all.length];
  tab.focus();
  tab.click();
}

async function start() {
  let models;
  try {
    models = await fetchModels();
  } catch {
    document.querySelector("main").prepend(make("p", "The server does not answer; is it still running?", { class: "error", role: "alert" }));
    return;
  }
  const able = Object.keys(PANELS).filter((id) => PANELS[id](models));
  for (const tab of document.querySelectorAll('[role="tab"]')) {
    tab.hidden = !able.includes(tab.dataset.panel);
    tab.addEventListener("click", () => { history.replaceState(null, "", `#${tab.dataset.panel}`); show(tab.dataset.panel); });
  }
  document.querySelector('[role="tablist"]').addEventListener("keydown", moveByKeys);
  window.addEventListener("hashchange", () => recall(able));
  if (!recall(able) && able.length) { show(able[0]); }
  document.body.dataset.ready = "true";
}

start();
