"""Probability densities over tensors (*D, C): elementary ones, conditional ones, and flows."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from unordinal.flows.bijection import Bijection
from unordinal.numerics import Rng, sum_except_batch

LOG_TWO_PI = math.log(2 * math.pi)


class Density(nn.Module, ABC):
    """The interface of a probability density over examples of shape (*D, C).

    A density may be conditional: it then reads a condition `cond` of shape (B, *D, H).

    Attributes:
        event_shape: the shape (*D, C) of an example; () if the condition determines it.

    >>> density: Density = StandardNormal((5, 3))
    >>> v, log_prob = density.sample(2)
    >>> torch.allclose(density.log_prob(v), log_prob)
    True
    """

    event_shape: tuple[int, ...]

    @abstractmethod
    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        """Compute the log-density of every example.

        Args:
            v: the examples, of shape (B, *D, C).
            cond: the condition, of shape (B, *D, H).

        Returns:
            The log-densities in nats, of shape (B,).
        """

    @abstractmethod
    def sample(
        self, num: int, cond: Tensor | None = None, *, event_shape: tuple[int, ...] | None = None, generator: Rng = None
    ) -> tuple[Tensor, Tensor]:
        """Draw examples and compute their log-densities.

        Args:
            num: the number N of examples.
            cond: the condition, of shape (N, *D, H).
            event_shape: the shape of an example, where it should differ from the density's own.
            generator: the random number generator; default: torch's global one.

        Returns:
            The examples, of shape (N, *D, C), and their log-densities, of shape (N,).
        """


class Factorised(Density):
    """Independent elements that all have the same one-dimensional density, which a subclass defines."""

    like: Tensor

    def __init__(self, event_shape: tuple[int, ...]):
        super().__init__()
        self.event_shape = tuple(event_shape)
        self.register_buffer("like", torch.empty(0), persistent=False)  # tells the device and the dtype of draws

    @abstractmethod
    def draw(self, shape: tuple[int, ...], generator: Rng) -> Tensor:
        """Draw independent elements."""

    @abstractmethod
    def log_density(self, v: Tensor) -> Tensor:
        """Return the log-density of each element."""

    def scaled_log_density(self, v: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
        """Return the log-density of each element of v = mean + scale * noise, where the noise has this density."""
        return self.log_density((v - mean) * torch.exp(-log_scale)) - log_scale

    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        return sum_except_batch(self.log_density(v))

    def sample(
        self, num: int, cond: Tensor | None = None, *, event_shape: tuple[int, ...] | None = None, generator: Rng = None
    ) -> tuple[Tensor, Tensor]:
        v = self.draw((num, *(event_shape or self.event_shape)), generator)
        return v, self.log_prob(v, cond)


class StandardNormal(Factorised):
    """Independent normals with mean 0 and variance 1.

    Args:
        event_shape: the shape (*D, C) of an example.

    >>> StandardNormal((5, 3)).sample(2)[0].shape
    torch.Size([2, 5, 3])
    """

    def draw(self, shape: tuple[int, ...], generator: Rng) -> Tensor:
        return torch.randn(shape, generator=generator, device=self.like.device, dtype=self.like.dtype)

    def log_density(self, v: Tensor) -> Tensor:
        return -0.5 * (v.square() + LOG_TWO_PI)


class StandardLogistic(Factorised):
    """Independent standard logistics: each element is distributed as the logit of uniform noise on (0, 1).

    Args:
        event_shape: the shape (*D, C) of an example.

    >>> StandardLogistic((5, 3)).sample(2)[0].shape
    torch.Size([2, 5, 3])
    """

    def draw(self, shape: tuple[int, ...], generator: Rng) -> Tensor:
        # The log of the ratio of two exponentials is accurate in both tails; logit(u) of a float32 u stops at 16.
        like = self.like
        tiny = torch.finfo(like.dtype).tiny
        first, second = (
            torch.empty(shape, device=like.device, dtype=like.dtype).exponential_(generator=generator).clamp(min=tiny)
            for _ in range(2)
        )
        return first.log() - second.log()

    def log_density(self, v: Tensor) -> Tensor:
        return logsigmoid(v) + logsigmoid(-v)


class ConditionalNoise(Density):
    """Independent noise, shifted and scaled by a network that reads the condition.

    Args:
        net: a network from the condition (B, *D, H) to (B, *D, 2 C): C means, then C log-scales.
        noise: the density of the noise before it is shifted and scaled.
        mean: a constant added to the means. It is the initial mean if the network's output starts at zero.
        log_scale: a constant added to the log-scales.
    """

    def __init__(self, net: nn.Module, noise: Factorised, *, mean: float = 0.0, log_scale: float = 0.0):
        super().__init__()
        self.net, self.noise, self.mean, self.log_scale = net, noise, mean, log_scale
        self.event_shape = ()

    def parameters_of(self, cond: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return means and log-scales, both of shape (B, *D, C)."""
        if cond is None:
            raise ValueError(f"{type(self).__name__} needs a condition; pass cond")
        mean, log_scale = self.net(cond).chunk(2, dim=-1)
        return mean + self.mean, log_scale + self.log_scale

    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        return sum_except_batch(self.noise.scaled_log_density(v, *self.parameters_of(cond)))

    def sample(
        self, num: int, cond: Tensor | None = None, *, event_shape: tuple[int, ...] | None = None, generator: Rng = None
    ) -> tuple[Tensor, Tensor]:
        mean, log_scale = self.parameters_of(cond)
        if len(mean) != num:
            raise ValueError(f"num must equal the batch size of the condition, {len(mean)}; got {num}")
        noise = self.noise.draw(tuple(mean.shape), generator).to(mean)
        # The log-density follows from the noise itself, which avoids the rounding of recovering it from the draw.
        return mean + log_scale.exp() * noise, sum_except_batch(self.noise.log_density(noise) - log_scale)


