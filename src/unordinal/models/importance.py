"""What models share that are trained on their importance weights: argmax flows and latent flows."""

from abc import abstractmethod

from torch import Tensor, nn

from unordinal.abilities import Weights
from unordinal.checks import check_classes
from unordinal.flows.actnorm import ActNorm
from unordinal.flows.autoregressive import TimeFlow
from unordinal.flows.density import Density
from unordinal.model import CategoricalModel, evaluating
from unordinal.numerics import Rng
from unordinal.progress import current_watcher

START_SYMBOLS, START_EXAMPLES = 2048, 8  # from which ActNorm starts, at least: enough for a mean, whatever the shape


class ImportanceModel(CategoricalModel):
    """A model whose bound is the mean of `log_weight`, log p(x, v) - log q(v | x) for one v ~ q(v | x)."""

    @abstractmethod
    def unchecked_log_weight(self, x: Tensor, generator: Rng = None, cond: Tensor | None = None) -> Tensor:
        """Draw the log-weight of classes that were checked: (B, *D) -> (B,)."""

    def log_weight(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        """Draw each example's log-weight, without dropout and without initialising anything: (B, *D) -> (B,)."""
        check_classes(self, x)
        with evaluating(self):
            return self.unchecked_log_weight(x, generator, self.checked_cond(cond, len(x)))

    @property
    def weights(self) -> Weights:
        return self.log_weight

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        """Return one draw of `log_weight`."""
        return self.log_weight(x, cond=cond, generator=generator)

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.unchecked_log_weight(x, cond=self.checked_cond(cond, len(x)) if cond is None else cond)


def tell_of_samples(density: Density, num_samples: int) -> None:
    """Report samples as done, unless the density reports them position by position."""
    steps = (part for part in density.modules() if isinstance(part, TimeFlow) and not part.is_parallel)
    if next(steps, None) is None:
        current_watcher().advance(num_samples)


def start_actnorm(model: nn.Module, density: Density, v: Tensor, cond: Tensor | None = None) -> None:
    """Let the ActNorms of a density see a first batch v (B, *D, C), as much of it as they need."""
    if any(isinstance(part, ActNorm) for part in density.modules()):
        was_training = model.training
        model.train()
        rows = slice(max(START_EXAMPLES, START_SYMBOLS // v[0, ..., 0].numel()))
        density.log_prob(v[rows], None if cond is None else cond[rows])
        model.train(was_training)
