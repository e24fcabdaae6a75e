"""What the server answers: the same calls as the command line's, for the models that are served."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from unordinal.api import Run, reverse_steps
from unordinal.evaluate.pictures import INVALID, palette_of
from unordinal.evaluate.report import shown_time
from unordinal.names import unknown
from unordinal.tasks.drawing import check_able, draw
from unordinal.tasks.filling import fill
from unordinal.tasks.lines import score_lines
from unordinal.web.jobs import Job
from unordinal.web.requests import BitsRequest, CorrectRequest, FillMapRequest, FillRequest, SampleRequest

MOST_FRAMES = 128  # of a chain
SHARED_RANDOM = threading.Lock()  # bounds draw from torch's global generator: one at a time


@dataclass(frozen=True)
class Answers:
    """The models that are served, by name, and what can be asked of them."""

    runs: Mapping[str, Run]

    def models(self) -> dict[str, Any]:
        """Describe every model: its data, and what it can do."""
        return {"models": [described(name, run) for name, run in self.runs.items()]}

    def chosen(self, name: str | None, task: str, *, exact: bool | None = None) -> Run:
        """Return the model of this name, or the first that can do a task; one that is `exact`, or not, comes first."""
        if name is not None:
            if name not in self.runs:
                raise unknown("model", name[:60], self.runs)
            return self.runs[name]
        able = [run for run in self.runs.values() if tasks_of(run)[task]]
        if able:
            return next((run for run in able if run.model.is_exact is exact), able[0])
        raise ValueError(f"no model is served that can do this ({task}); see /api/v1/models")

    def sample(self, asked: SampleRequest, job: Job) -> dict[str, Any]:
        """Draw samples."""
        run = self.chosen(asked.model, "sample")
        settings = settings_of(run, asked)
        drawn = draw(run.model, asked.num, seed=asked.seed, progress=job.progress, **settings)
        shown = [run.spec.show(x) for x in drawn.x] if run.vocabulary else drawn.x.tolist()
        made = {"network_calls": drawn.network_calls, "steps": settings.get("steps") or run.model.abilities.steps}
        return {"samples": shown, **made, "invalid_codes": drawn.num_invalid, "seed": asked.seed}

    def stream(self, asked: SampleRequest, job: Job) -> dict[str, Any]:
        """Draw one sample and tell every step of its chain as it is made."""
        run = self.chosen(asked.model, "stream")
        check_able(run.model.abilities, {"chain": True}, "this model draws one symbol after another")
        settings = settings_of(run, asked)
        total = int(settings["steps"] or run.model.abilities.steps or 1)
        every, index = -(-total // MOST_FRAMES), 0
        last: tuple[float, Tensor] | None = None

        def tell(t: float, x: Tensor) -> None:
            nonlocal index, last
            if index % every == 0:
                job.tell("frame", frame_of(run, index, t, x[0].cpu()))
                last = None
            else:
                last = (t, x[0].cpu())
            index += 1

        drawn = draw(run.model, 1, seed=asked.seed, progress=job.progress, on_state=tell, **settings)
        if last is not None:
            job.tell("frame", frame_of(run, index - 1, *last))
        x = drawn.x[0]
        shown = run.spec.show(x) if run.vocabulary else x.tolist()
        return {"sample": shown, "network_calls": drawn.network_calls, "steps": total, "seed": asked.seed}

    def correct(self, asked: CorrectRequest, job: Job) -> dict[str, Any]:
        """Correct mistyped letters."""
        needs = {"pass": "correct_pass", "beam": "correct_beam", None: "correct"}[asked.method]
        run = self.chosen(asked.model, needs, exact=False)
        found = run.correct(
            asked.text,
            error_rate=asked.error_rate,
            threshold=asked.threshold,
            method=asked.method,
            passes=asked.passes,
            beam=asked.beam,
            progress=job.progress,
        )
        return {"text": found.text, "suggestions": [asdict(s) for s in found.suggestions]}

    def fill(self, asked: FillRequest, job: Job) -> dict[str, Any]:
        """Fill the gaps of a text."""
        run = self.chosen(asked.model, "fill", exact=False)
        exact = (r for r in self.runs.values() if r.model.is_exact and r.vocabulary == run.vocabulary)
        judge = None if run.model.is_exact else next(exact, None)
        found = run.fill(asked.text, gap=asked.gap, num=asked.num, judge=judge, seed=asked.seed, progress=job.progress)
        return {"kind": found.kind, "proposals": [asdict(p) for p in found.proposals], "seed": asked.seed}

    def fill_map(self, asked: FillMapRequest, job: Job) -> dict[str, Any]:
        """Fill the holes of a map."""
        run = self.chosen(asked.model, "fill_map")
        if not run.spec.is_map:
            raise ValueError("this model is one of sequences; maps need a model of maps")
        known = torch.tensor(asked.map)
        if known.shape != torch.Size(run.spec.event_shape):
            sizes = (" x ".join(map(str, shape)) for shape in (run.spec.event_shape, known.shape))
            raise ValueError("the maps of this model have {} pixels, got {}".format(*sizes))
        run.model.checked_known(known, 1, known.shape)
        x, scores = fill(run.model, known, num=asked.num, seed=asked.seed, progress=job.progress)
        values = [{"log_prob": score, "map": row.tolist()} for score, row in zip(scores.tolist(), x, strict=True)]
        return {"proposals": values, "seed": asked.seed}

    def bits(self, asked: BitsRequest, job: Job) -> dict[str, Any]:
        """Tell how surprising every line is."""
        run = self.chosen(asked.model, "bits", exact=True)
        with nullcontext() if run.model.abilities.sequential else alone(job):
            lines = score_lines(
                run.model, asked.text, run.text_vocabulary("bits"), seed=asked.seed, progress=job.progress
            )
        lines.sort(key=lambda line: -line.bits.per_symbol)
        values = [{**x.to_dict(), "symbols": x.symbols, "positions": x.bits.positions} for x in lines]
        return {"unit": run.spec.unit, "lines": values}


@contextmanager
def alone(job: Job) -> Iterator[None]:
    """Wait until no other job uses torch's global generator, or until this one is to stop."""
    while not SHARED_RANDOM.acquire(timeout=0.1):
        job.check()
    try:
        yield
    finally:
        SHARED_RANDOM.release()


