"""The interface of a noise process, which defines how a diffusion adds noise to classes and removes it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from unordinal.columns import Classes
from unordinal.diffusion.choosing import Chooser, independent
from unordinal.diffusion.schedules import Schedule
from unordinal.numerics import Rng, sum_except_batch

Time = float
"""A step 0..T of a process in discrete time, or a number in [0, 1] of a process in continuous time; 0 is the data."""


class NoiseProcess(ABC):
    """The interface of a noise process: how classes are corrupted by noise, and how a network's predictions undo it.

    The letters are those of the paper: x = x_0 is the data, of shape (B, *D), and z = x_t are the noisy classes. Times
    t have shape (B,); they are integers 1..T in discrete time and real numbers in (0, 1] in continuous time. s is a
    time before t. A process decides what the output of the network (B, *D, K) means: `predicted` converts it to the
    logits of x_0 that `loss` and `step` expect. Logits of columns with numbers of classes of their own are ragged; see
    `unordinal.columns.Classes`. Positions after the end of an example hold the class `pad`: they stay as they are, and
    count nowhere.

    Args:
        num_classes: the number of classes K of the data, or one number for each column.
        schedule: how much noise there is at a time, in discrete steps or in continuous time.
        has_mask: whether there is a class `mask`, K or K + 1, that hides a position.
        ends: whether examples may end early, after which all positions hold the class `pad`, K.

    >>> from unordinal.diffusion.schedules import cosine_schedule
    >>> from unordinal.diffusion.uniform import UniformNoise
    >>> noise: NoiseProcess = UniformNoise(27, cosine_schedule(100))
    >>> noise.spaced_times(4)
    [100, 75, 50, 25, 0]
    """

    converts_by_time = False  # whether `predicted` depends on the time

    def __init__(
        self,
        num_classes: int | Sequence[int] | Classes,
        schedule: Schedule,
        *,
        has_mask: bool = False,
        ends: bool = False,
    ):
        self.classes, self.schedule = Classes(num_classes), schedule
        self.num_classes = self.classes.most
        self.pad = self.num_classes if ends else None
        self.mask = self.num_classes + ends if has_mask else None

    @property
    def num_input_classes(self) -> int:
        """The number of classes that z can have: those of the data, the mask and the class after an end."""
        return self.num_classes + (self.mask is not None) + (self.pad is not None)

    def inside(self, x: Tensor) -> Tensor:
        """Return the classes with any class of the data after an end, where it does not count: (B, *D)."""
        return x if self.pad is None else torch.where(x == self.pad, 0, x)

    def with_ends(self, new: Tensor, x: Tensor) -> Tensor:
        """Return new classes, with the ends of x (B, *D) where they were."""
        return new if self.pad is None else torch.where(x == self.pad, x, new)

    def total(self, terms: Tensor, x: Tensor) -> Tensor:
        """Sum terms (B, *D) over the positions of each example that come before the end of x (B, *D): (B,)."""
        return sum_except_batch(terms if self.pad is None else torch.where(x == self.pad, 0.0, terms))

    @property
    def num_steps(self) -> int | None:
        """The number of steps T in discrete time; None in continuous time."""
        return self.schedule.num_steps

    @property
    def num_terms(self) -> int:
        """The number of terms of the bound: its negative is `num_terms` times the mean `loss`, plus `prior_term`."""
        return 1 if self.num_steps is None else self.num_steps

    def time_at(self, position: Tensor) -> Tensor:
        """Return the times at positions (B,) in [0, 1); uniform positions give uniform times."""
        if self.num_steps is None:
            return 1 - position  # in (0, 1]
        return (position * self.num_steps).floor().long().clamp(max=self.num_steps - 1) + 1

    def network_time(self, t: Tensor) -> Tensor:
        """Return the times t as the network reads them: (B,) float32 in (0, 1]."""
        return t.to(torch.float32) if self.num_steps is None else t.to(torch.float32) / self.num_steps

    def spaced_times(self, steps: int | None, start: float = 1.0, spacing: float = 1.0) -> list[Time]:
        """Return the times that a sampler visits.

        Args:
            steps: the number of steps. None takes every step of a process in discrete time.
            start: the fraction of the whole chain at which to start.
            spacing: the exponent of the times: 1 for even spacing, above 1 for times that lie closer near the data.

        Returns:
            `steps` + 1 times, from the first one down to 0.
        """
        if self.num_steps is None:
            if steps is None or steps < 1:
                raise ValueError(f"time is continuous: give `steps` of at least 1, got {steps}")
            return [start * ((steps - i) / steps) ** spacing for i in range(steps + 1)]
        first = max(1, round(start * self.num_steps))
        steps = first if steps is None else steps
        if not 1 <= steps <= first:
            raise ValueError(f"`steps` must be between 1 and {first}, the model's own; got {steps}")
        times = [round(first * ((steps - i) / steps) ** spacing) for i in range(steps + 1)]
        for index in range(steps, 0, -1):  # no step is taken twice
            times[index - 1] = max(times[index - 1], times[index] + 1)
        return times

    @abstractmethod
    def draw_prior(self, shape: tuple[int, ...], device: torch.device, *, generator: Rng = None) -> Tensor:
        """Draw from the prior p(x_T), with which the reverse chain begins.

        Args:
            shape: the shape (B, *D) of the result.
            device: the device of the result.
            generator: the random number generator; default: torch's global one.
        """

    @abstractmethod
    def log_prior(self, z: Tensor) -> Tensor:
        """Return log p(x_T = z) in nats: (B, *D) -> (B,)."""

    @abstractmethod
    def prior_term(self, x: Tensor) -> Tensor:
        """Return KL(q(x_T | x_0) || p(x_T)) in nats: (B, *D) -> (B,)."""

    @abstractmethod
    def corrupt(self, x: Tensor, t: Tensor, *, generator: Rng = None) -> Tensor:
        """Draw noisy classes x_t ~ q(x_t | x_0).

        Args:
            x: the data x_0, of shape (B, *D).
            t: times, of shape (B,).
            generator: the random number generator; default: torch's global one.

        Returns:
            x_t, of shape (B, *D).
        """

    @abstractmethod
    def predicted(self, output: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """Convert the output of the network, which read x_t = z at times t, to the logits of x_0, both (B, *D, K)."""

    @abstractmethod
    def loss(self, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """Return the terms of the negative ELBO at times t.

        Args:
            logits: the logits of x_0, from `predicted`, of shape (B, *D, K).
            x: the data x_0, of shape (B, *D).
            z: the noisy classes x_t, drawn by `corrupt`, of shape (B, *D).
            t: times, of shape (B,).

        Returns:
            The terms in nats, of shape (B,).
        """

    @abstractmethod
    def step(
        self, logits: Tensor, z: Tensor, t: Time, s: Time, *, generator: Rng = None, choose: Chooser = independent
    ) -> Tensor:
        """Draw x_s ~ p(x_s | x_t = z) for any s < t.

        Args:
            logits: the logits of x_0, from `predicted`, of shape (B, *D, K).
            z: the noisy classes x_t, of shape (B, *D).
            t: the time of z.
            s: the time of the result, before t.
            generator: the random number generator; default: torch's global one.
            choose: chooses the positions that change, from the probability of each; by default independently.

        Returns:
            x_s, of shape (B, *D).
        """

    @abstractmethod
    def marginal(self, x: Tensor, t: Tensor) -> Tensor:
        """Return the probabilities q(x_t | x_0), for tests and tools: (B, *D) -> (B, *D, num_input_classes) float64."""

    @abstractmethod
    def posterior(self, r: Tensor, z: Tensor, t: Tensor, s: Tensor) -> Tensor:
        """Return the probabilities p(x_s | x_t = z), for tests and tools: (B, *D, K) -> (B, *D, num_input_classes).

        r (B, *D, K) are predicted probabilities of x_0; a one-hot r gives q(x_s | x_t, x_0).
        """

    def impose(self, z: Tensor, known: Tensor | None, t: Time, *, generator: Rng = None) -> Tensor:
        """Return x_t = z with the known classes in their places, corrupted as everything is at time t.

        Args:
            z: noisy classes x_t, of shape (B, *D).
            known: classes of positions that are given, -1 where they are free, of shape (B, *D); None for none.
            t: the time.
            generator: the random number generator; default: torch's global one.
        """
        if known is None:
            return z
        if self.mask is not None:  # known positions are shown from the start
            return torch.where(known < 0, z, known)
        given = known.clamp(min=0)
        noisy = given if t == 0 else self.corrupt(given, torch.full((len(z),), t), generator=generator)
        return torch.where(known < 0, z, noisy)

    def can_redraw(self, z: Tensor) -> Tensor:
        """Return which positions of x_t = z a Gibbs step may redraw: (B, *D) booleans."""
        is_shown = torch.ones_like(z, dtype=torch.bool) if self.mask is None else z != self.mask
        return is_shown if self.pad is None else is_shown & (z != self.pad)

    def hide(self, z: Tensor, chosen: Tensor) -> Tensor:
        """Return what the network reads when the chosen positions of x_t = z are to be redrawn: (B, *D)."""
        return z if self.mask is None else torch.where(chosen, self.mask, z)

    def redraw(self, logits: Tensor, t: Time, *, generator: Rng = None) -> Tensor:
        """Draw x_t of every position given the others at time t, from logits of x_0 (B, *D, K): (B, *D)."""
        x = self.classes.draw(logits, generator)
        if self.mask is not None:  # positions that are shown hold data, at any time
            return x
        return self.corrupt(x, torch.full((len(x),), t), generator=generator)

    def complement(self, x: Tensor, z: Tensor) -> Tensor:
        """Return x corrupted exactly where z is not, if the bound allows to average over the two: (B, *D)."""
        raise ValueError(f"{type(self).__name__} has no complementary corruptions")

    @property
    def has_paths(self) -> bool:
        """Whether the process has what the importance-weighted bound needs: two further methods, of steps t and s < t.

        `forward_step(x, t, generator=...)` draws x_t ~ q(x_t | x_{t-1} = x), and returns it with its log-probability
        (B,). `log_reverse(logits, z, x_s, t, s)` is log p(x_s | x_t = z), of shape (B,).
        """
        return False
