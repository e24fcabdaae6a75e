"""Latent variables with flows: a VAE whose prior and posterior are flows and whose decoder is categorical."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.abilities import Reconstruct, TrainingHooks
from unordinal.checks import check_classes, sample_shape
from unordinal.flows.autoregressive import ChannelAutoregressive, TimeFlow
from unordinal.flows.bijection import Bijection, Chain, Inverse
from unordinal.flows.coupling import Coupling, split_of
from unordinal.flows.density import Density, Flow, StandardNormal
from unordinal.flows.elementwise import NonlinearSquared
from unordinal.flows.reshape import Reversal
from unordinal.model import evaluating
from unordinal.models.importance import ImportanceModel, start_actnorm, tell_of_samples
from unordinal.nets.channels import ChannelNet
from unordinal.nets.context import Mlp
from unordinal.numerics import Rng, draw_categorical, sum_except_batch


@dataclass(frozen=True)
class KlWarmup:
    """How much the KL counts in training: `lowest` for a part of the budget, then linearly up to 1 over another.

    Appendix B.4 has 2 and 4 of 30 passes over the data.
    """

    flat: float
    rise: float
    lowest: float = 1e-5

    def __post_init__(self) -> None:
        if not (self.flat >= 0 and self.rise >= 0 and self.flat + self.rise <= 1):
            raise ValueError(
                f"kl_flat and kl_rise are parts of the budget, each at least 0 and together at most 1; "
                f"got {self.flat:g} and {self.rise:g}"
            )

    def weight(self, fraction: float) -> float:
        """
        >>> [KlWarmup(0.25, 0.5).weight(f) for f in (0, 0.25, 0.5, 1)]
        [1e-05, 1e-05, 0.5, 1.0]
        """
        risen = (fraction - self.flat) / self.rise if self.rise else float(fraction >= self.flat)
        return min(1.0, max(self.lowest, risen))


class LatentFlow(ImportanceModel):
    """A latent flow (appendix B.2): P(x) is the integral of p(z) prod_i p(x_i | z), bounded with q(z | x).

    Args:
        prior: p(z) over (B, *D, C).
        posterior: q(z | x), which is given the features of x.
        context: a network from classes (B, *D) to those features, (B, *D, H).
        decoder: a network from z to logits (B, *D, K).
        num_classes: the number of classes K.
        event_shape: the shape of one example.
        warmup: how much the KL counts early in training; None counts it in full.
        side_multiple: what the sides of an example must be multiples of.

    >>> from unordinal.flows.density import ConditionalNormal, StandardNormal
    >>> parts = {"context": nn.Embedding(3, 8), "decoder": nn.Linear(2, 3), "prior": StandardNormal((5, 2))}
    >>> posterior = ConditionalNormal(nn.Linear(8, 4))
    >>> model = LatentFlow(**parts, posterior=posterior, num_classes=3, event_shape=(5,))
    >>> model.sample(4).shape
    torch.Size([4, 5])
    """

    def __init__(
        self,
        *,
        prior: Density,
        posterior: Density,
        context: nn.Module,
        decoder: nn.Module,
        num_classes: int,
        event_shape: tuple[int, ...],
        warmup: KlWarmup | None = None,
        side_multiple: int = 1,
    ):
        super().__init__(num_classes, event_shape, side_multiple=side_multiple)
        (*_, self.num_channels) = prior.event_shape
        self.warmup = warmup
        self.kl_weight = 1.0
        self.prior, self.posterior, self.context, self.decoder = prior, posterior, context, decoder

    @property
    def hooks(self) -> TrainingHooks:
        return LatentFlowHooks(self)

    def unchecked_log_weight(self, x: Tensor, generator: Rng = None, cond: Tensor | None = None) -> Tensor:
        """Return log p(x | z) + log p(z) - log q(z | x) for one z ~ q(z | x) per example: (B, *D) -> (B,)."""
        log_likelihood, minus_kl = self.terms(x, generator)
        return log_likelihood + minus_kl

    def terms(self, x: Tensor, generator: Rng = None) -> tuple[Tensor, Tensor]:
        """Return log p(x | z) and log p(z) - log q(z | x) for one z ~ q(z | x) per example, two (B,)."""
        z, log_q = self.encoded(x, generator)
        log_p = torch.log_softmax(self.decoder(z), dim=-1).gather(-1, x.long().unsqueeze(-1))
        return sum_except_batch(log_p), self.prior.log_prob(z) - log_q

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        """Minus the bound, its KL weighted less at the beginning where `warmup` says so.

        A training loop of your own says how far it is with `model.hooks.progressed(fraction)`; without it the KL counts
        in full from the start.
        """
        log_likelihood, minus_kl = self.terms(x)
        return -(log_likelihood + self.kl_weight * minus_kl)

    def encoded(self, x: Tensor, generator: Rng = None) -> tuple[Tensor, Tensor]:
        """Draw z ~ q(z | x) and return it with its log-density, (B, *D, C) and (B,)."""
        return self.posterior.sample(len(x), self.context(x.long()), generator=generator)

    @torch.no_grad()
    def sample(
        self, num_samples: int, *, generator: Rng = None, event_shape: tuple[int, ...] | None = None, **settings: Any
    ) -> Tensor:
        """Draw z ~ p(z), then every x_i ~ p(x_i | z): (N, *D) classes."""
        shape = sample_shape(self, num_samples, event_shape, settings)
        with evaluating(self):
            z, _ = self.prior.sample(num_samples, event_shape=(*shape, self.num_channels), generator=generator)
            x = draw_categorical(self.decoder(z), generator)
        tell_of_samples(self.prior, num_samples)
        return x

    @property
    def reconstruct(self) -> Reconstruct:
        return self.decoded

    @torch.no_grad()
    def decoded(self, x: Tensor, *, generator: Rng = None) -> Tensor:
        """Return x through a latent and back, at every position the likeliest class: (B, *D) -> (B, *D)."""
        check_classes(self, x)
        with evaluating(self):
            return self.decoder(self.encoded(x, generator)[0]).argmax(dim=-1)


class LatentFlowHooks(TrainingHooks):
    """Lets the prior's ActNorm see a first batch, and weighs the KL as the warm-up says."""

    def __init__(self, model: LatentFlow):
        self.model = model

    @torch.no_grad()
    def initialise(self, x: Tensor) -> None:
        start_actnorm(self.model, self.model.prior, self.model.encoded(x)[0])

    def progressed(self, fraction: float) -> None:
        if self.model.warmup is not None:
            self.model.kl_weight = self.model.warmup.weight(fraction)


def time_prior(
    net: nn.Module, *, width: int, event_shape: tuple[int, ...], num_flows: int, channel_width: int, is_inverse: bool
) -> Density:
    """p(z) of Ziegler and Rush (2019): a causal network over time that sets a stack of layers inside each position.

    The layers are autoregressive over channels (AF/AF) or, where the flow over time `is_inverse`, couplings (IAF/SCF).
    """
    channels, family = event_shape[-1], NonlinearSquared()
    fixed, layers = split_of(channels), list[Bijection]()
    for _ in range(num_flows):
        if is_inverse:
            out, hidden = family.num_parameters * (channels - fixed), channel_width * channels
            layers.append(Coupling(Mlp(fixed + width, out, width=hidden), family, num_channels=channels))
        else:
            head = ChannelNet(width, channels, family.num_parameters, width=channel_width)
            layers.append(ChannelAutoregressive(head, family, num_channels=channels))
        layers.append(Reversal(-1))
    flow = TimeFlow(net, Chain(layers), is_parallel=is_inverse)
    return Flow(Inverse(flow) if is_inverse else flow, StandardNormal(event_shape))
