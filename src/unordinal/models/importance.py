"""What models share that are trained on their importance weights: argmax flows and latent flows."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from unordinal.flows.actnorm import ActNorm
from unordinal.flows.autoregressive import TimeFlow
from unordinal.flows.density import Density
from unordinal.model import CategoricalModel, evaluating
from unordinal.progress import Advance

FLOW = "a flow is sampled in one go"
START_SYMBOLS, START_EXAMPLES = 2048, 8  # from which ActNorm starts, at least: enough for a mean, whatever the shape


class ImportanceModel(CategoricalModel):
    """A model whose bound is the mean of `log_weight`, log p(x, v) - log q(v | x) for one v ~ q(v | x)."""

    @abstractmethod
    def log_weight(self, x: Tensor) -> Tensor:
        """One draw of the log-weight of each example: (B, *D) -> (B,)."""

    def elbo(self, x: Tensor) -> Tensor:
        """One draw of `log_weight`, without dropout and without starting anything."""
        with evaluating(self):
            return self.log_weight(x)

    def training_loss(self, x: Tensor, draw: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return -self.log_weight(x)


@contextmanager
def watched(density: Density, advance: Advance | None) -> Iterator[None]:
    """Let `advance` know of every position that a density draws one after another."""
    steps = stepwise(density)[:1]
    for step in steps:
        step.advance = advance
    try:
        yield
    finally:
        for step in steps:
            step.advance = None


def stepwise(density: Density) -> list[TimeFlow]:
    """The parts of a density that are sampled position by position."""
    parts = [part for part in density.modules() if isinstance(part, TimeFlow)]
    return [part for part in parts if not part.is_parallel]


def start_actnorm(model: nn.Module, density: Density, v: Tensor) -> None:
    """Let the ActNorms of a density see a first batch v (B, *D, C), as much of it as they need."""
    if any(isinstance(part, ActNorm) for part in density.modules()):
        was_training = model.training
        model.train()
        density.log_prob(v[: max(START_EXAMPLES, START_SYMBOLS // v[0, ..., 0].numel())])
        model.train(was_training)
