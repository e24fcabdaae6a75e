"""The argmax surjection x = argmax v, with two probabilistic inverses."""

import torch
from torch import Tensor, nn

from unordinal.flows.density import Density, StandardLogistic
from unordinal.flows.init_flag import InitFlag
from unordinal.numerics import Rng, class_counts
from unordinal.surjections.surjection import Surjection
from unordinal.surjections.thresholds import gumbel_log_prob, gumbel_threshold, softplus_threshold

SMOOTHING = 1.0  # added to the count of every class in the first batch, as the log of a count of 0 would be -inf


class SoftplusArgmax(Surjection):
    """The argmax surjection x = argmax v, with an inverse by softplus thresholding (Alg. 3 of the paper).

    The inverse draws unconstrained noise u. Element x of v is element x of u, and a softplus brings all other elements
    below it, so that argmax v = x.

    Args:
        num_classes: the number of classes K, which is also the number of channels of v.
        noise: the density q(u | x) over (*D, K); it may read the context as its condition.

    >>> from unordinal.flows.density import StandardNormal
    >>> surjection, x = SoftplusArgmax(5, StandardNormal((5,))), torch.randint(5, (2, 8))
    >>> v, log_q = surjection.lift(x)
    >>> v.shape, v.argmax(-1).equal(x)
    (torch.Size([2, 8, 5]), True)
    """

    def __init__(self, num_classes: int, noise: Density):
        super().__init__(num_classes, num_classes)
        self.noise = noise

    def lift(self, x: Tensor, context: Tensor | None = None, *, generator: Rng = None) -> tuple[Tensor, Tensor]:
        u, log_q = self.draw_noise(self.noise, x, context, generator)
        v, log_det = softplus_threshold(u, x)
        return v, log_q - log_det

    def quantize(self, v: Tensor) -> Tensor:
        return v.argmax(dim=-1)


class GumbelArgmax(Surjection):
    """The argmax surjection x = argmax v, with Gumbel variables as its inverse (Alg. 4 of the paper).

    With the default noise, q(v | x) is the distribution of K independent Gumbel variables given that their argmax is x;
    with learned noise it is the paper's Gumbel thresholding. The locations of the Gumbels are a learned offset plus the
    output of `phi`. The first batch in training mode sets the offset to the log-frequencies of the classes in it.

    Args:
        num_classes: the number of classes K, which is also the number of channels of v.
        phi: a network from the context (B, *D, H) to the locations (B, *D, K); None for the learned offset alone.
        noise: the density of the logit of the uniform noise u. Default: standard logistic, so that u is uniform.

    >>> surjection, x = GumbelArgmax(5, None), torch.randint(5, (2, 8))
    >>> v, log_q = surjection.lift(x)
    >>> v.shape, v.argmax(-1).equal(x)
    (torch.Size([2, 8, 5]), True)
    """

    is_started: Tensor

    def __init__(self, num_classes: int, phi: nn.Module | None, noise: Density | None = None):
        super().__init__(num_classes, num_classes)
        self.phi = phi
        self.noise = StandardLogistic((num_classes,)) if noise is None else noise
        self.offset = nn.Parameter(torch.zeros(num_classes))
        self.register_buffer("is_started", torch.tensor(False))
        self.init_flag = InitFlag(self)

    @torch.no_grad()
    def initialise(self, x: Tensor) -> None:
        """Set the offset to the log-frequencies of the classes in x."""
        counts = class_counts(x, self.num_classes).to(self.offset) + SMOOTHING
        self.offset.copy_(torch.log(counts / counts.sum()))
        self.init_flag.mark_done(self.is_started)

    def locations(self, context: Tensor | None) -> Tensor:
        """Return the locations of the Gumbels, of shape (K,) or (B, *D, K)."""
        if self.phi is None:
            return self.offset
        if context is None:
            raise ValueError("the network phi of GumbelArgmax needs a context; pass context to lift")
        return self.offset + self.phi(context)

    def lift(self, x: Tensor, context: Tensor | None = None, *, generator: Rng = None) -> tuple[Tensor, Tensor]:
        if self.training and self.init_flag.is_pending:
            self.initialise(x)
        s, log_q = self.draw_noise(self.noise, x, context, generator)
        phi = self.locations(context).expand(s.shape)
        v, log_det = gumbel_threshold(s, x, phi)
        if isinstance(self.noise, StandardLogistic):  # the closed form is cheaper and loses fewer digits
            return v, gumbel_log_prob(v, x, phi)
        return v, log_q - log_det

    def quantize(self, v: Tensor) -> Tensor:
        return v.argmax(dim=-1)
