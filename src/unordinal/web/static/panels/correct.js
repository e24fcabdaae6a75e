// A text with suggestions, each of which can be rejected.
import { act, ask, make, offer, ofText, onSend, part, say, unitsOf } from "../parts.js";

export function startCorrect(models) {
  const panel = document.getElementById("correct");
  const able = offer(panel, ofText(models.filter((model) => model.tasks.includes("correct"))), (model) => model.tasks.includes("correct_beam"));
  if (able.length === 0) { return false; }
  const view = part(panel, "view"), detail = part(panel, "detail");
  let text = "", suggestions = [], accepted = [];
  const result = () => {
    let out = "", done = 0;
    suggestions.forEach((s, i) => {
      out += text.slice(done, s.from) + (accepted[i] ? s.new : s.old);
      done = s.from + s.old.length;
    });
    return out + text.slice(done);
  };
  const describe = (s, i) => `“${s.old}” to “${s.new}”, confidence ${s.confidence.toFixed(2)}, ${accepted[i] ? "accepted" : "rejected"}`;
  const draw = () => {
    const parts = [];
    let done = 0;
    suggestions.forEach((s, i) => {
      parts.push(document.createTextNode(text.slice(done, s.from)));
      const button = make("button", "", { type: "button", class: "suggestion", "aria-pressed": String(accepted[i]), title: describe(s, i) });
      button.append(make("del", s.old === " " ? "␣" : s.old), make("ins", s.new === " " ? "␣" : s.new));
      button.setAttribute("aria-label", describe(s, i));
      button.addEventListener("click", () => { accepted[i] = !accepted[i]; draw(); view.querySelectorAll("button")[i].focus(); });
      for (const kind of ["focus", "mouseenter"]) { button.addEventListener(kind, () => { detail.textContent = describe(s, i); }); }
      parts.push(button);
      done = s.from + s.old.length;
    });
    parts.push(document.createTextNode(text.slice(done)));
    view.replaceChildren(...parts);
    part(panel, "after").hidden = suggestions.length === 0;
    const num = suggestions.length, kept = accepted.filter((value) => value).length;
    const what = num === 1 ? "1 suggestion" : `${num} suggestions`;
    say(panel, num === 0 ? (/[a-z]/i.test(text) ? "No suggestion." : "There are no letters a to z, which are all that the model reads.") : `${what}, ${kept} accepted. Press one to reject it, and again to accept it.`);
  };
  onSend(panel, async (values, signal, onProgress) => {
    detail.textContent = "";
    view.replaceChildren();
    part(panel, "after").hidden = true;
    const found = await ask("correct", values, signal, onProgress);
    text = values.text;
    suggestions = found.suggestions.map((s) => ({ ...s, from: unitsOf(text, s.start) }));
    accepted = suggestions.map(() => true);
    draw();
    const given = [["threshold", values.threshold], ["careful", values.careful]];
    return { path: "correct", values, python: ["correct", ["", values.text], ...given] };
  });
  act(panel, "copy").addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(result()); say(panel, "Copied."); } catch { say(panel, result()); }
  });
  const decide = (value) => { accepted = accepted.map(() => value); draw(); };
  act(panel, "all").addEventListener("click", () => decide(true));
  act(panel, "none").addEventListener("click", () => decide(false));
  return true;
}
