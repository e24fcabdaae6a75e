"""The one interface that every model of this library has."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Abilities:
    """What a model can do besides scoring and sampling; what it cannot do, its `sample` and its scores refuse.

    >>> Abilities(prompt=True).prompt, Abilities().steps
    (True, None)
    """

    steps: int | None = None  # reverse steps of the whole chain, of which `sample(steps=...)` may take fewer
    chain: bool = False  # tells of each x_t on the way to a sample
    prompt: bool = False  # `sample(prompt=...)` begins every sample with given classes
    temperature: bool = False  # `sample(temperature=...)`
    known: bool = False  # `sample(known=...)` keeps given positions
    conditionals: bool = False  # `conditionals` gives the probabilities of each position given others
    noisy_conditionals: bool = False  # those are given a text with errors, and need its `noise`
    sequential: bool = False  # `first_state`, `next_log_probs` and `select_state` draw one position after another
    samplers: tuple[str, ...] = ()  # the names that `sample(sampler=...)` takes
    invalid_codes: bool = False  # samples may hold numbers >= num_classes, codes that mean no class
    orders: bool = False  # `log_prob_of_order` gives the exact log-probability when positions come in a given order
    in_order: bool = False  # `log_prob_in_order` scores the chunks of a text with a memory of those before
    network: bool = False  # `network` gives the network by itself
    reconstructs: bool = False  # `reconstruct` shows what comes back of an example
    times: bool = False  # the bound is a mean over times, and `elbo_at` gives it at chosen ones
    num_times: int | None = None  # how many times there are, where they can be counted


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

    A loop of your own needs none of it: `model.training_loss(x).mean()` starts what starts from data, draws its own
    times and learns their importance. What a loop gains from the hooks is a warm-up of the KL, auxiliary losses that
    end (`progressed`), and the same times for all parts of a batch (`draw`, `observe`).
    """

    can_shard = False
    """Whether the weights may be spread over processes: the network is made of modules with `is_block`, and everything
    that runs it is `forward`, `elbo` or `elbo_at`."""

    def initialise(self, x: Tensor) -> None:
        """Set what starts from data by a first batch (B, *D); called once, before anything else."""

    def progressed(self, fraction: float) -> None:
        """Told before each step how much of the budget is used, 0 to 1; less again if the budget grows."""

    def draw(self, num: int) -> Tensor | None:  # noqa: ARG002
        """Random numbers of a batch that `observe` learns from, (num,) on the CPU; they are passed to the loss."""
        return None

    def observe(self, draw: Tensor | None, losses: Tensor) -> None:
        """Learn from the losses (B,) of a step, on the CPU, and from what `draw` gave for it."""

    def compile(self) -> None:
        """Compile what is worth it with torch.compile; for most models that is nothing."""

    def state(self) -> dict[str, Tensor]:
        """What the hooks have learned, for a checkpoint."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a `state`."""


