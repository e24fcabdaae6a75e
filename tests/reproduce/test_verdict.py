"""Whether models are ordered as in the paper."""

from typing import Any

from unordinal.experiments import TABLES
from unordinal.reproduce.jobs import TIMES, Asked, jobs_of, parsed_data
from unordinal.reproduce.outcome import Outcome
from unordinal.reproduce.verdict import Measured, verdict, verdicts


def outcome_of(name: str, ours: dict[str, float], data: tuple[str, ...] = ()) -> Outcome:
    """Return an outcome in which models have given scores."""
    asked = Asked((name,), data=parsed_data(data, "tiny"))
    results: dict[str, Any] = {}
    for job in jobs_of(asked):
        model = job.experiment.rpartition("/")[2]
        if model in ours:
            results[job.key] = {"scores": {"elbo": {"bits_per_dim": ours[model], "standard_error": 0.01}}}
    return Outcome(asked, results, {})


def test_the_order_of_the_paper_itself_is_the_order_of_the_paper() -> None:
    table = TABLES["dequantisation"]
    asked = Asked(("dequantisation",), data=parsed_data((), "tiny"))
    results: dict[str, Any] = {}
    for row in table.rows:
        key = f"{row.data}-{row.model}"
        results[key] = {"scores": {"elbo": {"bits_per_dim": row.figures[0].value, "standard_error": 0.001}}}
    found = verdicts(table, Outcome(asked, results, {}))
    assert found == [
        f"On {data}, the order of the paper holds for 15 of 15 pairs of models." for data in ("text8", "enwik8")
    ]


def test_pairs_that_are_reversed_or_equal_are_told() -> None:
    ours = {"argmax-softplus": 0.5, "argmax-gumbel": 0.6, "variational-dequant": 0.7, "uniform-dequant": 0.7}
    found = verdicts(TABLES["cityscapes"], outcome_of("cityscapes", ours))
    assert found == [
        "On cityscapes, the order of the paper holds for 4 of 6 pairs of models. 1 pair cannot be told apart. "
        "Reversed: Argmax / Gumbel dist. before Variational dequantisation."
    ]


def test_each_data_set_has_its_own_order() -> None:
    ours = {"argmax-ar": 2.0}
    found = verdicts(TABLES["cartesian"], outcome_of("cartesian", ours, ("text8=docs", "text8=names")))
    same = "the order of the paper holds for 0 of 3 pairs of models. 3 pairs cannot be told apart."
    assert found == [f"On docs, {same}", f"On names, {same}"]


def test_sampling_times_are_ordered_too() -> None:
    times = [
        {"preset": f"text8/{name}", "variant": "", "mean": mean, "deviation": 0.001}
        for name, mean in (("argmax-coupling", 0.1), ("argmax-ar", 0.5), ("arm", 0.9))
    ]
    asked = Asked(("sampling-time",), data=parsed_data((), "tiny"))
    found = verdicts(TABLES["sampling-time"], Outcome(asked, {TIMES: {"times": times}}, {}))
    assert found == [
        "Here the order of the paper holds for 2 of 3 pairs of models. "
        "Reversed: Argmax Flow, AR before 64 Layer Transformer."
    ]


def test_nothing_is_said_where_there_is_nothing_to_compare() -> None:
    assert verdict([]) == ""
    assert verdict([Measured("A", 1.0, 1.0, 0.1)]) == ""
    assert verdict([Measured("A", 1.0, 1.0, 0.1), Measured("B", 1.0, 2.0, 0.1)]) == ""  # equal in the paper
    assert verdicts(TABLES["scaling"], outcome_of("scaling", {"arm": 2.0})) == []


def test_only_the_first_reversed_pairs_are_named() -> None:
    rows = [Measured(f"M{n}", n, -n, 0.0) for n in range(5)]
    assert verdict(rows).endswith("; and 4 more.")
