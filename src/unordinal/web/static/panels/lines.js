// Lines of different lengths, such as names or molecules, with labels where the model has them.
import { ask, chosen, make, offer, onSend, part, say } from "../parts.js";

export function startLines(models) {
  const panel = document.getElementById("lines");
  const able = offer(panel, models.filter((model) => model.has_ends && model.alphabet));
  if (able.length === 0) { return false; }
  const form = panel.querySelector("form"), labels = part(panel, "labels");
  const suit = () => {
    labels.replaceChildren(...chosen(panel, able).labels.map((label) => {
      const box = make("label", `${label.name} `), select = make("select", "", { name: `label.${label.name}` });
      select.append(make("option", "any", { value: "" }), ...label.values.map((value) => make("option", value, { value })));
      box.append(select);
      return box;
    }));
    form.elements.guidance.disabled = chosen(panel, able).labels.length === 0;
  };
  form.elements.model.addEventListener("change", suit);
  suit();
  onSend(panel, async (given, signal, onProgress) => {
    const named = Object.entries(given).filter(([name]) => name.startsWith("label."));
    const values = Object.fromEntries(Object.entries(given).filter(([name]) => !name.startsWith("label.")));
    if (named.length) { values.label = named.map(([name, value]) => `${name.slice(6)}=${value}`); } else { delete values.guidance; }
    part(panel, "view").replaceChildren();
    const found = await ask("sample", values, signal, onProgress);
    part(panel, "view").replaceChildren(...found.samples.map((text) => make("li", text)));
    say(panel, `${found.samples.length} lines, ${new Set(found.samples).size} different.`);
    const python = ["sample", ["", values.num], ...["label", "guidance", "temperature", "seed"].filter((name) => values[name] !== undefined).map((name) => [name, values[name]])];
    return { path: "sample", values, python };
  });
  return true;
}
