"""How diffusion times are drawn, in training and in scoring."""

import torch
from torch import Tensor

from unordinal.names import check_known

SMALLEST_COUNT = 10  # visits of every time before their statistics are trusted
MEMORY = 0.9  # weight of the past in the running mean of L_t^2
FLOOR = 1e-3  # share of the uniform distribution mixed in, so that no weight 1 / q(t) explodes


def stratified_positions(num: int, offset: Tensor) -> Tensor:
    """(offset + i / num) mod 1 for i < num: evenly spread, each by itself uniform when the offset is. (num,)"""
    return (offset + torch.arange(num, dtype=torch.float64, device="cpu") / num) % 1.0


class TimeSampler:
    """Draws t in 1..T for a batch: uniform, by importance, or either of them spread evenly over the batch.

    Importance is the paper's q(t) ~ sqrt(E[L_t^2]) from running estimates, uniform until every t was seen often
    enough. The statistics stay on the CPU, where times are drawn, and are part of every checkpoint.
    """

    KINDS = ("uniform", "importance", "stratified", "stratified-importance")

    def __init__(self, num_steps: int, kind: str):
        check_known("times", kind, self.KINDS)
        self.num_steps = num_steps
        self.by_importance = "importance" in kind
        self.stratified = "stratified" in kind
        self.mean_square = torch.zeros(num_steps, device="cpu")
        self.count = torch.zeros(num_steps, dtype=torch.long, device="cpu")

    def probabilities(self) -> Tensor:
        """q(t) for t = 1..T: (T,) float64 on the CPU."""
        flat = torch.full((self.num_steps,), 1 / self.num_steps, dtype=torch.float64, device="cpu")
        if not self.by_importance or int(self.count.min()) < SMALLEST_COUNT:
            return flat
        root = self.mean_square.double().sqrt()
        root[0] = root[1] if self.num_steps > 1 else root[0]  # the decoder term's estimate is too noisy to trust
        return (1 - FLOOR) * root / root.sum() + FLOOR * flat if float(root.sum()) > 0 else flat

    def positions(self, num: int) -> Tensor:
        """Uniform positions in [0, 1), spread evenly over the batch where asked: (num,) float64 on the CPU."""
        if self.stratified:
            return stratified_positions(num, torch.rand((), dtype=torch.float64, device="cpu"))
        return torch.rand(num, dtype=torch.float64, device="cpu")

    def draw(self, num: int) -> Tensor:
        """Times in 1..T: (num,) int64 on the CPU."""
        position, cumulative = self.positions(num), self.probabilities().cumsum(0)
        return torch.searchsorted(cumulative / cumulative[-1], position, right=True).clamp(max=self.num_steps - 1) + 1

    def state(self) -> dict[str, Tensor]:
        return {"mean_square": self.mean_square, "count": self.count}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.mean_square, self.count = state["mean_square"].clone(), state["count"].clone()

    @torch.no_grad()
    def observe(self, t: Tensor, losses: Tensor) -> None:
        """Learn from the L_t (B,) of times t (B,); times that occur twice count with their mean."""
        index, squares = t - 1, losses.float().square()
        visits = torch.zeros_like(self.mean_square).index_add_(0, index, torch.ones_like(squares))
        mean = torch.zeros_like(self.mean_square).index_add_(0, index, squares) / visits.clamp(min=1)
        fresh, seen = (self.count == 0) & (visits > 0), visits > 0
        updated = torch.where(fresh, mean, MEMORY * self.mean_square + (1 - MEMORY) * mean)
        self.mean_square = torch.where(seen, updated, self.mean_square)
        self.count = self.count + visits.long()


def spread_positions(num_examples: int, repeats: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Positions in [0, 1) for scoring: each example's `repeats` are spread evenly, and so are all examples' together.

    Returns positions (num_examples, repeats) and the rank (num_examples,) of each example in that spread, along which
    neighbours have nearly the same times.
    """
    rank = torch.randperm(num_examples, generator=generator)
    offset = torch.rand((), dtype=torch.float64, generator=generator)
    within = (rank.double() + offset) / num_examples  # (N,) in [0, 1], one stratum each
    return (within.unsqueeze(1) + torch.arange(repeats, dtype=torch.float64)) / repeats % 1.0, rank
