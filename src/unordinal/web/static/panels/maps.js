// A map settles out of noise, a region of it is erased, and the model fills it.
import { ask, chosen, make, offer, onSend, part, say } from "../parts.js";
import { Player, paint } from "../player.js";

export function startMaps(models) {
  const panel = document.getElementById("maps");
  const able = offer(panel, models.filter((model) => model.event_shape.length === 2), (model) => model.tasks.includes("fill_map"));
  if (able.length === 0) { return false; }
  const form = panel.querySelector("form"), canvas = part(panel, "view"), region = part(panel, "region");
  const proposals = part(panel, "proposals"), key = part(panel, "key");
  const model = () => chosen(panel, able);
  const field = (name) => region.querySelector(`[name="${name}"]`);
  const button = (name) => region.querySelector(`[data-act="${name}"]`);
  let map = null;
  const player = new Player(panel.querySelector(".player"), (index) => paint(canvas, player.frames[index].map, model().colours));
  form.addEventListener("ended", () => player.ready());
  const showKey = () => {
    key.replaceChildren(...model().classes.map((name, index) => {
      const item = make("li", name);
      item.style.setProperty("--colour", model().colours[index]);
      return item;
    }));
  };
  form.elements.model.addEventListener("change", showKey);
  showKey();
  onSend(panel, async (values, signal, onProgress) => {
    player.clear();
    proposals.replaceChildren();
    canvas.hidden = false;
    const isStream = model().tasks.includes("stream"), path = isStream ? "sample/stream" : "sample";
    if (!isStream) { delete values.steps; }
    const found = await ask(path, values, signal, (name, value) => {
      if (name === "frame") { player.add(value); } else { onProgress(name, value); }
    });
    map = isStream ? found.sample : found.samples[0];
    paint(canvas, map, model().colours);
    say(panel, `${found.network_calls} network calls.`);
    region.hidden = !model().tasks.includes("fill_map");
    button("fill").disabled = true;
    const given = isStream ? [["steps", values.steps], ["seed", values.seed]] : [["seed", values.seed]];
    return { path, values, python: ["sample", ["", 1], ...given] };
  });
  const erase = () => {
    if (!map) { return; }
    const [top, left, height, width] = ["top", "left", "height", "width"].map((name) => Number(field(name).value));
    player.stop();
    map = map.map((row, y) => row.map((value, x) => (y >= top && y < top + height && x >= left && x < left + width ? -1 : value)));
    paint(canvas, map, model().colours);
    const erased = map.flat().filter((value) => value < 0).length;
    button("fill").disabled = erased === 0;
    say(panel, erased ? `${erased} pixels erased.` : "The region lies outside the map.", erased === 0);
  };
  button("erase").addEventListener("click", erase);
  button("fill").addEventListener("click", async () => {
    say(panel, "Computing …");
    button("fill").disabled = true;
    try {
      const found = await ask("fill/map", { model: model().name, map, num: 4, seed: Number(form.elements.seed.value) });
      proposals.replaceChildren(...found.proposals.map((proposal, index) => {
        const item = make("li"), picture = make("canvas", "", { role: "img", "aria-label": `Proposal ${index + 1}` });
        paint(picture, proposal.map, model().colours);
        item.append(picture, make("small", `${proposal.log_prob.toFixed(1)} nats`));
        return item;
      }));
      say(panel, `${found.proposals.length} proposals, the likeliest first.`);
    } catch (error) {
      say(panel, error.message, true);
    }
    button("fill").disabled = false;
  });
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - box.top) / box.height * canvas.height), Math.floor((event.clientX - box.left) / box.width * canvas.width)];
  };
  let from = null;
  canvas.addEventListener("pointerdown", (event) => { if (!region.hidden) { from = place(event); canvas.setPointerCapture(event.pointerId); } });
  canvas.addEventListener("pointerup", (event) => {
    if (!from) { return; }
    const to = place(event);
    field("top").value = Math.max(0, Math.min(from[0], to[0]));
    field("left").value = Math.max(0, Math.min(from[1], to[1]));
    field("height").value = Math.abs(to[0] - from[0]) + 1;
    field("width").value = Math.abs(to[1] - from[1]) + 1;
    from = null;
    erase();
  });
  return true;
}
