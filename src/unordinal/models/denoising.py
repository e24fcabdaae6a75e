"""How a diffusion draws: chains of reverse steps, posteriors of noisy examples, reconstructions."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unordinal.diffusion.predictor import Predictor
from unordinal.diffusion.process import Time
from unordinal.diffusion.samplers import SAMPLERS, Ancestral, Sampler, default_sampler, last, suitable_samplers
from unordinal.diffusion.uniform import UniformNoise
from unordinal.model import check_classes, device_of, sample_shape
from unordinal.names import check_known
from unordinal.numerics import Rng

if TYPE_CHECKING:
    from unordinal.models.diffusion import Diffusion

RECONSTRUCTION_STEPS = 50


class DiffusionDenoiser:
    """The `Denoiser` of a diffusion.

    Args:
        model: the diffusion.
    """

    def __init__(self, model: "Diffusion"):
        self.model, self.noise = model, model.noise

    @property
    def samplers(self) -> tuple[str, ...]:
        return suitable_samplers(self.noise)

    def whole_calls(self, sampler: str | None, num_free: int) -> int | None:
        return SAMPLERS[sampler or default_sampler(self.noise)].whole_calls(self.noise, num_free)

    def predictor(self, **settings: float) -> Predictor:
        """Return the network's predictions for a sampler."""
        model = self.model
        reads_time = model.net_reads_time or self.noise.converts_by_time
        return Predictor(model.evaluated_logits, reads_time=reads_time, **settings)

    @torch.no_grad()
    def chain(
        self,
        num_samples: int,
        *,
        generator: Rng = None,
        event_shape: tuple[int, ...] | None = None,
        steps: int | None = None,
        sampler: str | Sampler | None = None,
        known: Any = None,
        temperature: float = 1.0,
        top_p: float = 1.0,
        greedy_tail: float = 0.0,
        **settings: Any,
    ) -> Iterator[tuple[Time, Tensor]]:
        """Draw x_T, ..., x_0 and yield each (t, x_t), x_t (N, *D); the arguments are those of `Diffusion.sample`."""
        shape = sample_shape(self.model, num_samples, event_shape, settings)
        device = device_of(self.model)
        sampler = default_sampler(self.noise) if sampler is None else sampler
        if isinstance(sampler, str):
            check_known("sampler", sampler, self.samplers)
            sampler = SAMPLERS[sampler](steps)  # type: ignore[call-arg]
        given = None if known is None else self.model.checked_known(known, num_samples, shape).to(device)
        predict = self.predictor(temperature=temperature, top_p=top_p, greedy_tail=greedy_tail)
        z = self.noise.draw_prior((num_samples, *shape), device, generator=generator)
        yield from sampler.chain(predict, self.noise, z, known=given, generator=generator)

    @torch.no_grad()
    def reconstruct(self, x: Tensor, *, generator: Rng = None) -> Tensor:
        """Return x half-way into the noise and back, in at most `RECONSTRUCTION_STEPS` steps: (B, *D) -> (B, *D)."""
        check_classes(self.model, x)
        most = RECONSTRUCTION_STEPS if self.noise.num_steps is None else max(1, self.noise.num_steps // 2)
        sampler = Ancestral(min(most, RECONSTRUCTION_STEPS), start=0.5)
        half = self.noise.spaced_times(sampler.steps, sampler.start)[0]
        z = self.noise.corrupt(x, torch.full((len(x),), half), generator=generator)
        return last(sampler.chain(self.predictor(), self.noise, z, generator=generator))

    @property
    def posterior(self) -> Callable[[Tensor, float], Tensor] | None:
        return self.denoised if isinstance(self.noise, UniformNoise) else None

    @torch.no_grad()
    def denoised(self, x: Tensor, noise: float) -> Tensor:
        """Return the probabilities of the data given x, whose classes were redrawn with probability `noise`.

        In discrete steps the network reads the time whose noise is nearest; what is seen at a position itself counts
        with the given noise exactly.
        """
        assert isinstance(self.noise, UniformNoise)
        check_classes(self.model, x)
        if not 0 < noise < 1:
            raise ValueError(f"`noise`, the probability that a class was redrawn, must be between 0 and 1; got {noise}")
        amount = torch.full((len(x),), noise, dtype=torch.float64)
        x = x.long()
        logits = self.model.evaluated_logits(x, self.noise.schedule.time_of(amount))
        return torch.softmax(self.noise.with_evidence(logits, x, amount), dim=-1)

    @property
    def conditionals(self) -> Callable[[Tensor], Tensor] | None:
        return None if self.noise.mask is None else self.given_others

    @torch.no_grad()
    def given_others(self, x: Tensor) -> Tensor:
        """Return the probabilities of each position given all others, from one network call for each position."""
        assert self.noise.mask is not None
        check_classes(self.model, x)
        flat, size = x.long().flatten(1), x[0].numel()
        t = self.noise.schedule.time_of(torch.tensor([1 / size])).expand(len(x))
        found = []
        for position in range(size):
            hidden = flat.clone()
            hidden[:, position] = self.noise.mask
            found.append(self.model.evaluated_logits(hidden.view_as(x), t).flatten(1, -2)[:, position])
        logits = torch.stack(found, dim=1).view(*x.shape, self.noise.num_classes)
        return torch.softmax(logits, dim=-1)
