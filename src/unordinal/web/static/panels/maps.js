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
  let map = null, earlier = []; // the map as shown, and as it was before each change
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
  const replaceMap = (changed) => {
    earlier.push(map);
    map = changed;
    draw();
  };
  const draw = () => {
    player.stop();
    paint(canvas, map, model().colours);
    button("fill").disabled = !map.flat().some((value) => value < 0);
    button("undo").disabled = earlier.length === 0;
  };
  const run = onSend(panel, async (values, signal, onProgress) => {
    player.clear();
    proposals.replaceChildren();
    earlier = [];
    canvas.hidden = false;
    const isStream = model().tasks.includes("stream"), path = isStream ? "sample/stream" : "sample";
    if (!isStream) { delete values.steps; }
    const found = await ask(path, values, signal, (name, value) => {
      if (name === "frame") { player.add(value); } else { onProgress(name, value); }
    });
    map = isStream ? found.sample : found.samples[0];
    draw();
    say(panel, `${found.network_calls} network calls.`);
    region.hidden = !model().tasks.includes("fill_map");
    const given = isStream ? [["steps", values.steps], ["seed", values.seed]] : [["seed", values.seed]];
    return { path, values, python: ["sample", ["", 1], ...given] };
  });
  const erase = () => {
    if (!map) { return; }
    const [top, left, height, width] = ["top", "left", "height", "width"].map((name) => Number(field(name).value));
    let erased = 0;
    const changed = map.map((row, y) => row.map((value, x) => {
      const isInside = y >= top && y < top + height && x >= left && x < left + width;
      erased += isInside;
      return isInside ? -1 : value;
    }));
    if (erased === 0) { say(panel, `The region lies outside the map, which has ${map.length} rows and ${map[0].length} columns of pixels.`, true); return; }
    proposals.replaceChildren();
    replaceMap(changed);
    say(panel, `${erased} pixels erased. Press Fill.`);
  };
  button("erase").addEventListener("click", erase);
  button("undo").addEventListener("click", () => { map = earlier.pop(); draw(); say(panel, "Undone."); });
  button("fill").addEventListener("click", () => run(async (given, signal, onProgress) => {
    proposals.replaceChildren();
    const hole = map, { steps, seed } = given, values = { model: model().name, map: hole, num: 4, steps, seed };
    const found = await ask("fill/map", values, signal, onProgress);
    proposals.replaceChildren(...found.proposals.map((proposal, index) => {
      const item = make("li"), choose = make("button", "", { type: "button", "aria-label": `Put proposal ${index + 1} into the map` });
      const picture = make("canvas");
      paint(picture, proposal.map, model().colours);
      choose.append(picture);
      choose.addEventListener("click", () => { replaceMap(proposal.map); say(panel, "Put into the map."); });
      item.append(choose);
      return item;
    }));
    say(panel, `${found.proposals.length} proposals. Press one to put it into the map.`);
    return { path: "fill/map", values, python: ["fill_map", ["", hole], ["num", 4], ["steps", steps], ["seed", seed]] };
  }));
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - box.top) / box.height * canvas.height), Math.floor((event.clientX - box.left) / box.width * canvas.width)];
  };
  let from = null;
  canvas.addEventListener("pointerdown", (event) => { if (!region.hidden) { from = place(event); canvas.setPointerCapture(event.pointerId); } });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) { return; }
    const to = place(event), context = canvas.getContext("2d");
    paint(canvas, map, model().colours);
    context.fillStyle = "#ffffffb0";
    context.fillRect(Math.min(from[1], to[1]), Math.min(from[0], to[0]), Math.abs(to[1] - from[1]) + 1, Math.abs(to[0] - from[0]) + 1);
  });
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
