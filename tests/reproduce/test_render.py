"""The report of a reproduction, made from results alone."""

import json
import re
from typing import Any

from unordinal.experiments import TABLES
from unordinal.reproduce.jobs import TIMES, Asked, jobs_of, parsed_data
from unordinal.reproduce.outcome import Outcome
from unordinal.reproduce.render import markdown, page, results_of, section_of
from unordinal.reproduce.show import in_digits

ASKED = Asked(("all",), data=parsed_data((), "tiny"))
MADE = {"date": "2026-01-02", "version": "0.1.0", "commit": "abc", "machine": {"cores": 2, "torch": "2.13.0"}}


def score(value: float, kind: str = "elbo") -> dict[str, Any]:
    values = {"bits_per_dim": value, "nats_per_example": 2 * value, "standard_error": 0.012}
    return {**values, "kind": kind, "num_examples": 1234}


def result(number: int, job: Any) -> dict[str, Any]:
    """Return a result as a worker writes it."""
    shown: dict[str, Any] = {"samples": [f"sample {number}"], "chain": [["1", "···"], ["0", "the"]]}
    if job.task == "cityscapes":
        import numpy as np

        shown = {"maps": [in_digits(np.full((32, 64), number % 8))] * 2}
    elif job.task == "toy":
        shown = {"probabilities": {name: [[0, 1000], [500, 0]] for name in ("data", "model", "samples")}}
    elif job.experiment.endswith("multinomial"):
        shown["spelling"] = {"truth": "the", "typed": "tge", "corrected": "the"}
    return {
        "scores": {"elbo": score(1 + number / 1000), "iwbo": score(0.9 + number / 1000, "iwbo-1000")},
        "trained": {"steps": 321, "seconds": 9.0, "parameters": 5}, "shown": shown if job.shown else {},
        "data": {"num_classes": 8, "categories": []}, "command": job.command(), **MADE,
    }  # fmt: skip


def outcome() -> Outcome:
    """Return results of all rows but one that failed, one that is stale and one that was not run."""
    jobs = [job for job in jobs_of(ASKED) if job.key != TIMES]
    results = {job.key: result(number, job) for number, job in enumerate(jobs)}
    failed, stale, missing = (job.key for job in jobs[:3])
    del results[failed], results[missing]
    timing = {"preset": "text8/arm", "variant": "", "mean": 0.123, "deviation": 0.004}
    results[TIMES] = {"times": [timing], "command": "unordinal bench sampling", **MADE}
    return Outcome(ASKED, results, {failed: "failed: ValueError: no", stale: "stale"})


def test_results_alone_make_the_same_report() -> None:
    whole = outcome()
    again = Outcome.from_dict(json.loads(json.dumps(whole.to_dict())))
    assert markdown(again) == markdown(whole)
    assert page(again).count(b"<img") == page(whole).count(b"<img") == 4


def test_every_row_stands_next_to_the_paper_s_figure() -> None:
    text = markdown(outcome())
    for table in TABLES.values():
        assert f"## {table.title}" in text
        for row in table.rows:
            assert row.title in text
            for figure in row.figures:
                assert re.search(rf"(?<![\d.]){figure.value:g}(?![\d.])", text), figure
    assert "failed: ValueError: no" in text
    assert "not run" in text
    assert "(stale)" in text
    assert "0.123 ± 0.004" in text
    assert text.count("unordinal train") > 20


def test_both_figures_of_a_contradiction_are_given() -> None:
    text = markdown(outcome())
    for words in ("0.305; 0.37 in the text", "1.38; 1.39 in the comparison", "1.82; 1.80 next to discrete flows"):
        assert words in text, words


def test_only_the_rows_that_were_asked_for_are_shown() -> None:
    asked = Asked(("all",), data=parsed_data((), "tiny"), rows=("text8-arm", "toy-*"))
    keys = [job.key for job in jobs_of(asked)]
    assert sorted(keys) == ["text8-arm", "toy-argmax-ar", "toy-discrete-flow"]
    whole = outcome()
    part = Outcome(asked, {key: whole.results[key] for key in keys}, {})
    text = markdown(part)
    assert "not run" not in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## All models of text, bits per character", "## Quantised eight Gaussians, nats", "## Commands",
    ]  # fmt: skip
    assert section_of("cartesian", TABLES["cartesian"], part) == []
    assert [found["command"] for found in results_of(TABLES["text-models"], part)] == [
        whole.results["text8-arm"]["command"]
    ]
