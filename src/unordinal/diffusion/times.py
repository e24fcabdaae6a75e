"""How diffusion times are drawn, in training and in scoring."""

import torch
from torch import Tensor, nn

SMALLEST_COUNT = 10  # visits of every time before their statistics are trusted
MEMORY = 0.9  # weight of the past in the running mean of L_t^2
FLOOR = 1e-3  # share of the uniform distribution mixed in, so that no weight 1 / q(t) explodes


def stratified_positions(num: int, offset: Tensor) -> Tensor:
    """(offset + i / num) mod 1 for i < num: evenly spread, each by itself uniform when the offset is. (num,)"""
    return (offset + torch.arange(num, dtype=torch.float64) / num) % 1.0


class TimeSampler(nn.Module):
    """Draws t in 1..T for a batch: uniform, by importance, or either of them spread evenly over the batch.

    Importance is the paper's q(t) ~ sqrt(E[L_t^2]) from running estimates, uniform until every t was seen often
    enough. The statistics are buffers and so part of every checkpoint.
    """

    mean_square: Tensor
    count: Tensor

    def __init__(self, num_steps: int, kind: str):
        super().__init__()
        self.num_steps = num_steps
        self.by_importance = "importance" in kind
        self.stratified = "stratified" in kind
        if self.by_importance:
            self.register_buffer("mean_square", torch.zeros(num_steps))
            self.register_buffer("count", torch.zeros(num_steps, dtype=torch.long))

    def probabilities(self) -> Tensor:
        """q(t) for t = 1..T: (T,) float64 on the CPU."""
        flat = torch.full((self.num_steps,), 1 / self.num_steps, dtype=torch.float64)
        if not self.by_importance or int(self.count.min()) < SMALLEST_COUNT:
            return flat
        root = self.mean_square.cpu().double().sqrt()
        root[0] = root[1] if self.num_steps > 1 else root[0]  # the decoder term's estimate is too noisy to trust
        return (1 - FLOOR) * root / root.sum() + FLOOR * flat if float(root.sum()) > 0 else flat

    def draw(self, num: int) -> Tensor:
        """Times in 1..T: (num,) int64 on the CPU."""
        if self.stratified:
            position = stratified_positions(num, torch.rand((), dtype=torch.float64))
        else:
            position = torch.rand(num, dtype=torch.float64)
        cumulative = self.probabilities().cumsum(0)
        return torch.searchsorted(cumulative / cumulative[-1], position, right=True).clamp(max=self.num_steps - 1) + 1

    @torch.no_grad()
    def observe(self, t: Tensor, losses: Tensor) -> None:
        """Learn from the L_t (B,) of times t (B,); times that occur twice count with their mean."""
        if not self.by_importance:
            return
        index = (t - 1).to(self.count.device)
        squares = losses.detach().float().to(index.device).square()
        visits = torch.zeros_like(self.mean_square).index_add_(0, index, torch.ones_like(squares))
        mean = torch.zeros_like(self.mean_square).index_add_(0, index, squares) / visits.clamp(min=1)
        fresh, seen = (self.count == 0) & (visits > 0), visits > 0
        updated = torch.where(fresh, mean, MEMORY * self.mean_square + (1 - MEMORY) * mean)
        self.mean_square.copy_(torch.where(seen, updated, self.mean_square))
        self.count += visits.long()


def spread_times(num_steps: int, num_examples: int, repeats: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Times for scoring: each example's `repeats` times are spread evenly, and so are all examples' together.

    Returns t (num_examples, repeats) int64 and the rank (num_examples,) of each example in that spread, along which
    neighbours have nearly the same times.
    """
    rank = torch.randperm(num_examples, generator=generator)
    offset = torch.rand((), dtype=torch.float64, generator=generator)
    within = (rank.double() + offset) / num_examples  # (N,) in [0, 1], one stratum each
    position = (within.unsqueeze(1) + torch.arange(repeats, dtype=torch.float64)) / repeats % 1.0
    return (position * num_steps).floor().long().clamp(max=num_steps - 1) + 1, rank
