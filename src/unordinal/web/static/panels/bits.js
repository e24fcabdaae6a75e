// How surprising every letter of a text is.
import { ask, make, offer, onSend, part, say } from "../parts.js";

const STEPS = [1, 2, 4, 6, 9]; // bits at which the colour changes
const levelOf = (bits) => STEPS.filter((step) => bits >= step).length;

/** The letters of a line in colours, with their bits below them. */
function cellsOf(line) {
  const cells = make("ol", "", { class: "cells", "aria-label": "Letters and their bits" });
  [...line.symbols].forEach((symbol, place) => {
    const bits = line.positions[place];
    const cell = make("li", "", { class: `level${levelOf(bits)}` });
    cell.append(make("b", symbol === " " ? "␣" : symbol), make("small", bits.toFixed(1)));
    cells.append(cell);
  });
  return cells;
}

export function startBits(models) {
  const panel = document.getElementById("bits");
  if (offer(panel, models.filter((model) => model.tasks.includes("bits")), (model) => model.has_positions).length === 0) { return false; }
  onSend(panel, async (values, signal, onProgress) => {
    part(panel, "view").replaceChildren();
    const found = await ask("bits", values, signal, onProgress);
    const lines = [...found.lines].sort((a, b) => a.line - b.line);
    part(panel, "view").replaceChildren(...lines.flatMap((line) => {
      const error = line.error === null ? "" : ` ± ${line.error.toFixed(1)}`;
      const sum = `${line.bits.toFixed(1)}${error} bits, ${line.bits_per_symbol.toFixed(2)} per letter`;
      const head = make("h3", found.lines.length > 1 ? `Line ${line.line}: ${sum}` : sum);
      return [head, line.positions ? cellsOf(line) : make("p", line.symbols, { class: "mono" })];
    }));
    const sum = found.lines.reduce((total, line) => total + line.bits, 0);
    const notes = [`${sum.toFixed(1)} bits in all.`];
    if (lines.some((line) => !line.positions)) { notes.push("This model bounds the bits of a whole line, with an error (±); it has none for single letters."); }
    if (lines.some((line) => line.symbols !== line.text)) { notes.push("Capitals and accents were read as plain letters, everything else (digits, commas, line ends) as spaces."); }
    say(panel, notes.join(" "));
    return { path: "bits", values, python: ["bits", ["", values.text.split("\n")]] };
  });
  return true;
}
