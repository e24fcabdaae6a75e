"""The interface of a noise process: everything that a diffusion must know of its noise, and no more."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

Time = float
"""A step 0..T of a process in discrete time, or a number in [0, 1] of one in continuous time; 0 is the data."""


class NoiseProcess(ABC):
    """How classes turn into noise, and what undoes it.

    Letters as in the paper: x = x_0 the data (B, *D), z = x_t the noisy classes, which are numbers below
    `num_input_classes` (K, or K + 1 with a mask). Times t (B,) are integers 1..T where `num_steps` is T, and real
    numbers in (0, 1] where it is None; s < t throughout. What the network's output (B, *D, K) means is the process's
    matter: `predicted` turns it into the logits of x_0 that `loss`, `step` and `posterior` take.
    """

    num_classes: int
    num_input_classes: int
    num_steps: int | None

    @property
    def num_terms(self) -> int:
        """The bound is `num_terms` times the mean of `loss` over times, plus the prior term."""
        return 1 if self.num_steps is None else self.num_steps

    def time_at(self, position: Tensor) -> Tensor:
        """Times at positions (B,) in [0, 1), such that uniform positions give uniform times."""
        if self.num_steps is None:
            return 1 - position  # in (0, 1]
        return (position * self.num_steps).floor().long().clamp(max=self.num_steps - 1) + 1

    def network_time(self, t: Tensor) -> Tensor:
        """What a network is told of times t: (B,) float32 in (0, 1]."""
        return t.to(torch.float32) if self.num_steps is None else t.to(torch.float32) / self.num_steps

    def spaced_times(self, steps: int | None, start: float = 1.0) -> list[Time]:
        """`steps` + 1 times from `start`, a part of the whole chain, down to 0, evenly spaced; None takes them all."""
        if self.num_steps is None:
            if steps is None or steps < 1:
                raise ValueError(f"time is continuous: give `steps` of at least 1, got {steps}")
            return [start * (steps - i) / steps for i in range(steps + 1)]
        first = max(1, round(start * self.num_steps))
        steps = first if steps is None else steps
        if not 1 <= steps <= first:
            raise ValueError(f"`steps` must be between 1 and {first}, the model's own; got {steps}")
        return [round(first * (steps - i) / steps) for i in range(steps + 1)]

    @abstractmethod
    def draw_prior(
        self, shape: tuple[int, ...], device: torch.device, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Draw from p(x_T), with which the reverse chain begins."""

    @abstractmethod
    def log_prior(self, z: Tensor) -> Tensor:
        """log p(x_T = z): (B, *D) -> (B,) nats."""

    @abstractmethod
    def prior_term(self, x: Tensor) -> Tensor:
        """KL(q(x_T | x_0) || p(x_T)): (B, *D) -> (B,) nats."""

    @abstractmethod
    def corrupt(self, x: Tensor, t: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw x_t ~ q(x_t | x_0): (B, *D) classes and (B,) times -> (B, *D)."""

    @abstractmethod
    def predicted(self, output: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """Logits of x_0 as `loss`, `step` and `posterior` take them, from the network's output: (B, *D, K)."""

    @abstractmethod
    def loss(self, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """The bound's term at times t: (B,) nats, with x_t = z drawn by `corrupt`."""

    @abstractmethod
    def step(self, logits: Tensor, z: Tensor, t: Time, s: Time, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw x_s ~ p(x_s | x_t = z) for any s < t: (B, *D) -> (B, *D)."""

    @abstractmethod
    def marginal(self, x: Tensor, t: Tensor) -> Tensor:
        """q(x_t | x_0) as probabilities: (B, *D) -> (B, *D, num_input_classes) float64. For tests and tools."""

    @abstractmethod
    def posterior(self, r: Tensor, z: Tensor, t: Tensor, s: Tensor) -> Tensor:
        """p(x_s | x_t = z) for x_0 ~ r: (B, *D, K) -> (B, *D, num_input_classes). For tests and tools.

        A one-hot r gives q(x_s | x_t, x_0).
        """

    @property
    def has_paths(self) -> bool:
        """Whether `forward_step` and `log_reverse` give the importance weight of a whole path."""
        return False

    def forward_step(
        self,
        x: Tensor,  # noqa: ARG002
        t: int,  # noqa: ARG002
        *,
        generator: torch.Generator | None = None,  # noqa: ARG002
    ) -> tuple[Tensor, Tensor]:
        """Draw x_t ~ q(x_t | x_{t-1} = x): x_t (B, *D) and its log-probability (B,)."""
        raise ValueError(f"{type(self).__name__} has no importance weights")

    def log_reverse(self, logits: Tensor, z: Tensor, x_s: Tensor, t: int, s: int) -> Tensor:  # noqa: ARG002
        """log p(x_s | x_t = z): (B,) nats."""
        raise ValueError(f"{type(self).__name__} has no importance weights")
