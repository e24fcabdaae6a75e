// How surprising every letter of a text is.
import { ask, chosen, make, offer, ofText, onSend, part, say } from "../parts.js";

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
  const able = offer(panel, ofText(models.filter((model) => model.tasks.includes("bits"))), (model) => model.has_positions);
  if (able.length === 0) { return false; }
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
    const letters = lines.reduce((total, line) => total + [...line.symbols].length, 0);
    const notes = [lines.length > 1 ? `${letters} letters, ${sum.toFixed(1)} bits in all.` : `${letters} letters.`];
    if (chosen(panel, able).alphabet === "tokens" && lines.some((line) => line.positions)) { notes.push("This model reads pieces of words; each letter has an equal part of the bits of its piece."); }
    if (lines.some((line) => !line.positions)) { notes.push("This model gives an upper bound of the bits of a whole line, with its error (±); it has none for single letters."); }
    if (lines.some((line) => line.symbols !== line.text)) { notes.push("Capitals and accents were read as plain letters, everything else (digits, commas, line ends) as spaces."); }
    say(panel, notes.join(" "));
    return { path: "bits", values, python: ["bits", ["", values.text.split("\n")]] };
  });
  return true;
}
