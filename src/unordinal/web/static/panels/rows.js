// Synthetic rows of a table, which satisfy conditions.
import { ask, chosen, make, offer, onSend, part, say } from "../parts.js";

const SEPARATOR = /;|,(?=[^,;]*[=<>])/; // a comma too, where another condition follows
const FEW = 12; // classes of a column that is shown as an example of a condition

export function startRows(models) {
  const panel = document.getElementById("rows");
  const able = offer(panel, models.filter((model) => model.columns.length > 0));
  if (able.length === 0) { return false; }
  const form = panel.querySelector("form");
  const suit = () => {
    const few = chosen(panel, able).columns.filter((one) => one.classes.length > 1 && one.classes.length <= FEW);
    part(panel, "columns").replaceChildren(...chosen(panel, able).columns.map((one) => {
      const item = make("li"), values = one.classes.length <= FEW ? one.classes.join(", ") : "";
      item.append(make("b", one.name), values ? `: ${values}` : "");
      return item;
    }));
    form.elements.where.placeholder = few.slice(0, 2).map((one) => `${one.name}=${one.classes[0]}`).join("; ");
  };
  form.elements.model.addEventListener("change", suit);
  suit();
  onSend(panel, async (given, signal, onProgress) => {
    const { where, ...values } = given;
    if (where) { values.where = where.split(SEPARATOR).map((condition) => condition.trim()).filter((condition) => condition); }
    part(panel, "view").replaceChildren();
    const found = await ask("sample", values, signal, onProgress);
    const names = chosen(panel, able).columns.map((column) => column.name), head = make("tr");
    head.append(...names.map((name) => make("th", name, { scope: "col" })));
    const rows = found.samples.map((sample) => {
      const row = make("tr");
      row.append(...names.map((name) => make("td", sample[name] === null ? "" : String(sample[name]))));
      return row;
    });
    part(panel, "view").replaceChildren(head, ...rows);
    say(panel, `${found.samples.length} rows.`);
    const extra = values.where ? [["where", values.where]] : [];
    return { path: "sample", values, python: ["sample", ["", values.num], ...extra, ["seed", values.seed]] };
  });
  return true;
}
