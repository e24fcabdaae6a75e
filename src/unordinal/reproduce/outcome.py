"""All that a report of a reproduction is made from."""

from dataclasses import dataclass
from typing import Any

from unordinal.experiments import DATA
from unordinal.names import counted
from unordinal.reproduce.jobs import Asked, tables_named

WHAT_DIFFERS = (
    "What differs from the paper: it trains models of its size paper on the whole of its data for days, on GPUs. Here "
    "models have size {size} and {minutes} each{data}. Scores are of the test split, as many examples as two minutes "
    "allow. Where the paper gives two figures for one experiment, both are shown."
)

OTHER_EXAMPLES = (
    "An IWBO is of the first ten test maps only, so that it cannot be compared with the ELBO of all of them; compare "
    "the IWBO of one model with that of another."
)


@dataclass(frozen=True)
class Outcome:
    """All that a report is made from: what was asked, and the results and states of the jobs."""

    asked: Asked
    results: dict[str, Any]
    states: dict[str, str]  # why a job has no result, or that its result is stale

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that can be written as JSON."""
        return {
            "unordinal": "reproduction",
            "asked": self.asked.to_dict(),
            "states": self.states,
            "results": self.results,
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Outcome":
        """Return what was written as JSON; raise a ValueError if it is something else."""
        if values.get("unordinal") != "reproduction":
            raise ValueError("expected the results.json that `unordinal reproduce` writes")
        asked = dict(values["asked"])
        asked |= {"names": tuple(asked["names"]), "rows": tuple(asked.get("rows", ()))}
        asked["data"] = tuple((task, what) for task, what in asked["data"])
        return Outcome(Asked(**asked), values["results"], values["states"])


def differing(outcome: Outcome) -> str:
    """Return in what a reproduction differs from the paper."""
    asked = outcome.asked
    minutes = (
        "the paper's budget"
        if asked.minutes is None
        else f"{asked.minutes:g} minutes on {counted(asked.threads, 'thread')}"
    )
    used = {task for table in tables_named(asked.names).values() for task in (row.data for row in table.rows)}
    named = {task: [what for other, what in asked.data if other == task] for task, _ in asked.data}
    replaced = [
        f"{DATA[task].source} is {' and '.join(what)}" for task, what in named.items() if task in used - {"toy"}
    ]
    data = "; ".join(replaced)
    text = WHAT_DIFFERS.format(size=asked.size, minutes=minutes, data=f"; {data}" if data else "")
    has_iwbo = any(row.iwbo for table in tables_named(asked.names).values() for row in table.rows)
    return f"{text} {OTHER_EXAMPLES}" if has_iwbo else text


def made_with(outcome: Outcome) -> str:
    """Return where and when the results were made."""
    found = {
        f"{result['date']}, unordinal {result['version']}, commit {result['commit']}, "
        f"{result['machine']['cores']} cores, torch {result['machine']['torch']}"
        for result in outcome.results.values()
    }
    return "; ".join(sorted(found)) or "nothing was run"
