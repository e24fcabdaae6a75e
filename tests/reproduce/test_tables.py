"""Tables of a report: seeds, figures of the paper, scores with their errors and kinds."""

from typing import Any

import pytest

from unordinal.experiments import TABLES, Figure, Sentence
from unordinal.reproduce.jobs import TIMES, Asked, jobs_of, parsed_data
from unordinal.reproduce.outcome import Outcome
from unordinal.reproduce.tables import said, shown_score, table_of, timing_of

ASKED = Asked(("all",), data=parsed_data((), "tiny"))


def score(value: float, kind: str = "elbo") -> dict[str, Any]:
    values = {"bits_per_dim": value, "nats_per_example": 2 * value, "standard_error": 0.012}
    return {**values, "kind": kind, "num_examples": 1234}


def test_seeds_are_summed_up() -> None:
    jobs = jobs_of(ASKED)
    keys = [job.key for job in jobs if job.experiment == "text8/argmax-coupling" and not job.settings]
    assert len(keys) == 3
    results = {
        key: {"trained": {"steps": 321, "parameters": 5}, "scores": {"elbo": score(bits)}}
        for key, bits in zip(keys, (1, 2, 3), strict=True)
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


def test_sampling_times_are_found_by_model_steps_and_kind_of_flow() -> None:
    times = [
        {"preset": "text8/multinomial", "variant": f"{steps} steps", "mean": mean, "deviation": None}
        for steps, mean in ((1000, 9.0), (100, 1.0))
    ]
    found = Outcome(ASKED, {TIMES: {"times": times}}, {})
    rows = {row.title: timing_of(row, found) for row in TABLES["sampling-time"].rows}
    assert {title: time["mean"] for title, time in rows.items() if time} == {
        "Multinomial, 1000 steps": 9.0, "Multinomial, 100 steps": 1.0,
    }  # fmt: skip
