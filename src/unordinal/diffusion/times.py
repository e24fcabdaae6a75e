"""How diffusion times are drawn in training and in evaluation."""

import torch
from torch import Tensor

from unordinal.names import check_known

SMALLEST_COUNT = 10  # times are drawn by importance once each time was observed this often
MEMORY = 0.9  # decay of the running mean of L_t^2
FLOOR = 1e-3  # weight of a uniform distribution that is mixed in, which bounds the importance weights 1 / q(t)


def stratified_positions(num: int, offset: Tensor) -> Tensor:
    """Return (offset + i / num) mod 1 for i = 0, ..., num - 1, of shape (num,).

    They are evenly spaced. If the offset is uniform on [0, 1), so is each of them.
    """
    return (offset + torch.arange(num, dtype=torch.float64, device="cpu") / num) % 1.0


class TimeSampler:
    """Draws the times t in 1..T of a training batch.

    "uniform" draws them uniformly. "importance" draws them from the paper's q(t), which is proportional to
    sqrt(E[L_t^2]) and estimated from the losses in training; it is uniform until every time was observed often enough.
    "stratified" and "stratified-importance" draw from the same two distributions, but spread the times of a batch
    evenly. The estimates stay on the CPU, where times are drawn, and are part of every checkpoint.

    Args:
        num_steps: the number of steps T.
        method: one of `METHODS`.
    """

    METHODS = ("uniform", "importance", "stratified", "stratified-importance")

    def __init__(self, num_steps: int, method: str):
        check_known("times", method, self.METHODS)
        self.num_steps = num_steps
        self.by_importance = "importance" in method
        self.stratified = "stratified" in method
        self.mean_square = torch.zeros(num_steps, dtype=torch.float32, device="cpu")
        self.count = torch.zeros(num_steps, dtype=torch.long, device="cpu")

    def probabilities(self) -> Tensor:
        """Return q(t) for t = 1..T, of shape (T,), float64 on the CPU."""
        flat = torch.full((self.num_steps,), 1 / self.num_steps, dtype=torch.float64, device="cpu")
        if not self.by_importance or int(self.count.min()) < SMALLEST_COUNT:
            return flat
        root = self.mean_square.double().sqrt()
        root[0] = root[1] if self.num_steps > 1 else root[0]  # the estimate of the decoder term is too noisy
        return (1 - FLOOR) * root / root.sum() + FLOOR * flat if float(root.sum()) > 0 else flat

    def positions(self, num: int) -> Tensor:
        """Draw uniform positions in [0, 1), evenly spread if stratified: (num,) float64 on the CPU."""
        if self.stratified:
            return stratified_positions(num, torch.rand((), dtype=torch.float64, device="cpu"))
        return torch.rand(num, dtype=torch.float64, device="cpu")

    def draw(self, num: int) -> Tensor:
        """Draw times in 1..T: (num,) int64 on the CPU."""
        position, cumulative = self.positions(num), self.probabilities().cumsum(0)
        return torch.searchsorted(cumulative / cumulative[-1], position, right=True).clamp(max=self.num_steps - 1) + 1

    def state(self) -> dict[str, Tensor]:
        """Return the estimates, for a checkpoint."""
        return {"mean_square": self.mean_square, "count": self.count}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Set the estimates to those of a checkpoint."""
        self.mean_square, self.count = state["mean_square"].clone(), state["count"].clone()

    @torch.no_grad()
    def observe(self, t: Tensor, losses: Tensor) -> None:
        """Update the estimates with losses L_t (B,) at times t (B,); the losses of equal times are averaged."""
        index, squares = t - 1, losses.float().square()
        visits = torch.zeros_like(self.mean_square).index_add_(0, index, torch.ones_like(squares))
        mean = torch.zeros_like(self.mean_square).index_add_(0, index, squares) / visits.clamp(min=1)
        fresh, seen = (self.count == 0) & (visits > 0), visits > 0
        updated = torch.where(fresh, mean, MEMORY * self.mean_square + (1 - MEMORY) * mean)
        self.mean_square = torch.where(seen, updated, self.mean_square)
        self.count = self.count + visits.long()


def spread_positions(num_examples: int, repeats: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw stratified positions in [0, 1) for evaluation.

    The positions of each example are evenly spread over [0, 1), and so are those of all examples together.

    Args:
        num_examples: the number of examples.
        repeats: the number of positions of each example.
        generator: the random number generator.

    Returns:
        The positions, of shape (num_examples, repeats), and the rank (num_examples,) of each example among them:
        examples with neighbouring ranks have nearly the same positions.
    """
    rank = torch.randperm(num_examples, generator=generator)
    offset = torch.rand((), dtype=torch.float64, generator=generator)
    within = (rank.double() + offset) / num_examples  # (N,) in [0, 1], one stratum for each example
    return (within.unsqueeze(1) + torch.arange(repeats, dtype=torch.float64)) / repeats % 1.0, rank
