"""Densities over (B, *D, C): simple ones, and flows over them."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from unordinal.flows.bijection import Bijection
from unordinal.numerics import sum_except_batch

LOG_TWO_PI = math.log(2 * math.pi)


class Density(nn.Module, ABC):
    """A distribution with a density over examples of shape (*D, C), maybe given `cond` (B, *D, H)."""

    event_shape: tuple[int, ...]  # () where the condition has it

    @abstractmethod
    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        """Log-density: (B, *D, C) -> (B,)."""

    @abstractmethod
    def sample(
        self,
        num: int,
        cond: Tensor | None = None,
        *,
        event_shape: tuple[int, ...] | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draws (N, *D, C) and their log-densities (N,); `event_shape` replaces the density's own."""


class Factorised(Density):
    """The same one-dimensional density at every place; subclasses say which."""

    like: Tensor

    def __init__(self, event_shape: tuple[int, ...]):
        super().__init__()
        self.event_shape = tuple(event_shape)
        self.register_buffer("like", torch.empty(0), persistent=False)  # carries device and dtype

    @abstractmethod
    def draw(self, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """Independent draws."""

    @abstractmethod
    def log_density(self, v: Tensor) -> Tensor:
        """Log-density of each element."""

    def scaled_log_density(self, v: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
        """Log-density of each element of mean + scale * noise, for noise of this kind."""
        return self.log_density((v - mean) * torch.exp(-log_scale)) - log_scale

    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return sum_except_batch(self.log_density(v))

    def sample(
        self,
        num: int,
        cond: Tensor | None = None,
        *,
        event_shape: tuple[int, ...] | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        v = self.draw((num, *(event_shape or self.event_shape)), generator)
        return v, self.log_prob(v, cond)


class StandardNormal(Factorised):
    """Normal with mean 0 and variance 1."""

    def draw(self, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        return torch.randn(shape, generator=generator, device=self.like.device, dtype=self.like.dtype)

    def log_density(self, v: Tensor) -> Tensor:
        return -0.5 * (v.square() + LOG_TWO_PI)


class StandardLogistic(Factorised):
    """The logistic distribution: the logit of uniform noise on (0, 1)."""

    def draw(self, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        # the ratio of two exponentials: exact in both tails, where logit(u) of a float32 u stops at 16
        like = self.like
        tiny = torch.finfo(like.dtype).tiny
        first, second = (
            torch.empty(shape, device=like.device, dtype=like.dtype).exponential_(generator=generator).clamp(min=tiny)
            for _ in range(2)
        )
        return first.log() - second.log()

    def log_density(self, v: Tensor) -> Tensor:
        return logsigmoid(v) + logsigmoid(-v)


class DiagonalNormal(Density):
    """Independent normals with a learned mean and scale per place and channel."""

    def __init__(self, event_shape: tuple[int, ...]):
        super().__init__()
        self.event_shape = tuple(event_shape)
        self.noise = StandardNormal(event_shape)
        self.mean = nn.Parameter(torch.zeros(event_shape))
        self.log_scale = nn.Parameter(torch.zeros(event_shape))

    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return sum_except_batch(self.noise.scaled_log_density(v, self.mean, self.log_scale))

    def sample(
        self,
        num: int,
        cond: Tensor | None = None,
        *,
        event_shape: tuple[int, ...] | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        shape = tuple(self.mean.shape)
        if event_shape is not None and tuple(event_shape) != shape:
            raise ValueError(f"a learned diagonal normal of shape {shape} cannot draw {tuple(event_shape)}")
        noise = self.noise.draw((num, *shape), generator)
        v = self.mean + self.log_scale.exp() * noise
        return v, self.log_prob(v, cond)


class ConditionalNoise(Density):
    """Noise of one kind everywhere, moved and scaled by what a network reads off `cond`: (B, *D, H) -> (B, *D, 2 C).

    `mean` and `log_scale` are added to what it says: where a network whose output starts at zero begins.
    """

    def __init__(self, net: nn.Module, noise: Factorised, *, mean: float = 0.0, log_scale: float = 0.0):
        super().__init__()
        self.net, self.noise, self.mean, self.log_scale = net, noise, mean, log_scale
        self.event_shape = ()

    def parameters_of(self, cond: Tensor | None) -> tuple[Tensor, Tensor]:
        if cond is None:
            raise ValueError(f"{type(self).__name__} needs its condition")
        mean, log_scale = self.net(cond).chunk(2, dim=-1)
        return mean + self.mean, log_scale + self.log_scale

    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        return sum_except_batch(self.noise.scaled_log_density(v, *self.parameters_of(cond)))

    def sample(
        self,
        num: int,
        cond: Tensor | None = None,
        *,
        event_shape: tuple[int, ...] | None = None,  # noqa: ARG002 (the condition has it)
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        mean, log_scale = self.parameters_of(cond)
        if len(mean) != num:
            raise ValueError(f"asked for {num} draws given {len(mean)} conditions")
        noise = self.noise.draw(tuple(mean.shape), generator).to(mean)
        # the density of a draw is that of its noise: nothing to subtract and divide again
        return mean + log_scale.exp() * noise, sum_except_batch(self.noise.log_density(noise) - log_scale)


class ConditionalNormal(ConditionalNoise):
    """Independent normals given `cond`."""

    def __init__(self, net: nn.Module, *, mean: float = 0.0, log_scale: float = 0.0):
        super().__init__(net, StandardNormal(()), mean=mean, log_scale=log_scale)


class ConditionalLogistic(ConditionalNoise):
    """Independent logistics given `cond`."""

    def __init__(self, net: nn.Module, *, mean: float = 0.0, log_scale: float = 0.0):
        super().__init__(net, StandardLogistic(()), mean=mean, log_scale=log_scale)


class Flow(Density):
    """The density of v whose image under a bijection has the base density."""

    def __init__(self, bijection: Bijection, base: Density):
        super().__init__()
        self.bijection, self.base = bijection, base
        self.event_shape = base.event_shape

    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        z, log_det = self.bijection(v, cond)
        return self.base.log_prob(z, cond) + log_det

    def sample(
        self,
        num: int,
        cond: Tensor | None = None,
        *,
        event_shape: tuple[int, ...] | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        z, log_prob = self.base.sample(num, cond, event_shape=event_shape, generator=generator)
        v, log_det = self.bijection.inverse(z, cond)
        return v, log_prob - log_det
