"""The report of a reproduction, made from results alone."""

import json
import re
from typing import Any

import pytest

from unordinal.experiments import TABLES, Figure, Sentence
from unordinal.reproduce.jobs import TIMES, Asked, jobs_of, parsed_data
from unordinal.reproduce.render import Outcome, markdown, page, said, shown_score, table_of
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
    assert page(again).count(b"<img") == page(whole).count(b"<img") > 5


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


def test_seeds_are_summed_up() -> None:
    jobs = jobs_of(ASKED)
    keys = [job.key for job in jobs if job.experiment == "text8/argmax-coupling" and not job.settings]
    assert len(keys) == 3
    results = {
        key: {**result(0, jobs[0]), "scores": {"elbo": score(bits)}} for key, bits in zip(keys, (1, 2, 3), strict=True)
    }
    head, lines = table_of(TABLES["deviations"], Outcome(ASKED, results, {}))
    line = next(line for line in lines if "2.000" in line[head.index("ours")])
    assert line[head.index("ours")] == "2.000 ± 1.000 over 3 ELBO"
    assert line[head.index("the paper")] == "1.82 ± 0.017"


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ((), "-"),
        ((Figure(1.38, "t", ("r",), "c"),), "1.38"),
        ((Figure(1.38, "t", ("r",), "c", error=0.001),), "1.38 ± 0.001"),
        ((Figure(1.38, "t", ("r",), "c"), Sentence(1.39, "w", note="1.39 elsewhere")), "1.38; 1.39 elsewhere"),
    ],
)
def test_the_paper_s_figures_as_text(figures: Any, text: str) -> None:
    assert said(figures) == text


def test_scores_have_their_error_and_kind() -> None:
    assert shown_score(score(1.5)) == "1.500 ± 0.012 ELBO"
    assert shown_score(score(1.5), in_nats=True) == "3.000 ± 0.024 ELBO"
    assert shown_score(score(1.5, "iwbo-1000")) == "1.500 ± 0.012 IWBO-1000"
    assert shown_score({**score(1.5, "exact"), "standard_error": None}) == "1.500 exact"
    assert shown_score(None) == "-"


def test_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected the results\.json"):
        Outcome.from_dict({"a": 1})
