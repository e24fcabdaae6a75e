"""Discrete flows (Tran et al. 2019): bijections of the classes themselves, modulo K, over a factorised base."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.abilities import TrainingHooks
from unordinal.checks import sample_shape
from unordinal.model import ExactModel, evaluating
from unordinal.nets.linear import Linear
from unordinal.numerics import Rng, class_counts, draw_categorical, one_hot, sum_except_batch
from unordinal.progress import Advance, current_watcher


def units_of(num_classes: int) -> list[int]:
    """The numbers that can be divided by modulo K.

    >>> units_of(6), units_of(5)
    ([1, 5], [1, 2, 3, 4])
    """
    return [s for s in range(1, num_classes) if math.gcd(s, num_classes) == 1] or [1]


def straight_through(logits: Tensor, temperature: float) -> Tensor:
    """The one-hot of the largest logit, with the gradient of softmax(logits / temperature): (..., K) -> (..., K)."""
    soft = torch.softmax(logits / temperature, dim=-1)
    hard = one_hot(logits.argmax(dim=-1), logits.shape[-1], soft.dtype)
    return hard + (soft - soft.detach())


def shifted_back(x: Tensor, location: Tensor) -> Tensor:
    """One-hots of (x - location) mod K, linear in both: two (..., K) -> (..., K).

    out[k] = sum_j x[(k + j) mod K] location[j], a correlation, by Fourier transform.
    """
    product = torch.fft.rfft(x) * torch.fft.rfft(location).conj()
    return torch.fft.irfft(product, n=x.shape[-1])


class ModuloLayer(nn.Module, ABC):
    """u = (x - location) / scale modulo K at every place that moves; location and scale are argmaxes of logits.

    Subclasses give the logits, from places that are known when x is found again from u: that makes it a bijection of
    {0..K-1}^L, whatever the weights. `scale` divides by a unit modulo K.
    """

    scales: Tensor
    inverses: Tensor
    table: Tensor

    def __init__(self, num_classes: int, *, has_scale: bool, temperature: float):
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"the temperature of straight-through gradients must be above 0, got {temperature:g}")
        self.num_classes, self.has_scale, self.temperature = num_classes, has_scale, temperature
        units = units_of(num_classes)
        self.register_buffer("scales", torch.tensor(units), persistent=False)
        self.register_buffer("inverses", torch.tensor([pow(s, -1, num_classes) for s in units]), persistent=False)
        # row s: the place in the one-hot of x from which that of u = x / s comes, which is s u
        table = [[s * u % num_classes for u in range(num_classes)] for s in units]
        self.register_buffer("table", torch.tensor(table), persistent=False)
        self.num_outputs = num_classes + (len(units) if has_scale else 0)

    @abstractmethod
    def logits(self, x: Tensor) -> Tensor:
        """What the network says of every place, from one-hots: (B, L, K) -> (B, L, num_outputs)."""

    def moves(self, x: Tensor) -> Tensor:
        """Which places move: (L, 1), 1 or 0."""
        return x.new_ones(x.shape[1], 1)

    def forward(self, x: Tensor) -> Tensor:
        """One-hots of x to those of u, (B, L, K), with straight-through gradients to the weights and to x."""
        location, scale = self.parts(self.logits(x))
        u = shifted_back(x, straight_through(location, self.temperature))
        if self.has_scale:
            chosen = straight_through(scale, self.temperature)  # (B, L, S)
            u = torch.einsum("bls,blsk->blk", chosen, u[..., self.table])
        return torch.lerp(x, u, self.moves(x))

    def noise_of(self, x: Tensor) -> Tensor:
        """u of classes x, in integers: (B, L) -> (B, L)."""
        location, scale = self.parts(self.logits(self.one_hot(x)))
        u = (x - location.argmax(dim=-1)) % self.num_classes
        if self.has_scale:
            u = u * self.inverses[scale.argmax(dim=-1)] % self.num_classes
        return torch.where(self.moves(x).squeeze(-1) > 0, u, x)

    def data_of(self, u: Tensor, logits: Tensor) -> Tensor:
        """x of u where it moves, in integers, from the logits there: (...), (..., num_outputs) -> (...)."""
        location, scale = self.parts(logits)
        if self.has_scale:
            u = u * self.scales[scale.argmax(dim=-1)]
        return (u + location.argmax(dim=-1)) % self.num_classes

    @abstractmethod
    def inverse(self, u: Tensor, advance: Advance | None = None) -> Tensor:
        """Return the classes x of u: (B, L) -> (B, L); `advance` receives the number of positions done."""

    def parts(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        location, scale = logits.split([self.num_classes, self.num_outputs - self.num_classes], dim=-1)
        return location, scale

    def one_hot(self, x: Tensor) -> Tensor:
        kind = next(self.parameters()).dtype
        return F.one_hot(x, self.num_classes).to(kind)


class AutoregressiveModulo(ModuloLayer):
    """Each place is moved by those before it, or with `is_reversed` after it; `net` is a CausalNet over one-hots."""

    def __init__(
        self, net: nn.Module, width: int, num_classes: int, *, has_scale: bool, temperature: float, is_reversed: bool
    ):
        super().__init__(num_classes, has_scale=has_scale, temperature=temperature)
        self.net, self.is_reversed = net, is_reversed
        self.head = Linear(width, self.num_outputs)

    def turned(self, x: Tensor) -> Tensor:
        return x.flip(1) if self.is_reversed else x

    def logits(self, x: Tensor) -> Tensor:
        return self.turned(self.head(self.net(self.turned(x))))

    def inverse(self, u: Tensor, advance: Advance | None = None) -> Tensor:
        net: Any = self.net
        u = self.turned(u)
        state, last, found = net.init_state(len(u)), None, []
        for place in range(u.shape[1]):
            features, state = net.step(last, state)
            x = self.data_of(u[:, place], self.head(features))
            last = self.one_hot(x)
            found.append(x)
            if advance is not None:
                advance(len(u))
        return self.turned(torch.stack(found, dim=1))


class BipartiteModulo(ModuloLayer):
    """Every second place is moved by the others.

    `make_net` gives a network from one-hots (B, L, K) to (B, L, num_outputs), for those two numbers.
    """

    def __init__(
        self,
        make_net: Callable[[int, int], nn.Module],
        num_classes: int,
        *,
        has_scale: bool,
        temperature: float,
        moves_odd: bool,
    ):
        super().__init__(num_classes, has_scale=has_scale, temperature=temperature)
        self.net, self.moves_odd = make_net(num_classes, self.num_outputs), moves_odd

    def moves(self, x: Tensor) -> Tensor:
        place = torch.arange(x.shape[1], device=x.device)
        return ((place % 2 == 1) == self.moves_odd).to(self.kind_of(x)).unsqueeze(-1)

    def kind_of(self, x: Tensor) -> torch.dtype:
        return x.dtype if x.is_floating_point() else next(self.parameters()).dtype

    def logits(self, x: Tensor) -> Tensor:
        return self.net(x * (1 - self.moves(x)))

    def inverse(self, u: Tensor, advance: Advance | None = None) -> Tensor:
        x = self.data_of(u, self.logits(self.one_hot(u)))  # places that stay are the same in u and in x
        if advance is not None:
            advance(u.numel())
        return torch.where(self.moves(u).squeeze(-1) > 0, x, u)


class DiscreteFlow(ExactModel):
    """A discrete flow: P(x) = base(f(x)), exactly, for bijections f of the classes themselves.

    Args:
        layers: the bijections, from x to u.
        num_classes: the number of classes K.
        event_shape: (L,), the length of every example; the base has probabilities for each position.

    >>> from unordinal.nets.sequence import CausalTransformer
    >>> net = CausalTransformer(5, width=8, num_blocks=1, num_heads=1)
    >>> settings = {"has_scale": False, "temperature": 0.1, "is_reversed": False}
    >>> model = DiscreteFlow([AutoregressiveModulo(net, 8, 5, **settings)], num_classes=5, event_shape=(6,))
    >>> model.sample(3).shape
    torch.Size([3, 6])
    """

    def __init__(self, layers: list[ModuloLayer], *, num_classes: int, event_shape: tuple[int, ...]):
        super().__init__(num_classes, event_shape)
        self.layers = nn.ModuleList(layers)
        self.base = nn.Parameter(torch.zeros(*event_shape, num_classes))
        self.is_fresh = True  # the base has seen no data yet
        self.register_load_state_dict_post_hook(note_loaded)

    def stack(self) -> list[ModuloLayer]:
        return [layer for layer in self.layers if isinstance(layer, ModuloLayer)]

    @property
    def hooks(self) -> TrainingHooks:
        return DiscreteFlowHooks(self)

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        """Minus the exact log-probability, whose gradient to the layers is the straight-through estimate.

        In training mode the first batch starts the base.
        """
        self.check_length(x.shape[1])
        if self.training and self.is_fresh:
            self.hooks.initialise(x)
        u = one_hot(x, self.num_classes, self.base.dtype)
        for layer in self.stack():
            u = layer(u)
        return -sum_except_batch(u * torch.log_softmax(self.base, dim=-1))

    def unchecked_log_prob(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        self.check_length(x.shape[1])
        u = x
        for layer in self.stack():
            u = layer.noise_of(u)
        log_base = torch.log_softmax(self.base, dim=-1).expand(len(x), -1, -1)
        return sum_except_batch(log_base.gather(-1, u.unsqueeze(-1)))

    def check_length(self, length: int) -> None:
        if length != self.event_shape[0]:
            raise ValueError(f"the base has {self.event_shape[0]} places, got sequences of {length}")

    @torch.no_grad()
    def sample(
        self, num_samples: int, *, generator: Rng = None, event_shape: tuple[int, ...] | None = None, **settings: Any
    ) -> Tensor:
        """Draw u from the base and find its x: (N, L)."""
        shape = sample_shape(self, num_samples, event_shape, settings)
        if shape != self.event_shape:
            raise ValueError(
                f"the base has shape {tuple(self.event_shape)} and cannot draw {tuple(shape)}; leave out `length`"
            )
        watcher, total = current_watcher(), len(self.layers) * shape.numel()
        with evaluating(self):
            x = draw_categorical(self.base.expand(num_samples, *self.base.shape), generator)
            for layer in reversed(self.stack()):
                x = layer.inverse(x, lambda places: watcher.advance(places / total))
        return x


class DiscreteFlowHooks(TrainingHooks):
    """The base starts from the frequencies of the classes in a first batch, smoothed; a trained one stays."""

    def __init__(self, model: DiscreteFlow):
        self.model = model

    @torch.no_grad()
    def initialise(self, x: Tensor) -> None:
        base = self.model.base
        if base.is_meta or not bool(base.any()):
            counts = class_counts(x, self.model.num_classes).to(base) + 1.0
            base.copy_(torch.log(counts / counts.sum()).expand_as(base))
        self.model.is_fresh = False


def note_loaded(model: Any, _keys: Any) -> None:
    """Weights that were loaded have seen data, unless the base is still what it was at first."""
    model.is_fresh = not bool(model.base.any())