class ConditionalNormal(ConditionalNoise):
    """Independent normals whose means and scales a network computes from the condition; see `ConditionalNoise`.

    >>> density = ConditionalNormal(nn.Linear(4, 2 * 3))
    >>> density.sample(2, torch.randn(2, 5, 4))[0].shape
    torch.Size([2, 5, 3])
    """

    def __init__(self, net: nn.Module, **shifts: float):
        super().__init__(net, StandardNormal(()), **shifts)


class ConditionalLogistic(ConditionalNoise):
    """Independent logistics whose means and scales a network computes from the condition; see `ConditionalNoise`.

    >>> density = ConditionalLogistic(nn.Linear(4, 2 * 3))
    >>> density.sample(2, torch.randn(2, 5, 4))[0].shape
    torch.Size([2, 5, 3])
    """

    def __init__(self, net: nn.Module, **shifts: float):
        super().__init__(net, StandardLogistic(()), **shifts)


class Flow(Density):
    """A normalizing flow: the density of v when z = bijection(v) has the base density.

    Args:
        bijection: the transformation from data v to noise z.
        base: the density of the noise.

    >>> from unordinal.flows.linear import InvertibleLinear
    >>> flow = Flow(InvertibleLinear(3), StandardNormal((5, 3)))
    >>> v, log_prob = flow.sample(2)
    >>> torch.allclose(flow.log_prob(v), log_prob, atol=1e-4)
    True
    """

    def __init__(self, bijection: Bijection, base: Density):
        super().__init__()
        self.bijection, self.base = bijection, base
        self.event_shape = base.event_shape

    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        z, log_det = self.bijection(v, cond)
        return self.base.log_prob(z, cond) + log_det

    def sample(
        self, num: int, cond: Tensor | None = None, *, event_shape: tuple[int, ...] | None = None, generator: Rng = None
    ) -> tuple[Tensor, Tensor]:
        z, log_prob = self.base.sample(num, cond, event_shape=event_shape, generator=generator)
        v, log_det = self.bijection.inverse(z, cond)
        return v, log_prob - log_det
