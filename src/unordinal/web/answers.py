"""What the server answers: the same requests as the command line's, for the models that are served."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor

from unordinal.api import Run
from unordinal.data.tables import records
from unordinal.evaluate.pictures import INVALID, palette_of
from unordinal.evaluate.report import shown_time
from unordinal.names import unknown
from unordinal.pretrained import PREFIX, description_of
from unordinal.tasks.asking import Sample, model_settings
from unordinal.tasks.correcting import Correct
from unordinal.tasks.drawing import sample
from unordinal.tasks.filling import Fill, FillMap, fill_map, proposals_of
from unordinal.tasks.lines import Measure
from unordinal.web.jobs import Job
from unordinal.web.reading import Wanted

MOST_FRAMES = 128  # of a chain


@dataclass(frozen=True)
class Answers:
    """The models that are served, by name, and the answers to requests."""

    runs: Mapping[str, Run]

    def models(self) -> dict[str, Any]:
        """Describe every model: its data, and what it can do."""
        return {"models": [described(name, run) for name, run in self.runs.items()]}

    def chosen(self, wanted: Wanted, task: str, *, prefer: Callable[[Run], bool] = bool) -> Run:
        """Return the model that is wanted, or the first that can do a task; those that suit it best come first."""
        name, block = wanted
        if name is not None:
            for known in (name, f"{PREFIX}{name}"):
                if known in self.runs:
                    return self.runs[known] if block is None else self.runs[known].at(block)
            raise unknown("model", name[:60], self.runs)
        runs = list(self.runs.values())
        if block is not None:
            runs = [run.at(block) for run in runs if run.model.blocks is not None]
        able = [run for run in runs if tasks_of(run)[task]]
        if able:
            return next((run for run in able if prefer(run)), able[0])
        raise ValueError(f"no model is served that can do this ({task}); see /api/v1/models")

    def sample(self, wanted: Wanted, asked: Sample, job: Job) -> dict[str, Any]:
        """Draw samples."""
        run = self.chosen(wanted, "sample")
        drawn = sample(run.model, run.spec, replace(asked, progress=job.progress))
        shown = run.shown(drawn)
        shown = records(shown) if run.spec.schema else shown if run.vocabulary else shown.tolist()
        made = {"network_calls": drawn.network_calls, "steps": drawn.steps}
        return {"samples": shown, **made, "invalid_codes": drawn.num_invalid, "seed": asked.seed}

    def stream(self, wanted: Wanted, asked: Sample, job: Job) -> dict[str, Any]:
        """Draw one sample and send every step of its chain as it is made."""
        run = self.chosen(wanted, "stream")
        if run.model.denoiser is None:
            raise ValueError("this model draws one symbol after another, without a chain of steps")
        asked = replace(asked, num=1, progress=job.progress)
        total = int(model_settings(run.model, run.spec, asked)["steps"] or 1)
        every, index = -(-total // MOST_FRAMES), 0
        last: tuple[float, Tensor] | None = None

        def send(t: float, x: Tensor) -> None:
            nonlocal index, last
            if index % every == 0:
                job.tell("frame", frame_of(run, index, t, x[0].cpu()))
                last = None
            else:
                last = (t, x[0].cpu())
            index += 1

        drawn = sample(run.model, run.spec, asked, on_state=send)
        if last is not None:
            job.tell("frame", frame_of(run, index - 1, *last))
        x = drawn.x[0]
        shown = run.spec.show(x) if run.vocabulary else x.tolist()
        return {"sample": shown, "network_calls": drawn.network_calls, "steps": total, "seed": asked.seed}

    def correct(self, wanted: Wanted, asked: Correct, job: Job) -> dict[str, Any]:
        """Correct mistyped letters."""
        needs = {"pass": "correct_pass", "beam": "correct_beam", None: "correct"}[asked.method]
        run = self.chosen(wanted, needs, prefer=is_exact)
        found = run.corrected(replace(asked, progress=job.progress))
        return {"text": found.text, "suggestions": [asdict(s) for s in found.suggestions]}

    def fill(self, wanted: Wanted, asked: Fill, job: Job) -> dict[str, Any]:
        """Fill the gaps of a text."""
        run = self.chosen(wanted, "fill", prefer=fills_best)
        exact = (r for r in self.runs.values() if r.model.is_exact and r.vocabulary == run.vocabulary)
        judge = None if run.model.is_exact else next(exact, None)
        found = run.filled(replace(asked, judge=judge, progress=job.progress))
        return {"kind": found.kind, "proposals": [asdict(p) for p in found.proposals], "seed": asked.seed}

    def fill_map(self, wanted: Wanted, asked: FillMap, job: Job) -> dict[str, Any]:
        """Fill the holes of a map."""
        run = self.chosen(wanted, "fill_map")
        x, scores = fill_map(run.model, run.spec, replace(asked, progress=job.progress))
        return {"proposals": proposals_of(x, scores), "seed": asked.seed}

    def bits(self, wanted: Wanted, asked: Measure, job: Job) -> dict[str, Any]:
        """Measure how surprising every line is."""
        run = self.chosen(wanted, "bits", prefer=is_exact)
        lines = run.measured(replace(asked, progress=job.progress))
        lines.sort(key=lambda line: -line.score)
        return {"unit": run.spec.unit, "lines": [line.to_dict() for line in lines]}


def is_exact(run: Run) -> bool:
    """Return whether a run has exact likelihoods."""
    return run.model.is_exact


def fills_best(run: Run) -> bool:
    """Return whether a run fills gaps better than an autoregressive model of characters does."""
    return not run.model.is_exact or (run.vocabulary is not None and run.vocabulary.kind == "tokens")


def tasks_of(run: Run) -> dict[str, bool]:
    """Return which of the server's tasks a run can do."""
    model = run.model
    is_text = run.vocabulary is not None and not run.spec.is_map
    has_characters = is_text and run.vocabulary is not None and run.vocabulary.kind != "tokens"
    corrects = model.denoiser is not None and model.denoiser.posterior is not None
    fills = (model.orders is not None or model.is_exact) and (model.denoiser is not None or model.stepper is not None)
    return {
        "sample": True,
        "stream": model.denoiser is not None,
        "correct": has_characters and (corrects or model.stepper is not None),
        "correct_pass": has_characters and corrects,
        "correct_beam": has_characters and model.stepper is not None,
        "fill": fills and not corrects and (has_characters or (is_text and model.stepper is not None)),
        "fill_map": run.spec.is_map and fills,
        "bits": is_text,
    }


