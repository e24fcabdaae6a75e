"""Absorbing noise: classes are replaced by a mask, which is class K, and stay masked.

The letters are those of the paper: x = x_0 is the data, z = x_t are the noisy classes, K is the number of classes, and
1 - alpha-bar_t is the probability that a class is masked at t. What the network predicts at a masked position is x_0
there given the positions that are shown.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unordinal.columns import Classes
from unordinal.diffusion.choosing import Chooser, independent
from unordinal.diffusion.process import NoiseProcess, Time
from unordinal.diffusion.schedules import Schedule, cosine, linear
from unordinal.numerics import Rng, expand_like, sum_except_batch, uniform


class AbsorbingNoise(NoiseProcess):
    """The noise process of masked diffusion, in continuous time or in discrete steps.

    The bound is the integral over time of -alpha-bar' / (1 - alpha-bar) times the cross-entropy at masked positions, or
    the corresponding sum over steps. At the last time everything is masked, so that the prior term is zero.

    Args:
        num_classes: the number of classes K, or one number for each column.
        schedule: the probability that a class is masked at a time, which must end at 1. With a network that does not
            read the time, or reads the noise as it does here, the bound does not depend on it. Default: cosine in
            continuous time; the variance of a draw of the bound would be infinite with a linear schedule.
        ends: whether examples may end early.

    >>> noise = AbsorbingNoise(27)
    >>> noise.corrupt(torch.zeros(2, 4, dtype=torch.long), torch.tensor([1e-9, 1.0])).tolist()
    [[0, 0, 0, 0], [27, 27, 27, 27]]
    """

    mask: int

    def __init__(
        self, num_classes: int | Sequence[int] | Classes, schedule: Schedule | None = None, *, ends: bool = False
    ):
        super().__init__(num_classes, schedule or Schedule(cosine), has_mask=True, ends=ends)
        if self.schedule.curve is None:
            raise ValueError("absorbing noise needs a schedule that ends in noise 1, made from a curve")

    def noise_at(self, t: Tensor) -> Tensor:
        """Return the probability of a mask at times (B,): (B,) float64 on the CPU."""
        return self.schedule.noise(t)

    def weight_at(self, t: Tensor) -> Tensor:
        """The factor of the cross-entropy in the bound's term at times (B,): (B,) float64 on the CPU."""
        if self.num_steps is None:
            return self.schedule.slope(t) / self.noise_at(t)
        return 1 - self.noise_at(t - 1) / self.noise_at(t)

    def network_time(self, t: Tensor) -> Tensor:
        """The network reads the noise, whatever the schedule."""
        return self.noise_at(t).to(torch.float32)

    def draw_prior(self, shape: tuple[int, ...], device: torch.device, *, generator: Rng = None) -> Tensor:
        """The prior is all masks."""
        return torch.full(shape, self.mask, device=device)

    def log_prior(self, z: Tensor) -> Tensor:
        return self.total(torch.where(z == self.mask, 0.0, -math.inf), z)

    def prior_term(self, x: Tensor) -> Tensor:
        return torch.zeros(len(x), device=x.device)

    def corrupt(self, x: Tensor, t: Tensor, *, generator: Rng = None) -> Tensor:
        u = uniform(x.shape, x.device, generator)
        return self.with_ends(torch.where(u < expand_like(self.noise_at(t).to(u), x), self.mask, x), x)

    def predicted(self, output: Tensor, z: Tensor, t: Tensor) -> Tensor:
        return output

    def loss(self, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
        return self.weight_at(t).to(logits) * self.masked_entropy(logits, x, z)

    def masked_entropy(self, logits: Tensor, x: Tensor, z: Tensor) -> Tensor:
        """The sum of -log p(x) over masked positions, from logits of all positions or of those alone: (B,) nats."""
        if not self.classes.columns and logits.dim() == 2:  # (M, K)
            where = z == self.mask
            log_p = self.classes.log_prob(logits, x[where])
            return -sum_except_batch(log_p.new_zeros(x.shape).masked_scatter(where, log_p))
        log_p = self.classes.log_prob(logits, self.inside(x))
        return sum_except_batch(torch.where(z == self.mask, -log_p, torch.zeros_like(log_p)))

    def step(
        self, logits: Tensor, z: Tensor, t: Time, s: Time, *, generator: Rng = None, choose: Chooser = independent
    ) -> Tensor:
        """Show each masked position with probability 1 - (1 - alpha-bar_s) / (1 - alpha-bar_t)."""
        noise_s, noise_t = self.noise_at(torch.tensor([s, t])).tolist()
        is_masked = z == self.mask
        is_shown = is_masked & choose(is_masked.to(logits.dtype) * (1 - noise_s / noise_t), generator)
        out = z.clone()
        out[is_shown] = self.classes.draw_at(logits, is_shown, generator)
        return out

    def marginal(self, x: Tensor, t: Tensor) -> Tensor:
        masked = expand_like(self.noise_at(t).to(x.device), x).expand(x.shape).unsqueeze(-1)
        onehot = torch.nn.functional.one_hot(x, self.num_classes)
        return torch.cat([(1 - masked) * onehot, masked], dim=-1)

    def posterior(self, r: Tensor, z: Tensor, t: Tensor, s: Tensor) -> Tensor:
        stays = expand_like((self.noise_at(s) / self.noise_at(t)).to(r), z).expand(z.shape).unsqueeze(-1)
        masked = torch.cat([(1 - stays) * r, stays], dim=-1)
        shown = torch.nn.functional.one_hot(z, self.num_input_classes).to(r)
        return torch.where((z == self.mask).unsqueeze(-1), masked, shown)

    @property
    def has_paths(self) -> bool:
        return self.num_steps is not None

    def forward_step(self, x: Tensor, t: int, *, generator: Rng = None) -> tuple[Tensor, Tensor]:
        """Mask each class that is shown with probability 1 - alpha_t; return x_t and its log-probability (B,)."""
        before, after = self.noise_at(torch.tensor([t - 1, t])).tolist()
        hide = (after - before) / (1 - before)
        is_free = self.can_redraw(x)
        is_hidden = is_free & (uniform(x.shape, x.device, generator) < hide)
        log_hide, log_show = math.log(hide), math.log1p(-hide) if hide < 1 else -math.inf
        zero = torch.zeros((), device=x.device)
        each = torch.where(is_free, torch.where(is_hidden, log_hide, log_show), zero)
        return torch.where(is_hidden, self.mask, x), sum_except_batch(each)

    def log_reverse(self, logits: Tensor, z: Tensor, x_s: Tensor, t: int, s: int) -> Tensor:
        """log p(x_s | x_t = z): (B,) nats; -inf where a class that is shown at t differs at s."""
        noise_s, noise_t = self.noise_at(torch.tensor([s, t])).tolist()
        stays = noise_s / noise_t
        log_stay, log_show = math.log(stays) if stays > 0 else -math.inf, math.log1p(-stays)
        log_p = self.classes.log_prob(logits, torch.where(self.can_redraw(x_s), x_s, 0))
        from_mask = torch.where(x_s == self.mask, log_stay, log_show + log_p)
        from_shown = torch.where(x_s == z, 0.0, -math.inf).to(from_mask)
        return sum_except_batch(torch.where(z == self.mask, from_mask, from_shown))


class MaskCountNoise(AbsorbingNoise):
    """Absorbing noise whose training masks an exact number of positions, for networks that do not read the time.

    At time t exactly ceil(t L) of the L positions are masked, so that uniform times give uniform numbers m = 1..L, and
    the loss weighs the cross-entropy of the masked positions by L / m. It has the same expectation as that of
    `AbsorbingNoise` and less variance: neither the number of masks nor the weight is drawn twice.

    Args:
        num_classes: the number of classes K, or one number for each column.
        ends: whether examples may end early; L is then the number of positions before the end.

    >>> noise = MaskCountNoise(27)
    >>> (noise.corrupt(torch.zeros(1, 8, dtype=torch.long), torch.tensor([0.5])) == 27).sum().item()
    4
    """

    def __init__(self, num_classes: int | Sequence[int] | Classes, *, ends: bool = False):
        super().__init__(num_classes, Schedule(linear), ends=ends)  # uniform times give uniform numbers of masks

    def lengths(self, x: Tensor) -> Tensor:
        """Return the number of positions of each example before its end: (B,) float64."""
        return self.total(torch.ones(x.shape, dtype=torch.float64, device=x.device), x)

    def corrupt(self, x: Tensor, t: Tensor, *, generator: Rng = None) -> Tensor:
        num = (t.to(x.device, torch.float64) * self.lengths(x)).ceil().clamp(min=1)  # (B,)
        u = self.with_ends(uniform((len(x), x[0].numel()), x.device, generator).view(x.shape), x).flatten(1)
        order = u.argsort(dim=1).argsort(dim=1)  # ranks of the positions; those after an end come last
        return self.with_ends(torch.where((order < num.unsqueeze(1)).view_as(x), self.mask, x), x)

    def loss(self, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
        num_masked = (z == self.mask).flatten(1).sum(dim=1).clamp(min=1)
        return (self.lengths(x) / num_masked).to(logits) * self.masked_entropy(logits, x, z)

    def complement(self, x: Tensor, z: Tensor) -> Tensor:
        """The data with masks exactly where z shows them; where z is all masks, z itself."""
        other = self.with_ends(torch.where(z == self.mask, x, self.mask), x)
        is_all = (other != self.mask).flatten(1).all(dim=1)
        return torch.where(expand_like(is_all, z), z, other)
