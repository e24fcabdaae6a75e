"""x = argmax v, and its probabilistic inverses."""

import torch
from torch import Tensor, nn

from unordinal.flows.density import Density, StandardLogistic
from unordinal.flows.start import Start
from unordinal.numerics import class_counts
from unordinal.surjections.surjection import Surjection
from unordinal.surjections.thresholds import gumbel_log_prob, gumbel_threshold, softplus_threshold

SMOOTHING = 1.0  # added to every class's count of the first batch: an absent one would start at -inf


class SoftplusArgmax(Surjection):
    """Thresholding (Alg. 3): free noise u ~ q(u | x), the chosen element as it is, the others bent below it."""

    def __init__(self, num_classes: int, noise: Density):
        super().__init__(num_classes, num_classes)
        self.noise = noise

    def lift(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        u, log_q = self.drawn(self.noise, x, context)
        v, log_det = softplus_threshold(u, x)
        return v, log_q - log_det

    def quantize(self, v: Tensor) -> Tensor:
        return v.argmax(dim=-1)


class GumbelArgmax(Surjection):
    """Gumbel (Alg. 4) with uniform noise, Gumbel thresholding with learned noise: one map.

    `phi` reads the locations (B, *D, K) off the context; a learned offset starts at the log-frequencies of the classes
    in the first batch, which Gumbels with these locations would draw. `noise` is over the logit of u, so that uniform u
    is standard logistic noise, the default.
    """

    is_started: Tensor

    def __init__(self, num_classes: int, phi: nn.Module | None, noise: Density | None = None):
        super().__init__(num_classes, num_classes)
        self.phi = phi
        self.noise = StandardLogistic((num_classes,)) if noise is None else noise
        self.offset = nn.Parameter(torch.zeros(num_classes))
        self.register_buffer("is_started", torch.tensor(False))
        self.start = Start(self)

    @torch.no_grad()
    def begin(self, x: Tensor) -> None:
        counts = class_counts(x, self.num_classes).to(self.offset) + SMOOTHING
        self.offset.copy_(torch.log(counts / counts.sum()))
        self.start.done(self.is_started)

    def locations(self, context: Tensor | None) -> Tensor:
        if self.phi is None:
            return self.offset
        if context is None:
            raise ValueError("these Gumbel locations are read off a context, and none was given")
        return self.offset + self.phi(context)

    def lift(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if self.training and self.start.is_due:
            self.begin(x)
        s, log_q = self.drawn(self.noise, x, context)
        phi = self.locations(context).expand(s.shape)
        v, log_det = gumbel_threshold(s, x, phi)
        if isinstance(self.noise, StandardLogistic):  # the closed form is cheaper and has less to cancel
            return v, gumbel_log_prob(v, x, phi)
        return v, log_q - log_det

    def quantize(self, v: Tensor) -> Tensor:
        return v.argmax(dim=-1)
