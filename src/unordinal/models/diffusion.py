"""Multinomial diffusion as a model: a network that predicts x_0, and the uniform noise process around it."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.times import TimeSampler, stratified_positions
from unordinal.diffusion.uniform import UniformNoise
from unordinal.model import CategoricalModel

RECONSTRUCTION_STEPS = 50


class MultinomialDiffusion(CategoricalModel):
    """The paper's second model (section 4), for any `net(x_t, time)` -> logits (B, *D, K), time = t/T in (0, 1].

    >>> from unordinal.nets.transformer import TimeTransformer
    >>> net = TimeTransformer(3, width=16, num_blocks=1, global_heads=1)
    >>> model = MultinomialDiffusion(net, num_classes=3, event_shape=(8,), num_steps=10)
    >>> model.sample(2).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        net: nn.Module,
        *,
        num_classes: int,
        event_shape: tuple[int, ...],
        num_steps: int = 1000,
        log_alpha: Tensor | None = None,
        output: str = "leave-one-out",
        times: str = "importance",
    ):
        super().__init__(num_classes, event_shape)
        self.net = net
        self.num_steps = num_steps
        self.noise = UniformNoise(num_classes, cosine_schedule(num_steps) if log_alpha is None else log_alpha)
        if self.noise.num_steps != num_steps:
            raise ValueError(f"log_alpha has {self.noise.num_steps} steps, but num_steps={num_steps}")
        self.is_denoiser = output == "denoiser"
        self.times = TimeSampler(num_steps, times)

    def logits(self, z: Tensor, t: Tensor) -> Tensor:
        """Logits of r, the network's x_0 given x_t = z at times t (B,): (B, *D, K).

        A network that outputs the denoiser p(x_0 | x_t) is brought to the paper's parametrisation by the one term in
        which the two differ, at the class z itself.
        """
        logits = self.net(z, (t.to(torch.float32) / self.num_steps).to(z.device))
        if self.is_denoiser:
            log_alpha = self.noise.log_alpha[t.cpu()]
            shift = torch.log1p(self.num_classes * log_alpha.exp() / -torch.expm1(log_alpha)).to(logits)
            shift = shift.reshape(-1, *([1] * z.dim())).expand(*z.shape, 1)
            logits = logits.scatter_add(-1, z.unsqueeze(-1), -shift)
        return logits

    def loss_at(self, x: Tensor, t: Tensor) -> Tensor:
        """L_t of the bound for times t (B,), with x_t drawn: (B,) nats."""
        z = self.noise.corrupt(x, t)
        return self.noise.loss(self.logits(z, t), x, z, t)

    def prior_term(self, x: Tensor) -> float:
        """KL(q(x_T | x_0) || p(x_T)) of a whole example, in nats."""
        return self.noise.prior_kl() * x[0].numel()

    def draw(self, num: int) -> Tensor:
        return self.times.draw(num)

    def training_loss(self, x: Tensor, draw: Tensor | None = None) -> Tensor:
        self.check_classes(x)
        t = self.draw(len(x)) if draw is None else draw
        weight = 1 / self.times.probabilities()[t - 1]
        return self.loss_at(x, t) * weight.to(torch.float32).to(x.device) + self.prior_term(x)

    def observe(self, draw: Tensor | None, losses: Tensor) -> None:
        if draw is not None and self.times.by_importance:
            weight = 1 / self.times.probabilities()[draw - 1]
            prior = self.noise.prior_kl() * math.prod(self.event_shape)
            self.times.observe(draw, (losses.detach().cpu() - prior) / weight)

    def elbo(self, x: Tensor) -> Tensor:
        """One term of the bound's sum over t per example, the times spread evenly over the batch."""
        self.check_classes(x)
        position = stratified_positions(len(x), torch.rand((), dtype=torch.float64))
        t = (position * self.num_steps).floor().long().clamp(max=self.num_steps - 1) + 1
        return -(self.num_steps * self.loss_at(x, t) + self.prior_term(x))

    def log_weight(self, x: Tensor) -> Tensor:
        """log p(x_0, ..., x_T) - log q(x_1, ..., x_T | x_0) of one drawn path; T network calls."""
        self.check_classes(x)
        total = torch.full((len(x),), -x[0].numel() * math.log(self.num_classes), device=x.device)
        before = x
        for step in range(1, self.num_steps + 1):
            after, log_q = self.noise.forward_step(before, step)
            log_p = self.noise.log_reverse(
                self.logits(after, torch.full((len(x),), step)), after, before, step, step - 1
            )
            total = total + log_p - log_q
            before = after
        return total

    def times_of(self, steps: int | None) -> list[int]:
        """The times a sampler visits, from T down to 0, evenly spaced."""
        steps = self.num_steps if steps is None else steps
        if not 1 <= steps <= self.num_steps:
            raise ValueError(f"steps must be between 1 and {self.num_steps}, the model's own; got {steps}")
        return [round(self.num_steps * (steps - i) / steps) for i in range(steps + 1)]

    @torch.no_grad()
    def chain(
        self,
        num_samples: int,
        *,
        generator: torch.Generator | None = None,
        steps: int | None = None,
        event_shape: tuple[int, ...] | None = None,
    ) -> Iterator[tuple[int, Tensor]]:
        """Draw x_T, ..., x_0 and yield each (t, x_t), x_t (N, *D); `steps` visits only that many times."""
        if num_samples < 1:
            raise ValueError(f"num_samples must be at least 1, got {num_samples}")
        shape = self.event_shape if event_shape is None else torch.Size(event_shape)
        if len(shape) != len(self.event_shape) or min(shape) < 1:
            raise ValueError(f"a sample cannot have shape {tuple(shape)}; the model's is {tuple(self.event_shape)}")
        device = next(self.parameters()).device
        times = self.times_of(steps)
        z = torch.randint(self.num_classes, (num_samples, *shape), generator=generator, device=device)
        yield from self.chain_from(z, times, generator)

    @torch.no_grad()
    def chain_from(
        self, z: Tensor, times: list[int], generator: torch.Generator | None = None
    ) -> Iterator[tuple[int, Tensor]]:
        """Go on from x_t = z, t the first of the falling `times`, and yield (t, x_t) of each, the first included."""
        yield times[0], z
        for t, s in itertools.pairwise(times):
            z = self.noise.step(self.logits(z, torch.full((len(z),), t)), z, t, s, generator=generator)
            yield s, z

    @torch.no_grad()
    def reconstruct(self, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """x half-way into the noise and back, in at most `RECONSTRUCTION_STEPS` steps: (B, *D) -> (B, *D)."""
        self.check_classes(x)
        half = max(1, self.num_steps // 2)
        steps = min(half, RECONSTRUCTION_STEPS)
        times = [round(half * (steps - i) / steps) for i in range(steps + 1)]
        z = self.noise.corrupt(x, torch.full((len(x),), half), generator=generator)
        *_, (_, back) = self.chain_from(z, times, generator)
        return back

    def sample(self, num_samples: int, *, generator: torch.Generator | None = None, **settings: Any) -> Tensor:
        """Draw x_0; `settings` are those of `chain`: `steps`, `event_shape`."""
        z = torch.empty(0)
        for _, z in self.chain(num_samples, generator=generator, **settings):  # noqa: B007 (the last one is wanted)
            pass
        return z
