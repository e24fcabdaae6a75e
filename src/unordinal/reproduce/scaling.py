"""How bits per character fall with compute: a law with two parameters, fitted to the best score of each budget."""

import io
import math

import numpy as np

FURTHER = 10.0  # how many times the largest budget the law is drawn to
END = (
    "Each law is fitted to the best score of each budget but the largest, on which it is checked. The lines end at ten "
    "times the largest budget: a power law has no floor, whereas the text has an entropy; more compute would call for "
    "larger models than these two sizes; and the training text would be read several times."
)


def envelope(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the best score of each budget, in the order of the budgets.

    >>> envelope([(2, 3.0), (1, 4.0), (2, 2.5)])
    [(1, 4.0), (2, 2.5)]
    """
    best: dict[float, float] = {}
    for budget, bits in points:
        best[budget] = min(bits, best.get(budget, math.inf))
    return sorted(best.items())


def law_of(points: list[tuple[float, float]]) -> tuple[float, float] | None:
    """Return a and b of bits = a * budget^-b, by least squares of the logarithms; None for fewer than two budgets."""
    if len(points) < 2:
        return None
    budgets, bits = np.log(np.array(points)).T
    slope, offset = np.polyfit(budgets, bits, 1)
    return float(np.exp(offset)), float(-slope)


def fitted(points: list[tuple[float, float]]) -> str | None:
    """Return what the law says that was fitted without the largest budget, and how far it misses there."""
    best = envelope(points)
    law = law_of(best[:-1])
    if law is None:
        return None
    a, b = law
    budget, bits = best[-1]
    expected = a * budget**-b
    text = f"bits = {a:.3f} * minutes^-{b:.4f} from the smaller budgets; at {budget:g} minutes it says {expected:.3f}, "
    return text + f"measured {bits:.3f} ({bits - expected:+.3f})"


def plot_scaling(named: dict[str, list[tuple[float, float]]]) -> bytes:
    """Return a PNG of the scores of models against their budgets, with their laws to ten times the largest budget."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.subplots()
    for index, (title, points) in enumerate(named.items()):
        best, colour = envelope(points), f"C{index}"
        axes.plot(*zip(*points, strict=True), "o", color=colour, alpha=0.35, markersize=4) if points else None
        law = law_of(best[:-1])
        if best:
            axes.plot(*zip(*best, strict=True), "o-", color=colour, label=title)
        if law is not None:
            reach = np.geomspace(best[0][0], FURTHER * best[-1][0], 50)
            axes.plot(reach, law[0] * reach ** -law[1], "--", color=colour, linewidth=0.9)
    axes.set(xscale="log", xlabel="minutes on one core", ylabel="bits per character of test")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()
