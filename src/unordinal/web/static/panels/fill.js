// Proposals for the gaps of a text.
import { act, ask, make, offer, ofText, onSend, part, say } from "../parts.js";

export function startFill(models) {
  const panel = document.getElementById("fill");
  const fills = ofText(models.filter((model) => model.tasks.includes("fill")));
  if (offer(panel, fills, (model) => model.alphabet === "tokens" || !model.is_exact).length === 0) { return false; }
  const form = panel.querySelector("form"), view = part(panel, "view"), undo = act(panel, "undo");
  let withGaps = "";
  onSend(panel, async (values, signal, onProgress) => {
    view.replaceChildren();
    const found = await ask("fill", values, signal, onProgress);
    withGaps = values.text;
    undo.hidden = true;
    const gaps = [...withGaps];
    const best = Math.max(...found.proposals.map((proposal) => proposal.log_prob));
    const weights = found.proposals.map((proposal) => Math.exp(proposal.log_prob - best));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    view.replaceChildren(...found.proposals.map((proposal, index) => {
      const item = make("li"), button = make("button", "", { type: "button", title: "Put this into the text" });
      [...proposal.text].forEach((letter, place) => {
        button.append(gaps[place] === "_" ? make("mark", letter) : document.createTextNode(letter));
      });
      button.addEventListener("click", () => { form.elements.text.value = proposal.text; undo.hidden = false; say(panel, "Put into the text."); });
      const share = `${(100 * weights[index] / sum).toFixed(0)} %`;
      item.append(button, make("small", share, { title: `log-probability ${proposal.log_prob.toFixed(2)} nats (${found.kind})` }));
      return item;
    }));
    say(panel, `${found.proposals.length} proposals. The percentages compare these proposals with each other.`);
    return { path: "fill", values, python: ["fill", ["", values.text], ["num", values.num], ["seed", values.seed]] };
  });
  undo.addEventListener("click", () => { form.elements.text.value = withGaps; undo.hidden = true; form.elements.text.focus(); });
  return true;
}
