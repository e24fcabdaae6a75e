// Text that settles out of noise, step by step.
import { act, ask, chosen, make, newSeed, offer, onSend, part, say } from "../parts.js";
import { Player, settledAt, spell } from "../player.js";

const CLEAREST = "entropy"; // the sampler whose text reads best where few symbols are drawn

export function startEmerge(models) {
  const panel = document.getElementById("emerge");
  const isText = (model) => model.alphabet && model.event_shape.length === 1;
  const able = offer(panel, models.filter((model) => isText(model) && model.tasks.includes("stream")), (model) => model.recipe === "absorbing");
  if (able.length === 0) { return false; }
  const form = panel.querySelector("form"), view = part(panel, "view");
  const suit = () => {
    const model = chosen(panel, able), names = model.samplers.map((name) => make("option", name, { value: name }));
    form.elements.sampler.replaceChildren(make("option", "default", { value: "" }), ...names);
    if (model.samplers.includes(CLEAREST)) { form.elements.sampler.value = CLEAREST; }
    form.elements.namedItem("length").value = form.elements.steps.value = model.alphabet === "tokens" ? 40 : 96;
    const sizes = [...new Set([...model.blocks, "all"])].filter((size) => size !== 1);
    form.elements.block.replaceChildren(make("option", "as trained", { value: "" }), ...sizes.map((size) => make("option", size, { value: size })));
    form.elements.block.closest("label").hidden = form.elements.block.disabled = model.blocks.length === 0;
    panel.querySelector('[data-role="unit"]').textContent = model.alphabet === "tokens" ? "Tokens" : "Letters";
  };
  form.elements.model.addEventListener("change", suit);
  suit();
  let settled = null; // from which frame on each position keeps its last symbol; known at the end
  const player = new Player(panel.querySelector(".player"), (index) => {
    const symbols = player.frames[index].symbols, first = player.frames[0].symbols;
    spell(view, symbols, (place) => {
      const isSettled = settled ? index >= settled[place] : first[place] === "·" && symbols[place] !== "·";
      return isSettled ? "settled" : symbols[place] === "·" || symbols[place] === first[place] ? "noise" : "draft";
    });
  });
  form.addEventListener("ended", () => player.ready());
  onSend(panel, async (values, signal) => {
    settled = null;
    if (values.block && values.block !== "all") { values.block = Number(values.block); }
    player.clear();
    panel.querySelector(".legend").hidden = false;
    const hasMasks = chosen(panel, able).samplers.includes("first-hitting");
    if (hasMasks && values.steps > values.length) { // one symbol per step is the most there is to do
      values.steps = values.length;
      form.elements.steps.value = values.length;
    }
    const found = await ask("sample/stream", values, signal, (name, frame) => { if (name === "frame") { player.add(frame); } });
    settled = settledAt(player.frames.map((frame) => frame.symbols));
    player.draw(player.frames.length - 1);
    say(panel, `${found.network_calls} network calls.`);
    panel.querySelector(".status").append(make("span", ` The text: ${found.sample}`, { class: "unseen" }));
    const given = ["steps", "length", "sampler", "temperature", "seed"].filter((name) => values[name] !== undefined);
    return { path: "sample/stream", values, python: ["sample", ["", 1], ...given.map((name) => [name, values[name]])] };
  });
  act(panel, "again").addEventListener("click", () => {
    newSeed(form);
    const isRunning = form.querySelector('[type="submit"]').textContent === "Stop";
    if (isRunning) { form.addEventListener("ended", () => form.requestSubmit(), { once: true }); }
    form.requestSubmit(); // stops a drawing that runs
  });
  return true;
}