class CategoricalModel(nn.Module, ABC):
    """A distribution over arrays of classes: P(x) for x of shape `event_shape` with entries 0, ..., num_classes - 1.

    Losses and bounds draw from torch's default generator; `sample` takes one. Scores and samples do not depend on
    whether the model is in training mode. docs/extending.md shows a model of your own.

    Args:
        num_classes: the number of classes K.
        event_shape: the shape of one example.
        is_exact: whether `elbo` is log P(x) itself.
        side_multiple: what every side of an example must be a multiple of.
    """

    def __init__(
        self,
        num_classes: int,
        event_shape: tuple[int, ...] | torch.Size,
        *,
        is_exact: bool = False,
        side_multiple: int = 1,
    ):
        super().__init__()
        if num_classes < 2:
            raise ValueError(f"a model needs at least 2 classes, got {num_classes}")
        self.num_classes = num_classes
        self.event_shape = torch.Size(event_shape)
        self.side_multiple = side_multiple
        self.is_exact = is_exact

    @property
    def abilities(self) -> Abilities:
        """What this model can do besides scoring and sampling."""
        return Abilities()

    @property
    def hooks(self) -> TrainingHooks:
        """What a training loop does for this model besides minimising its loss."""
        return TrainingHooks()

    @abstractmethod
    def training_loss(self, x: Tensor, draw: Tensor | None = None) -> Tensor:
        """What training minimises: (B, *D) classes, which are not checked -> (B,) nats.

        `draw` is what `hooks.draw` gave for this batch (diffusion's times, say); without it the loss draws for itself.
        """

    @abstractmethod
    def elbo(self, x: Tensor) -> Tensor:
        """An unbiased estimate of a lower bound on log P(x), without side effects: (B, *D) -> (B,) nats."""

    @abstractmethod
    def sample(
        self,
        num_samples: int,
        *,
        generator: torch.Generator | None = None,
        event_shape: tuple[int, ...] | None = None,
        **settings: Any,
    ) -> Tensor:
        """Draw from the model: (N, *D) classes. `settings` are the model's own; others are refused by name."""

    def elbo_at(self, x: Tensor, position: Tensor) -> Tensor:  # noqa: ARG002
        """The bound's estimate from one time per example, at `position` (B,) in [0, 1) of all times: (B,) nats."""
        raise ValueError(f"the bound of {type(self).__name__} is no mean over times; use its elbo for {tuple(x.shape)}")

    def log_weight(self, x: Tensor) -> Tensor:
        """An importance weight in log space, E[exp(log_weight)] = P(x): (B, *D) -> (B,). Not every model has one."""
        raise ValueError(f"{type(self).__name__} has no importance weight for {tuple(x.shape)}; use its elbo")

    def log_prob_in_order(self, chunks: Tensor, past: Any = None) -> tuple[Tensor, Any]:  # noqa: ARG002
        """Exact log-probabilities (N,) of consecutive chunks (N, L) of one text, each given a memory of those before.

        The second result goes on from here as `past`.
        """
        raise ValueError(f"{type(self).__name__} has no memory with which to score {len(chunks)} chunks in order")

    def log_prob_of_order(self, x: Tensor, order: Tensor, *, num_given: int = 0) -> Tensor:  # noqa: ARG002
        """Return the log-probability of x when its positions are drawn in a given order: (B, *D) -> (B,) nats.

        Args:
            x: classes, of shape (B, *D).
            order: the positions, numbered row by row, in the order in which they are drawn: (L,), or (B, L).
            num_given: how many of the first positions of the order are given, and not counted.
        """
        raise ValueError(f"{type(self).__name__} has no order of positions for {tuple(x.shape)} to be drawn in")

    def reconstruct(self, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:  # noqa: ARG002
        """What the model makes of examples that it has seen only in part: (B, *D) -> (B, *D)."""
        raise ValueError(f"{type(self).__name__} gives {tuple(x.shape)} back as it is; there is nothing to reconstruct")

    def conditionals(self, x: Tensor, *, noise: float | None = None) -> Tensor:  # noqa: ARG002
        """Return the probabilities of the classes of each position given others.

        Autoregressive models give them given the positions before, absorbing diffusions given all other positions, and
        uniform diffusions given x as it is, at an amount of noise.

        Args:
            x: classes, of shape (B, *D).
            noise: the probability with which x has been redrawn at each position; uniform diffusions only.

        Returns:
            Probabilities, of shape (B, *D, K).
        """
        raise ValueError(f"{type(self).__name__} has no probabilities of single positions for {tuple(x.shape)}")

    def network(self) -> Network:
        """Return the network by itself: a diffusion's denoiser, or an autoregressive model's logits."""
        raise ValueError(f"{type(self).__name__} has no single network that could be used by itself")

    def first_state(self, num: int) -> Any:
        """Return the state of so many sequences before their first position; models that are `sequential` only."""
        raise ValueError(f"{type(self).__name__} does not draw {num} sequences one position after another")

    def next_log_probs(self, before: Tensor | None, state: Any) -> tuple[Tensor, Any]:  # noqa: ARG002
        """Return the log-probabilities (N, K) of the next position, and the new state.

        Args:
            before: the classes (N,) of the position before it; None for the first position.
            state: the state after the position before, which must not be used again.
        """
        raise ValueError(f"{type(self).__name__} does not draw one position after another")

    def select_state(self, state: Any, index: Tensor) -> Any:  # noqa: ARG002
        """Return the state of some of the sequences, `index` (M,), which may repeat; the old one is used up."""
        raise ValueError(f"{type(self).__name__} does not draw one position after another")

    def checked_known(self, known: Tensor, num_samples: int, shape: torch.Size) -> Tensor:
        """Given positions as (N, *D), once they can be: classes, or -1 where a position is free."""
        if known.is_floating_point() or tuple(known.shape) not in (tuple(shape), (num_samples, *shape)):
            expected = f"{tuple(shape)} or {(num_samples, *shape)}"
            got = f"{known.dtype} of shape {tuple(known.shape)}"
            raise ValueError(f"`known` must hold integers of shape {expected}, got {got}")
        low, high = int(known.min()), int(known.max())
        if low < -1 or high >= self.num_classes:
            wrong = low if low < -1 else high
            raise ValueError(f"`known` has class {wrong}; expected 0 to {self.num_classes - 1}, or -1 where it is free")
        known = known.long().expand(num_samples, *shape)
        if not bool((known < 0).flatten(1).any(dim=1).all()):
            raise ValueError("`known` leaves nothing free; put -1 where positions are to be drawn")
        return known

    def forward(self, x: Tensor, draw: Tensor | None = None) -> Tensor:
        return self.training_loss(x, draw)

    def bits_per_dim(self, x: Tensor) -> Tensor:
        """Bits per position: minus the ELBO (minus log P(x) where `is_exact`) over the number of positions, (B,).

        For a bound this is one draw for each example, which is noise by itself; `unordinal.score` averages enough.
        """
        return -self.elbo(x) / (math.log(2) * x[0].numel())


class ExactModel(CategoricalModel):
    """A model whose `log_prob` is log P(x) itself: the bound and the importance weight are the same number.

    A subclass gives `unchecked_log_prob`, `training_loss` and `sample`; docs/extending.md has one in full.

    Args:
        num_classes: the number of classes K.
        event_shape: the shape of one example.
        side_multiple: what every side of an example must be a multiple of.
    """

    def __init__(self, num_classes: int, event_shape: tuple[int, ...] | torch.Size, *, side_multiple: int = 1):
        super().__init__(num_classes, event_shape, is_exact=True, side_multiple=side_multiple)

    @abstractmethod
    def unchecked_log_prob(self, x: Tensor) -> Tensor:
        """log P(x) of classes that are known to be this model's: (B, *D) int64 -> (B,) nats."""

    def log_prob(self, x: Tensor) -> Tensor:
        """The exact log-probability, without dropout: (B, *D) -> (B,) nats."""
        check_classes(self, x)
        with evaluating(self):
            return self.unchecked_log_prob(x.long())

    def elbo(self, x: Tensor) -> Tensor:
        """`log_prob`; there is no gap."""
        return self.log_prob(x)

    def log_weight(self, x: Tensor) -> Tensor:
        return self.log_prob(x)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Dropout and the like off for a while, then every part as it was."""
    trained = [part for part in model.modules() if part.training]
    for part in trained:
        part.training = False
    try:
        yield
    finally:
        for part in trained:
            part.training = True


def device_of(model: nn.Module) -> torch.device:
    """Where a model computes: where its weights are."""
    weight = next(model.parameters(), None)
    return torch.device("cpu") if weight is None else weight.device


def check_classes(model: CategoricalModel, x: Tensor) -> None:
    """Refuse what cannot be a batch of this model's data.

    It looks at the values, so no training loss calls it; tensors on the meta device have none to look at.
    """
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise ValueError(f"x has dtype {x.dtype}; expected integer classes")
    if x.dim() != 1 + len(model.event_shape) or x.numel() == 0:
        expected = ", ".join(map(str, model.event_shape))
        raise ValueError(f"x has shape {tuple(x.shape)}; expected (batch, {expected})")
    check_sides(model, tuple(x.shape[1:]))
    if x.device.type == "meta":
        return
    low, high = (int(v) for v in torch.aminmax(x))
    if low < 0 or high >= model.num_classes:
        wrong = low if low < 0 else high
        raise ValueError(
            f"x has class {wrong}, but num_classes={model.num_classes}; was it encoded with this model's vocabulary?"
        )


def check_sides(model: CategoricalModel, shape: tuple[int, ...]) -> None:
    """Refuse an example that the network cannot halve as often as it must."""
    if any(side % model.side_multiple for side in shape):
        raise ValueError(f"this model needs sides that are multiples of {model.side_multiple}, got {shape}")


def sample_shape(
    model: CategoricalModel, num_samples: int, event_shape: tuple[int, ...] | None, unknown: dict[str, object]
) -> torch.Size:
    """The shape of a sample, once all that was asked for is possible; `unknown` are settings that nothing takes."""
    if unknown:
        raise ValueError(f"sampling from {type(model).__name__} has no setting {', '.join(unknown)}")
    shape = torch.Size(model.event_shape if event_shape is None else event_shape)
    if num_samples < 1:
        raise ValueError(f"`num_samples` must be at least 1, got {num_samples}")
    if len(shape) != len(model.event_shape) or min(shape) < 1:
        raise ValueError(f"a sample cannot have shape {tuple(shape)}; the model's is {tuple(model.event_shape)}")
    check_sides(model, tuple(shape))
    return shape
