"""How a diffusion draws: chains of reverse steps, posteriors of noisy examples, reconstructions."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from unordinal.checks import check_classes, sample_shape
from unordinal.diffusion.choosing import independent
from unordinal.diffusion.predictor import Predictor
from unordinal.diffusion.process import Time
from unordinal.diffusion.samplers import (
    SAMPLERS,
    Ancestral,
    Sampler,
    default_sampler,
    last,
    sampler_named,
    suitable_samplers,
)
from unordinal.diffusion.uniform import UniformNoise
from unordinal.model import device_of
from unordinal.names import check_known
from unordinal.numerics import Rng

if TYPE_CHECKING:
    from unordinal.models.diffusion import Diffusion

RECONSTRUCTION_STEPS = 50
softmax = partial(torch.softmax, dim=-1)


class DenoisingNetwork(nn.Module):
    """The network of a diffusion with all that its noise process does to its outputs: (x_t, t) -> logits of x_0.

    Labels are dropped.
    """

    def __init__(self, model: "Diffusion"):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        labels = self.model.labels
        dropped = torch.tensor(labels, device=x.device).expand(x.shape[0], -1) + 1 if labels else None
        return self.model.logits(x, t, dropped)


class DiffusionDenoiser:
    """The `Denoiser` of a diffusion.

    Args:
        model: the diffusion.
    """

    def __init__(self, model: "Diffusion"):
        self.model, self.noise = model, model.noise

    takes_any_known = True

    @property
    def samplers(self) -> tuple[str, ...]:
        return suitable_samplers(self.noise)

    def whole_calls(self, sampler: str | None, num_free: int) -> int | None:
        return SAMPLERS[sampler or default_sampler(self.noise)].whole_calls(self.noise, num_free)

    def predictor(self, cond: Tensor | None = None, **settings: Any) -> Predictor:
        """Return the network's predictions for a sampler, given labels (N, J)."""
        model = self.model
        reads_time = model.net_reads_time or self.noise.converts_by_time
        given: Any = {"classes": self.noise.classes, "cond": cond, "reads_time": reads_time, **settings}
        given["mixes"] = self.noise.mask is not None
        return Predictor(model.evaluated_logits, **given)

    @torch.no_grad()
    def chain(
        self,
        num_samples: int,
        *,
        generator: Rng = None,
        event_shape: tuple[int, ...] | None = None,
        steps: int | None = None,
        sampler: str | Sampler | None = None,
        budget: float | None = None,
        known: Any = None,
        cond: Any = None,
        temperature: float = 1.0,
        top_p: float = 1.0,
        greedy_tail: float = 0.0,
        guidance: float = 1.0,
        **settings: Any,
    ) -> Iterator[tuple[Time, Tensor]]:
        """Draw x_T, ..., x_0 and yield each (t, x_t), x_t (N, *D); the arguments are those of `Diffusion.sample`."""
        shape = sample_shape(self.model, num_samples, event_shape, settings)
        device = device_of(self.model)
        sampler = default_sampler(self.noise) if sampler is None else sampler
        if isinstance(sampler, str):
            check_known("sampler", sampler, self.samplers)
            sampler = sampler_named(sampler, steps, budget)
        elif budget is not None:
            raise ValueError("`budget` is for a sampler that is given by its name")
        given = None if known is None else self.model.checked_known(known, num_samples, shape).to(device)
        labels = self.model.checked_cond(cond, num_samples)
        sharp: Any = {"temperature": temperature, "top_p": top_p, "greedy_tail": greedy_tail}
        if guidance != 1:
            sharp |= {"dropped": self.model.dropped_labels(guidance), "guidance": guidance}
            if self.noise.mask is None and (type(sampler) is not Ancestral or sampler.choose is not independent):
                raise ValueError("with uniform noise, `guidance` is for the sampler ancestral")
            if self.noise.mask is None and (temperature != 1 or top_p != 1 or greedy_tail):
                raise ValueError("with uniform noise, give `guidance` or sharper predictions, not both")
        predict = self.predictor(labels, **sharp)
        if self.noise.pad is not None and event_shape is None:
            given = self.with_lengths(given, (num_samples, *shape), labels, generator, guidance)
        z = self.noise.draw_prior((num_samples, *shape), device, generator=generator)
        yield from sampler.chain(predict, self.noise, z, known=given, generator=generator)

    def with_lengths(
        self, known: Tensor | None, shape: tuple[int, ...], cond: Tensor | None, generator: Rng, guidance: float
    ) -> Tensor:
        """Return the known positions (N, L), -1 where they are free, with ends after lengths that are drawn here."""
        if known is not None:
            raise ValueError("with `known` positions, give the length of the samples as `event_shape`")
        assert self.noise.pad is not None
        assert self.model.lengths is not None
        place = torch.arange(shape[1], device=device_of(self.model))
        is_after = place >= self.model.lengths.draw(shape[0], cond, generator, guidance).unsqueeze(1)
        return torch.where(is_after, self.noise.pad, -torch.ones_like(place))

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
        cond = self.model.checked_cond(None, len(x))
        logits = self.model.evaluated_logits(x, self.noise.schedule.time_of(amount), cond)
        return self.noise.classes.map(softmax, self.noise.with_evidence(logits, x, amount))
