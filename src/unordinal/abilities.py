"""The optional parts of a model: what some models can do besides scoring and sampling.

`CategoricalModel` has a property for each part, which is None for models without it.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

Weights = Callable[..., Tensor]
"""Draws an importance weight in log space, E[exp(w)] = P(x): (B, *D) -> (B,); takes a `generator`."""

WeightFactors = Callable[..., Tensor]
"""Draws importance weights of the factors of P(x) in log space, independently: (B, *D) -> (B, F); takes a `generator`.
P(x) is the product over the factors of E[exp(w)]."""

Orders = Callable[..., Tensor]
"""Returns the exact log-probability (B,) of x (B, *D) when its positions are drawn in an order (L,) or (B, L), numbered
row by row. With `num_given`, that many positions at the beginning of the order are given, and not counted."""

SamplerScores = Callable[..., Tensor]
"""Returns the exact log-probability (B,) of x (B, *D) under an `Ordered` sampler, given as the second argument; takes
labels as `cond`."""

RandomOrder = Callable[..., Tensor]
"""Returns the exact log-probability (B,) of x (B, *D) when positions are drawn one by one in random order, summed over
all orders; takes labels as `cond`."""

Marginals = Callable[..., Tensor]
"""Returns the log-probability (B,) of the known positions of examples (B, *D), which have -1 elsewhere, with the others
summed out; takes labels as `cond`."""

Reconstruct = Callable[..., Tensor]
"""Returns what the model makes of examples that it has seen only in part: (B, *D) -> (B, *D); takes a `generator`."""


@dataclass(frozen=True)
class Times:
    """The bound of a diffusion as a mean over times.

    Args:
        num: how many times there are; None in continuous time.
        elbo_at: the bound's estimate (B,) of x (B, *D) from one time per example, at a position (B,) in [0, 1) of all
            times; takes a `generator`.
    """

    num: int | None
    elbo_at: Callable[..., Tensor]


@dataclass(frozen=True)
class Blocks:
    """The sizes of blocks in which a model can draw and score.

    Args:
        sizes: the sizes that it was trained with.
        at: returns the model with blocks of another size, a number of positions or "all"; it shares the weights.

    >>> import unordinal
    >>> model = unordinal.block(4, length=8)
    >>> model.blocks.sizes, model.blocks.at(1).is_exact
    ((4,), True)
    """

    sizes: tuple[int, ...]
    at: Callable[[Any], Any]


@dataclass(frozen=True)
class Conditional:
    """The distributions of free positions of a sequence given known ones.

    Args:
        log_probs: returns the log-probabilities (B, K) of the classes of each of some positions, a list, given the
            known positions of examples (B, L), which have -1 elsewhere; takes labels as `cond`. What it returns for an
            example in which the position is known has no meaning.
        spread: returns how much the orders of a model disagree about a position: the standard deviation over orders of
            the probabilities of its classes, (B, K); None if a model has a single distribution.
        quick: returns about the same as `log_probs` in less time; None if there is no such way.
    """

    log_probs: Callable[..., list[Tensor]]
    spread: Callable[[Tensor, int], Tensor] | None = None
    quick: Callable[..., list[Tensor]] | None = None


@dataclass(frozen=True)
class Visit:
    """Some positions of examples, and how likely each class is there, given the positions that were visited before.

    Args:
        places: the positions, numbered row by row, of shape (P,).
        logits: of shape (N, P, K); if examples may end early, the last class is the end.
    """

    places: Tensor
    logits: Tensor


Visits = Callable[..., Generator[Visit, Tensor, None]]
"""Visits every position of `num` examples once, in an order that does not depend on them. After
each visit it is sent the classes (N, P) that are there. The product of their probabilities is the likelihood of the
examples in this order, so that a coder can write and read them."""


class Steps(Protocol):
    """Predicts one position after another, with a state that is passed on."""

    def first_state(self, num: int, cond: Tensor | None = None) -> Any:
        """Return the state of `num` sequences before their first position, given labels (N, J)."""

    def next_log_probs(self, before: Tensor | None, state: Any) -> tuple[Tensor, Any]:
        """Return the log-probabilities (N, K) of the next position, and the new state.

        Args:
            before: the classes (N,) of the position before it; None for the first position.
            state: the state after the position before, which must not be used again.
        """

    def select_state(self, state: Any, index: Tensor) -> Any:
        """Return the state of some of the sequences, `index` (M,), which may repeat; the old one is used up."""


class Stepper(Steps, Protocol):
    """Draws one position after another, and scores whole sequences."""

    def log_probs(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return the log-probability of the class of each position given those before it: (B, L) -> (B, L).

        If examples may end early, there may be a column more, in which an end follows the last symbol.
        """

    @property
    def in_order(self) -> Callable[[Tensor, Any], tuple[Tensor, Any]] | None:
        """Scores consecutive chunks (N, L) of one text, each given a memory of those before.

        It returns log-probabilities (N,), and the memory to be passed with the next chunks. None without a memory.
        """


class Denoiser(Protocol):
    """Draws samples by removing noise step by step."""

    @property
    def samplers(self) -> tuple[str, ...]:
        """The names that `sample(sampler=...)` takes."""

    def whole_calls(self, sampler: str | None, num_free: int) -> int | None:
        """Return the network calls of a whole chain for `num_free` free positions; None if there is no such number."""

    @property
    def takes_any_known(self) -> bool:
        """Whether any positions may be known when samples are drawn, rather than only those at the beginning."""

    @property
    def posterior(self) -> Callable[[Tensor, float], Tensor] | None:
        """Returns the probabilities (B, *D, K) of the data given x (B, *D), whose classes were redrawn with some
        probability. None if the noise does not redraw classes."""


@dataclass(frozen=True)
class Network:
    """The network of a model by itself, for use without this library.

    Args:
        module: takes the inputs and returns logits of the classes of every position, (B, *D, K).
        inputs: an example of each input, by name: `x`, classes (B, *D), and `t`, times (B,), where it reads them.
    """

    module: nn.Module
    inputs: dict[str, Tensor]


class TrainingHooks:
    """What a training loop may do for a model besides minimising its loss. The defaults do nothing.

    A loop of your own does not need the hooks: `model.training_loss(x).mean()` initialises what depends on data, draws
    its own times and learns their importance. The hooks add a warm-up of the KL and auxiliary losses that end
    (`progressed`), and the same times for all parts of a batch (`draw`, `observe`).
    """

    is_counted = False
    """Whether the model is fitted by `count` alone, without steps of an optimiser."""
    can_shard = False
    """Whether the weights may be spread over processes: the network is made of modules with `is_block`, and everything
    that runs it is `forward`, `elbo` or `elbo_at`."""

    def initialise(self, x: Tensor) -> None:
        """Initialise what depends on data from a first batch (B, *D). Called once, before anything else."""

    def count(self, train: Any, val: Any) -> None:
        """Fit the model to all training examples (N, *D), with validation examples to choose settings by."""

    def progressed(self, fraction: float) -> None:
        """Take note of the fraction of the budget that is spent, 0 to 1. Called before each step."""

    def draw(self, num: int) -> Tensor | None:
        """Draw the random numbers of a batch that `observe` learns from, (num,) on the CPU; the loss receives them."""
        return None

    def observe(self, draw: Tensor | None, losses: Tensor) -> None:
        """Learn from the losses (B,) of a step, on the CPU, and from the numbers that `draw` gave for it."""

    def compile(self) -> None:
        """Compile the network with torch.compile, for models where that pays."""

    def state(self) -> dict[str, Tensor]:
        """Return what the hooks have learned, for a checkpoint."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a `state`."""
