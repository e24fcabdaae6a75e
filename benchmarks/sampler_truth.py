"""How far samplers are from the data with a perfect network, by enumeration: python benchmarks/sampler_truth.py

A space of binary sequences is small enough to write down the probability of every sequence, the exact prediction of
every noisy sequence, and the exact distribution that a sampler draws from: vectors of probabilities are passed through
its steps, and nothing is sampled. What remains is the error of the sampler itself, as total variation distance from the
data, by the number of network calls.
"""

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.ordered import BUDGET
from unordinal.diffusion.process import NoiseProcess, Time
from unordinal.diffusion.samplers import CORRECTED_SHARE
from unordinal.diffusion.schedules import Schedule, linear
from unordinal.diffusion.unmasking import TIE
from unordinal.names import counted

LOWEST_FIRST = ("margin", "entropy-bounded")  # rules that show the lowest numbers first among equally sure positions
Positions = tuple[bool, ...]
"""Which positions change in a step."""
Subsets = Iterator[tuple[float, Positions]]
"""Sets of positions and their probabilities."""


def states(num_classes: int, length: int) -> Tensor:
    """Return every sequence of classes: (num_classes ** length, length)."""
    return torch.tensor(list(itertools.product(range(num_classes), repeat=length)))


@dataclass(frozen=True)
class Space:
    """Sequences with known probabilities, and the perfect predictions that follow from them.

    Args:
        data: the probability of every sequence, in the order of `states`.
        num_classes: the number of classes K.
        length: the number of positions L.
        noise: the noise process.
        known: classes of positions that are given, -1 where they are free; None for none.
    """

    data: Tensor
    num_classes: int
    length: int
    noise: NoiseProcess
    known: tuple[int, ...] | None = None

    @cached_property
    def x(self) -> Tensor:
        return states(self.num_classes, self.length)

    @cached_property
    def z(self) -> Tensor:
        """Every noisy sequence, (Z, L)."""
        return states(self.noise.num_input_classes, self.length)

    def code(self, z: Tensor) -> Tensor:
        """Return the numbers of noisy sequences in `z`."""
        powers = self.noise.num_input_classes ** torch.arange(self.length - 1, -1, -1)
        return (z * powers).sum(-1)

    def prediction(self, t: Time) -> Tensor:
        """Return p(x_0 | noisy classes of all other positions) for every noisy sequence: (Z, L, K)."""
        if isinstance(self.noise, AbsorbingNoise):
            t = 0.5  # masks say the same at all times, and at time 1 nothing else is possible
        marginal = self.noise.marginal(self.x, torch.full((len(self.x),), t))  # (S, L, num_input_classes)
        each = torch.stack([marginal[:, i, self.z[:, i]] for i in range(self.length)], dim=-1)  # (S, Z, L)
        onehot = torch.nn.functional.one_hot(self.x, self.num_classes).double()
        found = []
        for position in range(self.length):
            others = torch.cat([each[..., :position], each[..., position + 1 :]], dim=-1).prod(-1)  # (S, Z)
            joint = torch.einsum("s,sz,sk->zk", self.data, others, onehot[:, position])
            found.append(joint / joint.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny))
        return torch.stack(found, dim=1)

    def prior(self) -> Tensor:
        """Return the distribution with which chains begin: (Z,)."""
        log_p = self.noise.log_prior(self.z).double()
        return log_p.exp() / log_p.exp().sum()

    def imposed(self, p: Tensor, t: Time) -> Tensor:
        """Return a distribution (Z,) with the known positions in their places, corrupted as everything is at time t."""
        if self.known is None:
            return p
        p = p.view((self.noise.num_input_classes,) * self.length)
        for axis, value in enumerate(self.known):
            if value < 0:
                continue
            shape = [1] * self.length
            shape[axis] = self.noise.num_input_classes
            has_mask = isinstance(self.noise, AbsorbingNoise)  # which shows known positions at all times
            time = torch.tensor([0.0 if has_mask else t], dtype=torch.float64)
            q = self.noise.marginal(torch.tensor([[value]]), time)[0, 0]
            p = p.sum(dim=axis, keepdim=True) * q.view(shape)
        return p.flatten()

    def distance(self, p: Tensor) -> float:
        """Return the total variation distance between the data and a distribution of noisy sequences (Z,).

        With known positions it is the distance from the data given those.
        """
        at = torch.zeros(len(self.z), dtype=torch.float64)
        known = torch.full((self.length,), -1) if self.known is None else torch.tensor(self.known)
        fits = ((known < 0) | (self.x == known)).all(1)
        at[self.code(self.x)] = torch.where(fits, self.data, 0.0) / self.data[fits].sum()
        return float((p - at).abs().sum() / 2)

    def moved(self, p: Tensor, subsets: Callable[[int], Subsets], landing: Tensor) -> Tensor:
        """Pass a distribution (Z,) through one step.

        Args:
            p: the distribution of noisy sequences.
            subsets: the positions that change from the noisy sequence of some number, with their probabilities.
            landing: the classes that positions take if they change, (Z, L, num_input_classes).
        """
        out = torch.zeros_like(p)
        for index in torch.nonzero(p).flatten().tolist():
            for weight, changes in subsets(index):
                joint = torch.ones(1, dtype=torch.float64)
                for position, is_changed in enumerate(changes):
                    stays = torch.nn.functional.one_hot(self.z[index, position], self.noise.num_input_classes)
                    row = landing[index, position] if is_changed else stays.double()
                    joint = (joint.unsqueeze(-1) * row).flatten()
                out += p[index] * weight * joint
        return out


