"""What models share that are trained on their importance weights: argmax flows and latent flows."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from unordinal.flows.actnorm import ActNorm
from unordinal.flows.density import Density
from unordinal.model import CategoricalModel

START_SYMBOLS, START_EXAMPLES = 2048, 8  # from which ActNorm starts, at least: enough for a mean, whatever the shape


class ImportanceModel(CategoricalModel):
    """A model whose bound is the mean of `log_weight`, log p(x, v) - log q(v | x) for one v ~ q(v | x)."""

    @abstractmethod
    def log_weight(self, x: Tensor) -> Tensor:
        """One draw of the log-weight of each example: (B, *D) -> (B,)."""

    def elbo(self, x: Tensor) -> Tensor:
        """One draw of `log_weight`, without dropout and without starting anything."""
        was_training = self.training
        self.eval()
        try:
            return self.log_weight(x)
        finally:
            self.train(was_training)

    def training_loss(self, x: Tensor, draw: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return -self.log_weight(x)

    def checked_shape(
        self, num_samples: int, event_shape: tuple[int, ...] | None, settings: dict[str, object]
    ) -> torch.Size:
        """The shape of a sample, once all that was asked for is possible."""
        shape = torch.Size(self.event_shape if event_shape is None else event_shape)
        if settings:
            raise ValueError(f"a flow is sampled in one go: it has no {', '.join(settings)}")
        if num_samples < 1:
            raise ValueError(f"num_samples must be at least 1, got {num_samples}")
        if len(shape) != len(self.event_shape) or min(shape) < 1:
            raise ValueError(f"a sample cannot have shape {tuple(shape)}; the model's is {tuple(self.event_shape)}")
        self.check_sides(shape)
        return shape


def start_actnorm(model: nn.Module, density: Density, v: Tensor) -> None:
    """Let the ActNorms of a density see a first batch v (B, *D, C), as much of it as they need."""
    if any(isinstance(part, ActNorm) for part in density.modules()):
        was_training = model.training
        model.train()
        density.log_prob(v[: max(START_EXAMPLES, START_SYMBOLS // v[0, ..., 0].numel())])
        model.train(was_training)
