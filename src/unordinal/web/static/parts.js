// What the panels share: elements, requests with progress, and a form whose button starts and stops the work.

const API = "api/v1/";

/** Return the element with a role, or the button with an action, within a panel. */
export const part = (panel, role) => panel.querySelector(`[data-role="${role}"]`);
export const act = (panel, name) => panel.querySelector(`[data-act="${name}"]`);

/** Make an element with a text and attributes. */
export function make(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) { element.setAttribute(name, value); }
  return element;
}

const KINDS = { absorbing: "masked diffusion", uniform: "diffusion by random symbols", multinomial: "multinomial diffusion", arm: "one symbol after another", block: "block after block" };

/** A model's name as people read it. */
function titleOf(model) {
  const name = model.name.replace("pretrained:", "");
  return KINDS[model.recipe] ? `${name} (${KINDS[model.recipe]})` : name;
}

/** Show a sentence below the result of a panel. */
export function say(panel, text, isError = false) {
  const status = panel.querySelector(".status");
  status.textContent = text;
  status.classList.toggle("error", isError);
}

/** Return the models that the server has. */
export async function fetchModels() {
  return (await (await fetch(`${API}models`)).json()).models;
}

/** Post values; return what is done, and call `onEvent` with the name and value of every event before that. */
export async function ask(path, values, signal, onEvent = () => {}) {
  let response;
  try {
    const headers = { "content-type": "application/json", accept: "text/event-stream" };
    response = await fetch(API + path, { method: "POST", headers, body: JSON.stringify(values), signal });
  } catch (error) {
    if (error.name === "AbortError") { throw error; }
    throw new Error("The server does not answer; is it still running?");
  }
  if (!response.ok) { throw new Error((await response.json()).error); }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) { throw new Error("The server ended the answer early; try again."); }
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [, name, data] = event.match(/^event: (.*)\ndata: (.*)$/s);
      const found = JSON.parse(data);
      if (name === "error") { throw new Error(found.error); }
      if (name === "done") { return found; }
      onEvent(name, found);
    }
  }
}

/** The values of a form's fields, as the API wants them. */
export function valuesOf(form) {
  const values = {};
  for (const field of form.elements) {
    if (!field.name || field.tagName === "OUTPUT" || field.disabled) { continue; }
    if (field.type === "checkbox") { values[field.name] = field.checked; continue; }
    if (field.value !== "") { values[field.name] = field.type === "number" ? Number(field.value) : field.value; }
  }
  return values;
}

/** Run `work(values, signal, onProgress)` when a form is sent; return a function that runs other work in the same way.
 *
 * The form's button stops the work while it runs; an example that still runs is replaced by what is sent. The work
 * returns what was asked, `{ path, values, python }`, which is shown for curl and as Python.
 */
export function onSend(panel, work) {
  const form = panel.querySelector("form"), bar = panel.querySelector("progress"), code = panel.querySelector(".code");
  const button = form.querySelector('[type="submit"]'), name = button.textContent;
  let running = null, isExample = false;
  const onProgress = (kind, found) => { if (kind === "progress") { bar.value = found.done; } };
  const run = async (task) => {
    running = new AbortController();
    panel.dataset.used = panel.dataset.busy = "true";
    if (!isExample) { button.textContent = "Stop"; }
    code.hidden = true;
    say(panel, "Computing …");
    const began = Date.now();
    const timer = setInterval(() => say(panel, `Computing … ${Math.round((Date.now() - began) / 1000)} s`), 2000);
    bar.removeAttribute("value");
    bar.hidden = false;
    try {
      showCode(panel, await task(valuesOf(form), running.signal, onProgress));
    } catch (error) {
      if (error.name === "AbortError") { say(panel, "Stopped."); } else { say(panel, error.message, true); }
    }
    clearInterval(timer);
    bar.hidden = true;
    running = null;
    button.textContent = name;
    panel.dataset.busy = "false";
    form.dispatchEvent(new Event("ended"));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (panel.dataset.quiet !== "true") { remember(panel); }
    if (running && isExample) { // a form cannot be sent while it is being sent
      form.addEventListener("ended", () => setTimeout(() => form.requestSubmit()), { once: true });
    }
    if (running) { running.abort(); return; }
    isExample = panel.dataset.quiet === "true";
    run(work);
  });
  act(panel, "link").addEventListener("click", async () => {
    remember(panel);
    try { await navigator.clipboard.writeText(location.href); say(panel, "Link copied."); }
    catch { say(panel, "The address of this page is the link."); }
  });
  return (task) => { if (!running) { isExample = false; run(task); } };
}

/** Show the request for curl and as Python. */
function showCode(panel, { path, values, python }) {
  const body = JSON.stringify(values).replaceAll("'", "'\\''");
  const address = new URL(API + path, location.href).href;
  part(panel, "curl").textContent = `curl ${address} -H 'content-type: application/json' -d '${body}'`;
  const [method, ...args] = python;
  const given = args.map(([name, value]) => `${name ? `${name}=` : ""}${asPython(value)}`).join(", ");
  part(panel, "python").textContent = `import unordinal\n\nrun = unordinal.load(${JSON.stringify(values.model)})${values.block ? `.at(${asPython(values.block)})` : ""}\nprint(run.${method}(${given}))`;
  panel.querySelector(".code").hidden = false;
}

/** A value as Python writes it. */
function asPython(value) {
  if (Array.isArray(value)) { return value.length === 1 ? `(${asPython(value[0])},)` : `(${value.map(asPython).join(", ")})`; }
  return { true: "True", false: "False", null: "None" }[String(value)] ?? JSON.stringify(value);
}

/** Put the values of a panel's form into the page's address. */
export function remember(panel) {
  const query = new URLSearchParams(valuesOf(panel.querySelector("form")));
  history.replaceState(null, "", `#${panel.id}?${query}`);
}

/** Offer the models that can do a task, and say what the chosen one is; return them. */
export function offer(panel, able, preferred = () => false) {
  const select = panel.querySelector('[name="model"]'), hint = make("small", "", { class: "hint" });
  select.replaceChildren(...able.map((model) => make("option", titleOf(model), { value: model.name })));
  const best = able.find(preferred);
  if (best) { select.value = best.name; }
  select.closest(".fields").after(hint);
  const describe = () => { hint.textContent = chosen(panel, able)?.description ?? ""; };
  select.addEventListener("change", describe);
  describe();
  return able;
}

/** The models of running text; those of short lines, such as molecules, if there are no others. */
export function ofText(models) {
  const running = models.filter((model) => !model.has_ends);
  return running.length ? running : models;
}

/** The model that a panel's form names. */
export function chosen(panel, able) {
  return able.find((model) => model.name === panel.querySelector('[name="model"]').value);
}

/** Draw a new seed into a form. */
export function newSeed(form) { form.elements.seed.value = Math.floor(Math.random() * 1e6); }

/** Where the character with this number begins in a text of JavaScript, which counts in units of UTF-16. */
export function unitsOf(text, number) { return [...text].slice(0, number).join("").length; }