def tasks_of(run: Run) -> dict[str, bool]:
    """Return which of the server's tasks a run can do."""
    can = run.model.abilities
    is_text = run.vocabulary is not None and not run.spec.is_map
    ranks = can.orders or run.model.is_exact
    return {
        "sample": True,
        "stream": can.chain,
        "correct": is_text and (can.noisy_conditionals or can.sequential),
        "correct_pass": is_text and can.noisy_conditionals,
        "correct_beam": is_text and can.sequential,
        "fill": is_text and can.known and not can.noisy_conditionals and ranks,
        "fill_map": run.spec.is_map and can.known and ranks,
        "bits": is_text,
    }


def described(name: str, run: Run) -> dict[str, Any]:
    """Describe a model for a client."""
    can = run.model.abilities
    values: dict[str, Any] = {
        "name": name,
        "recipe": run.config.recipe,
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "unit": run.spec.unit,
        "is_exact": run.model.is_exact,
        "num_classes": run.spec.num_classes,
        "event_shape": list(run.spec.event_shape),
        "alphabet": None if run.vocabulary is None else run.vocabulary.kind,
        "tasks": [task for task, is_able in tasks_of(run).items() if is_able],
        "samplers": list(can.samplers),
        "has_prompt": can.prompt,
        "has_positions": can.sequential,
        "whole_steps": can.steps,
    }
    if run.spec.is_map:
        values["colours"] = [colour for _, colour in (*palette_of(run.spec), INVALID)]
        values["classes"] = [label for label, _ in palette_of(run.spec)]
    return values


def settings_of(run: Run, asked: SampleRequest) -> dict[str, Any]:
    """Return what to pass on to the model; what it has no use for is refused."""
    can = run.model.abilities
    given = {
        "steps": asked.steps is not None,
        "sampler": asked.sampler is not None,
        "top_p": asked.top_p != 1.0,
        "temperature": asked.temperature != 1.0,
        "prompt": asked.prompt is not None,
    }
    check_able(can, given, f"this model is of {run.config.recipe}")
    settings: dict[str, Any] = {}
    if asked.length is not None:
        if run.spec.is_map:
            raise ValueError("`length` is for sequences, and this is a model of maps")
        settings["event_shape"] = (asked.length,)
    if can.chain:
        settings["steps"] = reverse_steps(asked.steps, can.steps)
    if can.samplers:
        settings |= {"sampler": asked.sampler, "top_p": asked.top_p}
    if can.temperature:
        settings["temperature"] = asked.temperature
    if asked.prompt is not None:
        if run.vocabulary is None:
            raise ValueError(f"`prompt` is for text; the classes of {run.spec.name} have no characters")
        settings["prompt"] = run.vocabulary.encode(asked.prompt)
    return settings


def frame_of(run: Run, index: int, t: float, x: Tensor) -> dict[str, Any]:
    """Return one step of a chain: the symbols of a text, or the classes of a map."""
    frame: dict[str, Any] = {"index": index, "t": shown_time(t)}
    if run.spec.is_map:
        return {**frame, "map": x.clamp(max=run.spec.num_classes).tolist()}
    return {**frame, "symbols": [run.spec.show_noisy(symbol.reshape(1)) for symbol in x]}
