"""The noise of multinomial diffusion: with probability 1 - alpha a class is redrawn uniformly (section 4 of the paper).

The letters are those of the paper: x = x_0 is the data, z = x_t are the noisy classes, r are the predicted
probabilities of x_0, and K is the number of classes. Times are integer steps 0..T, and s is a time before t. The loss
is a closed form of a few (B, *D) tensors; the only (B, *D, K) tensors are the logits of the network and those of one
reduction over K.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unordinal.columns import Classes
from unordinal.diffusion.choosing import Chooser, independent
from unordinal.diffusion.class_terms import ClassTerms
from unordinal.diffusion.process import NoiseProcess, Time
from unordinal.diffusion.schedules import Schedule
from unordinal.names import check_known
from unordinal.numerics import Rng, expand_like, one_hot, tempered, uniform


@dataclass(frozen=True)
class Coefficients:
    """The quantities of a pair of times s < t that the closed forms need, each of shape (B, 1, ..., 1)."""

    alpha_t: Tensor  # alpha-bar_t: the probability that a class was not redrawn until t
    noise_t: Tensor  # 1 - alpha-bar_t
    alpha_s: Tensor
    noise_s: Tensor
    alpha_ts: Tensor  # alpha-bar_t / alpha-bar_s
    noise_ts: Tensor


class UniformNoise(NoiseProcess):
    """The noise process of multinomial diffusion: q(x_t | x_s) = alpha_ts [x_t = x_s] + (1 - alpha_ts) / K.

    Args:
        num_classes: the number of classes K, or one number for each column, which mixes over its own classes only.
        schedule: how much noise there is at a time, in discrete steps, as from `cosine_schedule`.
        output: what the network predicts for a position. "leave-one-out" is the paper's r: the probabilities of x_0
            given x_t at all other positions. "denoiser" are the probabilities of x_0 given x_t at all positions, which
            are converted to r by the one factor in which the two differ.
        ends: whether examples may end early.

    >>> from unordinal.diffusion.schedules import cosine_schedule
    >>> noise = UniformNoise(num_classes=27, schedule=cosine_schedule(1000))
    >>> x = torch.zeros(2, 8, dtype=torch.long)
    >>> noise.corrupt(x, torch.tensor([1, 1000])).shape
    torch.Size([2, 8])
    """

    OUTPUTS = ("leave-one-out", "denoiser")

    def __init__(
        self,
        num_classes: int | Sequence[int] | Classes,
        schedule: Schedule,
        *,
        output: str = "leave-one-out",
        ends: bool = False,
    ):
        check_known("output", output, self.OUTPUTS)
        if schedule.num_steps is None and type(self) is UniformNoise:
            raise ValueError("`UniformNoise` has discrete steps; use `ContinuousUniformNoise` for continuous time")
        super().__init__(num_classes, schedule, ends=ends)
        last = torch.tensor(schedule.num_steps or 1, device="cpu")
        self.last_alpha = float(schedule.log_alpha(last).exp())
        self.is_denoiser = self.converts_by_time = output == "denoiser"

    def coefficients(self, t: Tensor, s: Tensor, like: Tensor) -> Coefficients:
        """Compute the coefficients in float64, then cast them to the dtype and device of `like` (B, *D)."""
        log_t, log_s = self.schedule.log_alpha(t), self.schedule.log_alpha(s)  # (B,)
        dtype = like.dtype if like.is_floating_point() else torch.float32

        def cast(values: Tensor) -> Tensor:
            return expand_like(values.to(dtype).to(like.device), like)

        return Coefficients(
            alpha_t=cast(log_t.exp()),
            noise_t=cast(-torch.expm1(log_t)),
            alpha_s=cast(log_s.exp()),
            noise_s=cast(-torch.expm1(log_s)),
            alpha_ts=cast((log_t - log_s).exp()),
            noise_ts=cast(-torch.expm1(log_t - log_s)),
        )

    def corrupt(self, x: Tensor, t: Tensor, *, generator: Rng = None) -> Tensor:
        """Draw x_t ~ q(x_t | x_0) (eq:diff_categorical_forward_x0): (B, *D) classes and (B,) times -> (B, *D)."""
        u = uniform(x.shape, x.device, generator)
        noise = expand_like((-torch.expm1(self.schedule.log_alpha(t))).to(x.device, u.dtype), x)
        return self.with_ends(torch.where(u < noise, self.classes.uniform(x.shape, x.device, generator), x), x)

    def draw_prior(self, shape: tuple[int, ...], device: torch.device, *, generator: Rng = None) -> Tensor:
        """Draw from the prior, which is uniform over the classes."""
        return self.classes.uniform(shape, device, generator)

    def log_prior(self, z: Tensor) -> Tensor:
        ones = torch.ones(z.shape, device=z.device)
        return -self.total(ones * self.class_numbers(ones).log(), z)

    def prior_term(self, x: Tensor) -> Tensor:
        ones = torch.ones(x.shape, device=x.device)
        return self.total(ones * self.prior_kl().to(ones), x)

    def class_numbers(self, like: Tensor) -> Tensor:
        """Return the number of classes of the positions, () or (D,), with the type and device of `like`."""
        return torch.as_tensor(self.classes.sizes(like), dtype=like.dtype, device=like.device)

    def prior_kl(self) -> Tensor:
        """Return KL(q(x_T | x_0) || uniform) of a position in nats, which does not depend on x_0: () or (D,)."""
        alpha, k = self.last_alpha, self.class_numbers(torch.empty(0, dtype=torch.float64, device="cpu"))
        same, other = alpha + (1 - alpha) / k, (1 - alpha) / k
        return same * (same * k).log() + (k - 1) * other * (other * k).log()

    def predicted(self, output: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """Return the logits of r; those of a denoiser differ from them by the evidence of class z."""
        return self.with_evidence(output, z, self.schedule.noise(t), sign=-1) if self.is_denoiser else output

    def with_evidence(self, logits: Tensor, z: Tensor, noise: Tensor, sign: int = 1) -> Tensor:
        """Return the logits (B, *D, K) of x_0 given also x_t = z at the position itself, for noise (B,)."""
        amount = expand_like(noise.double(), z)
        k = self.class_numbers(torch.empty(0, dtype=torch.float64, device="cpu"))
        shift = sign * evidence(amount, k).to(logits)
        return self.classes.add_at(logits, self.inside(z), shift.expand(z.shape))

    def marginal(self, x: Tensor, t: Tensor, *, dtype: torch.dtype = torch.float64) -> Tensor:
        """Return the probabilities q(x_t | x_0): (B, *D) -> (B, *D, K)."""
        onehot = one_hot(x, self.num_classes, dtype)
        c = self.coefficients(t, torch.zeros_like(t), onehot)
        return c.alpha_t * onehot + c.noise_t * self.uniform_probabilities(onehot)

    def uniform_probabilities(self, like: Tensor) -> Tensor:
        """Return the uniform distribution over the classes of each position: (K,), or (D, K) with 0 for others."""
        numbers = self.class_numbers(like).reshape(-1, 1)
        inside = torch.arange(self.num_classes, device=like.device) < numbers
        return (inside / numbers).squeeze(0)

    def posterior(self, r: Tensor, z: Tensor, t: Tensor, s: Tensor) -> Tensor:
        """Return the probabilities of x_s given x_t = z and probabilities r of x_0 (eq:q_posterior), for any s < t.

        A one-hot r gives the true posterior q(x_s | x_t, x_0), and the r of the network gives p(x_s | x_t). `loss` and
        `step` do not need this (B, *D, K) tensor.
        """
        c, k, even = self.coefficients(t, s, r), self.class_numbers(r).unsqueeze(-1), self.uniform_probabilities(r)
        likelihood = c.alpha_ts * one_hot(z, self.num_classes, r.dtype) + c.noise_ts * even
        joint = likelihood * (c.alpha_s * r + c.noise_s * even)
        r_z = r.gather(-1, z.unsqueeze(-1))
        return joint / (c.alpha_t * r_z + c.noise_t / k)

    def loss(self, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """Return L_t = KL(q(x_{t-1} | x_t, x_0) || p(x_{t-1} | x_t)), and -log p(x_0 | x_1) at t = 1: (B,) nats.

        `logits` (B, *D, K) are those of r. Let w_k be the true posterior and p_k that of the model. Then the KL is
        sum_k w_k (exp(d_k) - 1 - d_k) with d_k = log(p_k / w_k). Each term is >= 0, so terms do not cancel and only
        rounding errors remain (in float32, a perfect prediction may give a few 1e-7 below 0). w_k has one value for
        k = x, one for k = z and one for all other classes. Among those, d_k differs only by log1p(alpha_s r_k / m) with
        m = noise_s / K, so that the sum of this term is the only reduction over K.
        """
        k, c = self.class_numbers(logits), self.coefficients(t, t - 1, self.like(logits, x))
        ends, x, z = x, self.inside(x), self.inside(z)
        first = c.noise_s == 0  # s = 0: the posterior is a point mass at x, and the loss is the decoder term
        m = torch.where(first, torch.ones_like(c.noise_s), c.noise_s) / k  # 1 / k where unused: finite gradients
        ratio = c.alpha_s / m

        log_r_x, log_r_z, sum_ell = self.classes.reduce(ClassTerms.apply, logits, ratio, x, z)
        r_x, r_z = log_r_x.exp(), log_r_z.exp()
        ell_x, ell_z = torch.log1p(ratio * r_x), torch.log1p(ratio * r_z)

        same = x == z
        evidence_q = torch.where(same, c.alpha_t, torch.zeros_like(c.alpha_t)) + c.noise_t / k  # q(z | x)
        log_evidence_p = torch.logaddexp(c.alpha_t.log() + log_r_z, (c.noise_t / k).log())  # log p(z) under r
        rho = log_evidence_p - evidence_q.log()

        stay, jump = c.alpha_ts + c.noise_ts / k, c.noise_ts / k  # q(z | x_s) for x_s = z and for any other
        w_x = torch.where(same, stay, jump) * (c.alpha_s + m) / evidence_q
        w_z = stay * m / evidence_q  # counted only where z differs from x
        w_other = jump * m / evidence_q
        num_other = k - 2 + same.to(logits.dtype)

        ell_z_counted = torch.where(same, torch.zeros_like(ell_z), ell_z)
        r_other = 1 - r_x - torch.where(same, torch.zeros_like(r_z), r_z)
        sum_exp_other = (num_other + ratio * r_other) * torch.exp(-rho)
        sum_d_other = sum_ell - ell_x - ell_z_counted - num_other * rho
        kl = (
            w_x * excess(ell_x - torch.log1p(ratio) - rho)
            + torch.where(same, torch.zeros_like(rho), w_z * excess(ell_z - rho))
            + w_other * (sum_exp_other - num_other - sum_d_other)
        )
        decoder = log_evidence_p - log_r_x - torch.where(same, stay, jump).log()
        return self.total(torch.where(first, decoder, kl), ends)

    def like(self, logits: Tensor, x: Tensor) -> Tensor:
        """Return a tensor of the shape of x (B, *D) with the type and device of the logits."""
        return logits.new_empty(()).expand(x.shape)

    def step(
        self, logits: Tensor, z: Tensor, t: Time, s: Time, *, generator: Rng = None, choose: Chooser = independent
    ) -> Tensor:
        """Draw x_s ~ p(x_s | x_t = z) for any s < t: (B, *D) -> (B, *D).

        A position jumps with probability (1 - alpha_ts) / (K p(z)). A position that jumps takes a class drawn from r
        with probability alpha_s, and a uniform class otherwise. Only positions that jump need a draw over K classes.
        """
        k, (log_t, log_s) = self.class_numbers(logits), self.schedule.log_alpha(torch.tensor([t, s]).double())
        alpha_t = log_t.exp()
        noise_ts = float(-torch.expm1(log_t - log_s))
        r_z = self.classes.log_prob(logits, self.inside(z)).exp()
        jump_probability = noise_ts / k / (float(alpha_t) * r_z + (1 - float(alpha_t)) / k)
        jumps = choose(jump_probability, generator)
        landing = self.classes.draw_at(logits, jumps, generator)  # (J,)
        redrawn = self.classes.uniform_at(jumps, generator)
        from_noise = uniform(landing.shape, z.device, generator) < float(-torch.expm1(log_s))
        out = z.clone()
        out[jumps] = torch.where(from_noise, redrawn, landing)
        return self.with_ends(out, z)

    def guided_step(
        self, free: Tensor, given: Tensor, guidance: float, z: Tensor, t: Time, s: Time, *, generator: Rng = None
    ) -> Tensor:
        """Draw x_s from p(x_s | z)^(1-g) p(x_s | z, y)^g, normalised at each position: (B, *D) -> (B, *D).

        Args:
            free: the logits of x_0 without labels, (B, *D, K).
            given: those given labels.
            guidance: g.
            z: the noisy classes x_t, (B, *D).
            t: their time.
            s: an earlier time.
            generator: the random number generator.
        """
        log_t, log_s = self.schedule.log_alpha(torch.tensor([t, s]).double())
        noise_ts = float(-torch.expm1(log_t - log_s))

        def log_before(logits: Tensor) -> Tensor:
            """Return the log-probabilities of x_s before x_t is seen."""
            log_k = math.log(logits.shape[-1])
            log_noise = float((-torch.expm1(log_s)).log()) - log_k if s > 0 else -math.inf
            return torch.logaddexp(torch.log_softmax(logits, dim=-1) + float(log_s), torch.tensor(log_noise).to(logits))

        log_free, log_given = (self.classes.map(log_before, logits) for logits in (free, given))
        k = self.class_numbers(given)
        stays = ((1 - noise_ts + noise_ts / k) / (noise_ts / k)).log()  # what x_t = z says of x_s = z
        logits = tempered(log_free, log_given, guidance)
        logits = self.classes.add_at(logits, self.inside(z), stays.expand(z.shape).to(logits))
        everywhere = torch.ones(z.shape, dtype=torch.bool, device=z.device)
        return self.with_ends(self.classes.draw_at(logits, everywhere, generator).view(z.shape), z)

    @property
    def has_paths(self) -> bool:
        return True

    def forward_step(self, x: Tensor, t: int, *, generator: Rng = None) -> tuple[Tensor, Tensor]:
        """Draw x_t ~ q(x_t | x_{t-1} = x) (eq:diff_categorical_forward); return x_t and its log-probability (B,)."""
        before, after = self.schedule.log_alpha(torch.tensor([t - 1, t]))
        noise = float(-torch.expm1(after - before))
        redrawn = self.classes.uniform(x.shape, x.device, generator)
        out = self.with_ends(torch.where(uniform(x.shape, x.device, generator) < noise, redrawn, x), x)
        k = self.class_numbers(torch.empty(0, device=x.device))
        log_stay, log_jump = (1 - noise + noise / k).log(), (noise / k).log()
        return out, self.total(torch.where(out == x, log_stay, log_jump), x)

    def log_reverse(self, logits: Tensor, z: Tensor, x_s: Tensor, t: int, s: int) -> Tensor:
        """Return log p(x_s | x_t = z), where softmax(logits) predicts x_0 (eq:p_parametrization): (B,) nats."""
        r_s, r_z = (self.classes.log_prob(logits, self.inside(c)) for c in (x_s, z))
        batch = torch.ones(len(z), dtype=torch.long)
        c, k = self.coefficients(t * batch, s * batch, r_s), self.class_numbers(logits)
        log_likelihood = (torch.where(x_s == z, c.alpha_ts, torch.zeros_like(r_s)) + c.noise_ts / k).log()
        log_prior = torch.logaddexp(c.alpha_s.log() + r_s, (c.noise_s / k).log())
        log_evidence = torch.logaddexp(c.alpha_t.log() + r_z, (c.noise_t / k).log())
        return self.total(log_likelihood + log_prior - log_evidence, z)


def evidence(noise: Tensor, num_classes: int | Tensor) -> Tensor:
    """Return by how much the log-probability of a class grows when it is seen through this much noise."""
    return torch.log1p(num_classes * (1 - noise) / noise)


def excess(d: Tensor) -> Tensor:
    """Return exp(d) - 1 - d, which is at least 0."""
    return torch.expm1(d) - d