def described(name: str, run: Run) -> dict[str, Any]:
    """Describe a model for a client."""
    model, denoiser = run.model, run.model.denoiser
    values: dict[str, Any] = {
        "name": name,
        "description": description_of(name),
        "recipe": run.config.recipe,
        "parameters": sum(p.numel() for p in model.parameters()),
        "unit": run.spec.unit,
        "is_exact": model.is_exact,
        "num_classes": run.spec.num_classes,
        "event_shape": list(run.spec.event_shape),
        "alphabet": None if run.vocabulary is None else run.vocabulary.kind,
        "tasks": [task for task, is_able in tasks_of(run).items() if is_able],
        "samplers": [] if denoiser is None else list(denoiser.samplers),
        "blocks": [] if model.blocks is None else list(model.blocks.sizes),
        "has_ends": run.spec.ends,
        "labels": [asdict(label) for label in run.spec.labels],
        "columns": [{"name": column.name, "classes": list(column.classes)} for column in run.spec.schema],
        "has_prompt": model.stepper is not None,
        "has_positions": model.stepper is not None,
        "whole_steps": None if denoiser is None else denoiser.whole_calls(None, model.event_shape.numel()),
    }
    if run.spec.is_map:
        values["colours"] = [colour for _, colour in (*palette_of(run.spec), INVALID)]
        values["classes"] = [label for label, _ in palette_of(run.spec)]
    return values


def frame_of(run: Run, index: int, t: float, x: Tensor) -> dict[str, Any]:
    """Return one step of a chain: the symbols of a text, or the classes of a map."""
    frame: dict[str, Any] = {"index": index, "t": shown_time(t)}
    if run.spec.is_map:
        return {**frame, "map": x.clamp(max=run.spec.num_classes).tolist()}
    return {**frame, "symbols": [run.spec.show_noisy(symbol.reshape(1)) for symbol in x]}