def far_apart_subsets(chances: list[float]) -> Subsets:
    """Systematic sampling: the positions at which the points u, u + 1, ... fall, for every interval of u."""
    ends = list(itertools.accumulate(chances))
    cuts = sorted({0.0, 1.0, *((-end) % 1 for end in ends)})
    for low, high in itertools.pairwise(cuts):
        if high - low < 1e-12:  # an interval that is there by rounding only
            continue
        u = (low + high) / 2
        passed = [int(end + u) for end in ends]
        yield high - low, tuple(after > before for before, after in itertools.pairwise([0, *passed]))


def masked_places(space: Space, index: int) -> list[int]:
    return torch.nonzero(space.z[index] == space.num_classes).flatten().tolist()


def chosen(space: Space, places: tuple[int, ...]) -> Positions:
    return tuple(position in places for position in range(space.length))


def shown_by(space: Space, calls: int, rule: str) -> Tensor:
    """Return the distribution of samplers that show a number of masked positions with every call: (Z,)."""
    return shown_and_counted(space, calls, rule)[0]


def shown_and_counted(space: Space, calls: int, rule: str, budget: float = BUDGET) -> tuple[Tensor, float]:
    """Return the distribution of a sampler that shows masked positions, (Z,), and the mean number of its calls.

    The rule entropy-bounded shows as many as a budget in nats allows, and more where `calls` would not suffice.
    """
    landing = torch.nn.functional.pad(space.prediction(1.0), (0, 1))
    best = landing.topk(2, dim=-1).values
    certainty = {
        "entropy": (landing * landing.clamp(min=1e-300).log()).sum(-1), "confidence": best[..., 0].log(),
        "margin": best[..., 0] - best[..., 1],
    }  # fmt: skip
    certainty["entropy-bounded"] = certainty["entropy"]
    p, mean_calls = space.imposed(space.prior(), 1.0), 0.0
    has_masks = torch.tensor([bool(masked_places(space, index)) for index in range(len(space.z))])
    for call in range(calls):
        mean_calls += float(p[has_masks].sum())

        def subsets(index: int, left: int = calls - call) -> Subsets:
            places = masked_places(space, index)
            num = max(1, len(places) // left)
            if not places:
                yield 1.0, chosen(space, ())
                return
            if rule == "first-hitting":
                every = list(itertools.combinations(places, num))
                for some in every:
                    yield 1 / len(every), chosen(space, some)
            elif rule == "spread":
                chances = [num / len(places) if place in places else 0.0 for place in range(space.length)]
                yield from far_apart_subsets(chances)
            else:
                rank = {place: round(float(certainty[rule][index, place]) / TIE) for place in places}
                if rule == "entropy-bounded":  # the sum of entropies without the largest stays below the budget
                    surest = itertools.accumulate(sorted(-value * TIE for value in rank.values()))
                    num = max(num, 1 + sum(total <= budget for total in list(surest)[:-1]))
                last = sorted(rank.values(), reverse=True)[num - 1]  # the least sure that is shown
                sure = tuple(place for place in places if rank[place] > last)
                ties = [place for place in places if rank[place] == last]
                every = list(itertools.combinations(ties, num - len(sure)))
                every = every[:1] if rule in LOWEST_FIRST else every
                for some in every:  # ties are broken at random
                    yield 1 / len(every), chosen(space, (*sure, *some))

        p = space.moved(p, subsets, landing)
    return p, mean_calls


def ancestral(space: Space, calls: int, rule: str = "independent", *, is_corrected: bool = False) -> Tensor:
    """Return the distribution of ancestral sampling, with positions chosen by a rule, and of its corrected form."""
    everything = (True,) * space.length
    steps = max(2, (calls + 1) // 2) if is_corrected else calls
    corrections, gaps = calls - steps, max(1, steps - 1)
    p = space.imposed(space.prior(), 1.0)
    for number, (t, s) in enumerate(itertools.pairwise(space.noise.spaced_times(steps))):
        times = torch.full((len(space.z),), t), torch.full((len(space.z),), s)
        r = space.prediction(t)
        after = space.noise.posterior(r, space.z, *times)  # (Z, L, num_input_classes)
        if rule == "independent":
            p = space.moved(p, lambda _: iter([(1.0, everything)]), after)
        else:
            chance, landing = jumps(space, r, after, t, s)
            subsets = [list(far_apart_subsets(row)) for row in chance.tolist()]
            p = space.moved(p, lambda index, subsets=subsets: iter(subsets[index]), landing)  # type: ignore[misc]
        p = space.imposed(p, s)
        if s > 0:
            for _ in range((number + 1) * corrections // gaps - number * corrections // gaps):
                p = gibbs(space, p, s)
    return p


def jumps(space: Space, r: Tensor, after: Tensor, t: Time, s: Time) -> tuple[Tensor, Tensor]:
    """Return the probability that a position jumps, (Z, L), and where it lands, (Z, L, K), with uniform noise."""
    k = space.num_classes
    alpha_t, alpha_s = (1 - float(space.noise.network_time(torch.tensor([v]))) for v in (t, s))
    r_z = r.gather(-1, space.z.unsqueeze(-1)).squeeze(-1)
    chance = (1 - alpha_t / alpha_s) / k / (alpha_t * r_z + (1 - alpha_t) / k)
    landing = alpha_s * r + (1 - alpha_s) / k
    expected = (1 - chance).unsqueeze(-1) * torch.nn.functional.one_hot(space.z, k) + chance.unsqueeze(-1) * landing
    assert torch.allclose(expected, after, atol=1e-5)  # the jumps make up the posterior
    return chance, landing


def gibbs(space: Space, p: Tensor, t: Time) -> Tensor:
    """Pass a distribution (Z,) through one Gibbs step, which redraws a tenth of the positions, at least one."""
    num, prediction = max(1, round(CORRECTED_SHARE * space.length)), space.prediction(t)
    if not isinstance(space.noise, AbsorbingNoise):
        alpha = 1 - float(space.noise.network_time(torch.tensor([t])))
        landing = alpha * prediction + (1 - alpha) / space.num_classes
    else:  # what is predicted once the position is hidden
        hidden = space.z.unsqueeze(1).repeat(1, space.length, 1)
        hidden[:, torch.arange(space.length), torch.arange(space.length)] = space.num_classes
        assert num == 1
        place = torch.arange(space.length)
        landing = torch.nn.functional.pad(prediction[space.code(hidden), place], (0, 1))

    def subsets(index: int) -> Subsets:
        every = list(itertools.combinations(range(space.length), num))
        for some in every:
            allowed = tuple(place for place in some if bool(space.noise.can_redraw(space.z[index])[place]))
            yield 1 / len(every), chosen(space, allowed)

    return space.moved(p, subsets, landing)


def markov_data(length: int, stay: float) -> Tensor:
    """Return the probabilities of binary sequences whose neighbours are alike with probability `stay`."""
    x = states(2, length)
    alike = (x[:, 1:] == x[:, :-1]).double()
    return 0.5 * (alike * stay + (1 - alike) * (1 - stay)).prod(-1)


Distribution = Callable[[Space, int], Tensor]

ABSORBING: dict[str, Distribution] = {
    "ancestral": ancestral,
    "first-hitting": lambda space, calls: shown_by(space, calls, "first-hitting"),
    "spread": lambda space, calls: shown_by(space, calls, "spread"),
    "entropy": lambda space, calls: shown_by(space, calls, "entropy"),
    "confidence": lambda space, calls: shown_by(space, calls, "confidence"),
    "margin": lambda space, calls: shown_by(space, calls, "margin"),
    "entropy-bounded": lambda space, calls: shown_by(space, calls, "entropy-bounded"),
    "corrected": lambda space, calls: ancestral(space, calls, is_corrected=True),
}
UNIFORM: dict[str, Distribution] = {
    "ancestral": ancestral,
    "spread": lambda space, calls: ancestral(space, calls, "spread"),
    "corrected": lambda space, calls: ancestral(space, calls, is_corrected=True),
}


LENGTH, STAY = 6, 0.9
BUDGETS = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5)
KNOWN = (0, -1, -1, 1, -1, -1)


def main(picture: Path | None) -> None:
    data = markov_data(LENGTH, STAY)
    masks, uniform = AbsorbingNoise(2, Schedule(linear)), ContinuousUniformNoise(2)
    print(f"Binary sequences of {LENGTH}, neighbours alike with probability {STAY:g}: distance from the data")
    curves = table("absorbing", Space(data, 2, LENGTH, masks), ABSORBING, (1, 2, 3, 4, 6))
    curves |= table("uniform", Space(data, 2, LENGTH, uniform), UNIFORM, (1, 2, 3, 4, 6, 12, 24, 48))
    by_budget(Space(data, 2, LENGTH, masks))
    if picture is not None:
        draw_curves(curves, picture)
    print(f"\nThe same with the first and the fourth position known, {KNOWN[0]} and {KNOWN[3]}")
    some = {name: ABSORBING[name] for name in ("ancestral", "first-hitting", "spread")}
    table("absorbing", Space(data, 2, LENGTH, masks, KNOWN), some, (1, 2, 3, 4))
    some = {name: UNIFORM[name] for name in ("ancestral", "spread")}
    table("uniform", Space(data, 2, LENGTH, uniform, KNOWN), some, (1, 4, 12, 48, 96))


def table(
    noise: str, space: Space, samplers: dict[str, Distribution], calls: tuple[int, ...]
) -> dict[str, dict[int, float]]:
    """Print the distances of samplers by their number of calls, and return them."""
    print(f"\n{noise + ' noise':<18}" + "".join(f"{counted(n, 'call'):>12}" for n in calls))
    curves = {}
    for sampler, distribution in samplers.items():
        row = {n: space.distance(distribution(space, n)) for n in calls if not (sampler == "corrected" and n < 2)}
        curves[f"{noise}, {sampler}"] = row
        print(f"{sampler:<18}" + "".join(f"{row[n]:>12.4f}" if n in row else f"{'':>12}" for n in calls), flush=True)
    return curves


def by_budget(space: Space) -> None:
    """Print the distance of the sampler entropy-bounded, and the mean number of its calls, by its budget."""
    found = [shown_and_counted(space, space.length, "entropy-bounded", budget) for budget in BUDGETS]
    print(f"\n{'entropy-bounded':<18}" + "".join(f"{f'{budget:g} nats':>12}" for budget in BUDGETS))
    print(f"{'mean calls':<18}" + "".join(f"{calls:>12.2f}" for _, calls in found))
    print(f"{'distance':<18}" + "".join(f"{space.distance(p):>12.4f}" for p, _ in found), flush=True)


def draw_curves(curves: dict[str, dict[int, float]], picture: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for name, row in curves.items():
        noise, _, sampler = name.partition(", ")
        axis = axes[0 if noise == "absorbing" else 1]
        axis.plot(list(row), [max(value, 1e-4) for value in row.values()], marker="o", label=sampler)
        axis.set(title=f"{noise} noise", xlabel="network calls", xscale="log", yscale="log")
        axis.minorticks_off()
        axis.set_xticks(list(row), [str(calls) for calls in row])
        axis.legend()
    axes[0].set_ylabel("total variation distance from the data")
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
