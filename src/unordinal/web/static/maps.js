// The panel for models of maps: a map settles out of noise, a region is erased, and the model fills it.
import { Player, make, offer, onSend, part, post, say, stream } from "./page.js";

/** Draw rows of classes; -1 is an erased pixel. */
function paint(canvas, rows, colours) {
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  const context = canvas.getContext("2d");
  rows.forEach((row, y) => row.forEach((value, x) => {
    context.fillStyle = value < 0 ? ((x + y) % 2 ? "#888888" : "#bbbbbb") : colours[value];
    context.fillRect(x, y, 1, 1);
  }));
}

export function startMaps(models) {
  const panel = document.getElementById("maps");
  const maps = models.filter((model) => model.event_shape.length === 2);
  const able = offer(panel, maps, "sample", (model) => model.tasks.includes("fill_map"));
  if (able.length === 0) { return; }
  const form = panel.querySelector("form"), canvas = part(panel, "view"), region = part(panel, "region");
  const proposals = part(panel, "proposals"), key = part(panel, "key");
  const chosen = () => able.find((model) => model.name === form.elements.model.value);
  const field = (name) => region.querySelector(`[name="${name}"]`);
  const button = (name) => region.querySelector(`[data-act="${name}"]`);
  let map = null;
  const player = new Player(panel, (index) => paint(canvas, player.frames[index].map, chosen().colours));
  const showKey = () => {
    key.replaceChildren(...chosen().classes.map((name, index) => {
      const item = make("li", name);
      item.style.setProperty("--colour", chosen().colours[index]);
      return item;
    }));
  };
  form.elements.model.addEventListener("change", showKey);
  showKey();
  onSend(panel, async (values, signal) => {
    const model = chosen();
    player.clear();
    proposals.replaceChildren();
    canvas.hidden = false;
    if (model.tasks.includes("stream")) {
      await stream("sample/stream", values, signal, (name, found) => {
        if (name === "frame") { player.add(found); }
        if (name === "done") { map = found.sample; say(panel, `${found.network_calls} network calls.`); }
      });
    } else {
      delete values.steps;
      map = (await post("sample", values, signal)).samples[0];
      paint(canvas, map, model.colours);
      say(panel, "Done.");
    }
    region.hidden = !model.tasks.includes("fill_map");
    button("fill").disabled = true;
  });
  const erase = () => {
    if (!map) { return; }
    const [top, left, height, width] = ["top", "left", "height", "width"].map((name) => Number(field(name).value));
    player.stop();
    map = map.map((row, y) => row.map((value, x) => (y >= top && y < top + height && x >= left && x < left + width ? -1 : value)));
    paint(canvas, map, chosen().colours);
    const erased = map.flat().filter((value) => value < 0).length;
    button("fill").disabled = erased === 0;
    say(panel, erased ? `${erased} pixels erased.` : "The region lies outside the map.", erased === 0);
  };
  button("erase").addEventListener("click", erase);
  button("fill").addEventListener("click", async () => {
    say(panel, "Computing …");
    button("fill").disabled = true;
    try {
      const found = await post("fill/map", { model: chosen().name, map, num: 4, seed: Number(form.elements.seed.value) });
      proposals.replaceChildren(...found.proposals.map((proposal, index) => {
        const item = make("li"), picture = make("canvas", "", { role: "img", "aria-label": `Proposal ${index + 1}` });
        paint(picture, proposal.map, chosen().colours);
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
}
