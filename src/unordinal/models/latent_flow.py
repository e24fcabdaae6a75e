"""Latent variables with flows: a VAE whose prior and posterior are flows and whose decoder is categorical."""

from typing import Any

import torch
from torch import Tensor, nn

from unordinal.flows.density import Density
from unordinal.models.importance import ImportanceModel, start_actnorm
from unordinal.numerics import draw_categorical, sum_except_batch
from unordinal.progress import Advance


class LatentFlow(ImportanceModel):
    """P(x) = integral of p(z) prod_i p(x_i | z), bounded with q(z | x) (appendix B.2).

    `prior` is p(z) over (B, *D, C), `context` reads what `posterior`, q(z | x), is to know off x, and `decoder` maps z
    to logits (B, *D, K).

    >>> from unordinal.flows.density import ConditionalNormal, StandardNormal
    >>> parts = {"context": nn.Embedding(3, 8), "decoder": nn.Linear(2, 3), "prior": StandardNormal((5, 2))}
    >>> posterior = ConditionalNormal(nn.Linear(8, 4))
    >>> model = LatentFlow(**parts, posterior=posterior, num_classes=3, num_channels=2, event_shape=(5,))
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
        num_channels: int,
        event_shape: tuple[int, ...],
    ):
        super().__init__(num_classes, event_shape)
        self.num_channels = num_channels
        self.prior, self.posterior, self.context, self.decoder = prior, posterior, context, decoder

    def log_weight(self, x: Tensor) -> Tensor:
        """log p(x | z) + log p(z) - log q(z | x) for one z ~ q(z | x) per example: (B, *D) -> (B,)."""
        self.check_classes(x)
        z, log_q = self.encoded(x)
        log_p = torch.log_softmax(self.decoder(z), dim=-1).gather(-1, x.long().unsqueeze(-1))
        return sum_except_batch(log_p) + self.prior.log_prob(z) - log_q

    @torch.no_grad()
    def initialise(self, x: Tensor) -> None:
        """Let the prior's ActNorm see a first batch."""
        self.check_classes(x)
        start_actnorm(self, self.prior, self.encoded(x)[0])

    def encoded(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """z ~ q(z | x) and its log-density, (B, *D, C) and (B,)."""
        return self.posterior.sample(len(x), self.context(x.long()), generator=generator)

    @torch.no_grad()
    def sample(
        self,
        num_samples: int,
        *,
        generator: torch.Generator | None = None,
        event_shape: tuple[int, ...] | None = None,
        advance: Advance | None = None,
        **settings: Any,
    ) -> Tensor:
        """Draw z ~ p(z), then every x_i ~ p(x_i | z): (N, *D) classes."""
        shape = self.checked_shape(num_samples, event_shape, settings)
        was_training = self.training
        self.eval()
        try:
            z, _ = self.prior.sample(num_samples, event_shape=(*shape, self.num_channels), generator=generator)
            x = draw_categorical(self.decoder(z), generator)
        finally:
            self.train(was_training)
        if advance is not None:
            advance(num_samples * shape.numel())
        return x

    @torch.no_grad()
    def reconstruct(self, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """x through a latent and back, at every place the likeliest class: (B, *D) -> (B, *D)."""
        self.check_classes(x)
        return self.decoder(self.encoded(x, generator)[0]).argmax(dim=-1)
