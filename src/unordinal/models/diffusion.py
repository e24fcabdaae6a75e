"""Diffusion as a model: a network that predicts x_0, and a noise process around it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.abilities import (
    Conditional,
    Network,
    Orders,
    Reconstruct,
    SamplerScores,
    Times,
    TrainingHooks,
    Visits,
    Weights,
)
from unordinal.checks import check_classes
from unordinal.diffusion.ordered import Ordered
from unordinal.diffusion.process import NoiseProcess
from unordinal.diffusion.samplers import last
from unordinal.diffusion.times import TimeSampler, stratified_positions
from unordinal.model import CategoricalModel, evaluating
from unordinal.models import ordering
from unordinal.models.denoising import DenoisingNetwork, DiffusionDenoiser
from unordinal.models.lengths import Lengths
from unordinal.models.visiting import by_calls
from unordinal.nets.positions import can_choose
from unordinal.numerics import Rng, full_precision, uniform


class Diffusion(CategoricalModel):
    """A diffusion model (section 4): a network that undoes the steps of a noise process.

    If examples may end early, the length n is drawn first: log P(x) = log P(n | label) + log P(x | n), where P(n) comes
    from counts of the training data, and the network sees n positions.

    Args:
        net: a network `net(x_t, time)` from noisy classes (B, *D) and times (B,) in (0, 1] to logits (B, *D, K); with
            labels `net(x_t, time, cond)`.
        noise: the noise process.
        event_shape: the shape of one example.
        times: how times are drawn in training: "uniform", "importance", "stratified" or "stratified-importance". By
            default by importance, as in the paper, and stratified in continuous time.
        complementary: train on two corruptions of each example that mask complementary positions, which halves the
            variance for twice the work; for noise that has a `complement`.
        lengths: how often each length 0, ..., L occurs in training data, if examples may end early: one row, or one for
            each class of the first label, with a missing label last.
        labels: the number of classes of each label that may be given with an example.
        has_places: whether the network has weights for each position.

    >>> from unordinal.diffusion.schedules import cosine_schedule
    >>> from unordinal.diffusion.uniform import UniformNoise
    >>> from unordinal.nets.transformer import TimeTransformer
    >>> net = TimeTransformer(3, width=16, num_blocks=1, global_heads=1)
    >>> model = Diffusion(net, noise=UniformNoise(3, cosine_schedule(10)), event_shape=(8,))
    >>> model.sample(2).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        net: nn.Module,
        *,
        noise: NoiseProcess,
        event_shape: tuple[int, ...],
        times: str | None = None,
        complementary: bool = False,
        lengths: Sequence[Sequence[int]] = (),
        labels: tuple[int, ...] = (),
        has_places: bool = False,
    ):
        settings: Any = {"ends": noise.pad is not None, "labels": labels, "has_places": has_places}
        super().__init__(noise.classes, event_shape, **settings)
        self.lengths = Lengths(lengths or [[0] * (event_shape[0] + 1)]) if noise.pad is not None else None
        self.net, self.noise, self.complementary = net, noise, complementary
        if times is None:
            times = "stratified" if noise.num_steps is None else "importance"
        if noise.num_steps is None and "importance" in times:
            raise ValueError(f"times {times!r} are for noise in discrete steps; use stratified or uniform")
        self.time_sampler = TimeSampler(noise.num_terms, times)

    @property
    def times(self) -> Times:
        return Times(self.noise.num_steps, self.elbo_at)

    @property
    def denoiser(self) -> "DiffusionDenoiser":
        return DiffusionDenoiser(self)

    @property
    def orders(self) -> Orders | None:
        """The likelihood of an order of positions; for noise with a mask, and a network that needs no time."""
        return None if self.noise.mask is None or self.net_reads_time else self.log_prob_of_order

    @property
    def sampler_scores(self) -> SamplerScores | None:
        return None if self.orders is None else self.log_prob_of_sampler

    @property
    def conditional(self) -> Conditional | None:
        """The distribution of a position given some others; for noise with a mask, and a network that needs no time."""
        if self.orders is None or len(self.event_shape) > 1:
            return None
        return Conditional(partial(ordering.log_probs_given, self))

    @property
    def visits(self) -> Visits | None:
        """Visits all positions; where `orders` are, for examples of one length."""
        return None if self.orders is None or self.ends or self.classes.columns else partial(by_calls, self)

    @property
    def weights(self) -> Weights | None:
        has_orders = self.orders is not None and self.noise.num_steps is None
        return self.log_weight if has_orders or self.noise.has_paths else None

    @property
    def reconstruct(self) -> Reconstruct:
        return self.denoiser.reconstruct

    @property
    def network(self) -> Network:
        """The denoiser: logits of x_0 from x_t, in which class K is the mask if there is one, and t."""
        x = torch.zeros((2, *self.event_shape), dtype=torch.long)
        t = torch.full((2,), 0.5) if self.noise.num_steps is None else torch.ones(2, dtype=torch.long)
        return Network(DenoisingNetwork(self), {"x": x, "t": t})

    @property
    def hooks(self) -> TrainingHooks:
        return DiffusionHooks(self)

    def logits(self, z: Tensor, t: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return logits of x_0 given x_t = z at times t (B,), as the noise process takes them: (B, *D, K)."""
        given = () if cond is None else (cond,)
        output = full_precision(self.net(z, self.noise.network_time(t).to(z.device), *given))
        return self.noise.predicted(output, z, t)

    def loss_of(self, x: Tensor, z: Tensor, t: Tensor, cond: Tensor | None) -> Tensor:
        """Return the bound's term of x (B, *D) for noisy classes z at times t (B,): (B,) nats."""
        if self.noise.mask is None or not can_choose(self.net, z):
            return self.noise.loss(self.logits(z, t, cond), x, z, t)
        given: Any = {"at": z == self.noise.mask} | ({} if cond is None else {"cond": cond})
        output = full_precision(self.net(z, self.noise.network_time(t), **given))  # (M, K)
        return self.noise.loss(output, x, z, t)

    def evaluated_logits(self, z: Tensor, t: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return `logits` without dropout."""
        with evaluating(self):
            return self.logits(z, t, cond)

    def loss_at(self, x: Tensor, t: Tensor, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        """Return the bound's term for times t (B,), with x_t drawn: (B,) nats."""
        z = self.noise.corrupt(x, t, generator=generator)
        return self.loss_of(x, z, t, cond)

    def training_terms(self, x: Tensor, t: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return `loss_at`, or the mean of it for two complementary corruptions of each example."""
        if not self.complementary:
            return self.loss_at(x, t, cond)
        z = self.noise.corrupt(x, t)
        both, twice = torch.cat([z, self.noise.complement(x, z)]), torch.cat([t, t])
        losses = self.loss_of(torch.cat([x, x]), both, twice, None if cond is None else torch.cat([cond, cond]))
        return losses.view(2, -1).mean(dim=0)

    def log_length(self, x: Tensor, cond: Tensor | None) -> Tensor:
        """Return log P(n | label) of the lengths of examples, 0 if they do not end early: (B,) nats."""
        if self.lengths is None:
            return torch.zeros(len(x), device=x.device)
        return self.lengths(self.num_symbols(x).to(x.device), cond)

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        """Return minus an estimate of the bound from one time per example: (B, *D) -> (B,) nats.

        Without `draw` the times are drawn here and, in training mode, their importance is learned from the losses here.
        """
        hooks, cond = DiffusionHooks(self), self.checked_cond(cond, len(x)) if cond is None else cond
        t = hooks.draw(len(x)) if draw is None else draw
        losses = self.training_terms(x, t, cond) * self.weights_of(t).to(x.device) + self.noise.prior_term(x)
        losses = losses - self.log_length(x, cond)
        if draw is None and self.training and self.time_sampler.by_importance and not losses.is_meta:
            hooks.observe(t, losses.detach().cpu())
        return losses

    def weights_of(self, t: Tensor) -> Tensor:
        """Return the factors of the losses of drawn times that make their mean the bound: (B,) float32."""
        if self.noise.num_steps is None:
            return torch.ones(len(t))
        return (1 / self.time_sampler.probabilities()[t - 1]).to(torch.float32)

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        """Return one term of the bound's sum over t per example, with times spread evenly over the batch."""
        offset = uniform((), torch.device("cpu") if generator is None else generator.device, generator).cpu().double()
        return self.elbo_at(x, stratified_positions(len(x), offset), generator, cond=cond)

    def elbo_at(self, x: Tensor, position: Tensor, generator: Rng = None, *, cond: Tensor | None = None) -> Tensor:
        """Return the bound's estimate from one time per example, at `position` (B,) in [0, 1) of all times."""
        check_classes(self, x)
        cond = self.checked_cond(cond, len(x))
        with evaluating(self):
            losses = self.loss_at(x, self.noise.time_at(position), cond, generator)
        return self.log_length(x, cond) - (self.noise.num_terms * losses + self.noise.prior_term(x))

    def log_prob_of_order(self, x: Tensor, order: Tensor, *, num_given: int = 0, cond: Tensor | None = None) -> Tensor:
        """Return the log-probability of x when its positions are shown in a given order: (B, *D) -> (B,) nats.

        It is exact for the model that shows positions in this order, one by one. The mean over all orders of its
        exponential is the probability under the model that draws the order at random. `orders` says whether the model
        can do this.

        Args:
            x: classes, of shape (B, *D).
            order: the positions, numbered row by row, in the order in which they are drawn: (L,), or (B, L).
            num_given: how many of the first positions of the order are given, and not counted.
            cond: labels, of shape (B, J).
        """
        return ordering.log_prob_of_order(self, x, order, num_given=num_given, cond=cond)

    def log_prob_of_sampler(
        self, x: Tensor, sampler: Ordered, *, known: Tensor | None = None, cond: Tensor | None = None
    ) -> Tensor:
        """Return the exact log-probability of x under a sampler: (B, *D) -> (B,) nats.

        With known positions (B, *D), -1 elsewhere, it is that of the others when the sampler is given these.
        """
        return ordering.log_prob_of_sampler(self, x, sampler, known=known, cond=cond)

    def log_weight(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        """Return log p(x_0, ..., x_T) - log q(x_1, ..., x_T | x_0) of one drawn path; T network calls.

        For noise with a mask in continuous time a path is an order of the positions, drawn at random.
        """
        if self.weights is None:
            raise ValueError("this diffusion has no importance weights; use its elbo")
        if self.noise.num_steps is None:
            order = uniform((len(x), x[0].numel()), x.device, generator).argsort(dim=1)
            return self.log_prob_of_order(x, order, cond=cond)
        check_classes(self, x)
        cond = self.checked_cond(cond, len(x))
        noise: Any = self.noise
        total, before = self.log_length(x, cond), x
        for t in range(1, noise.num_steps + 1):
            after, log_q = noise.forward_step(before, t, generator=generator)
            logits = self.evaluated_logits(after, torch.full((len(x),), t), cond)
            total = total + noise.log_reverse(logits, after, before, t, t - 1) - log_q
            before = after
        return total + self.noise.log_prior(before)

    @property
    def net_reads_time(self) -> bool:
        """Whether the network's output depends on the time."""
        return getattr(self.net, "reads_time", True)

    def sample(
        self,
        num_samples: int,
        *,
        generator: Rng = None,
        event_shape: tuple[int, ...] | None = None,
        steps: int | None = None,
        **settings: Any,
    ) -> Tensor:
        """Draw samples.

        Args:
            num_samples: how many, N.
            generator: the random number generator; default: torch's global one.
            event_shape: the shape of a sample; default: the model's own.
            steps: the number of network calls; by default all steps, or all positions.
            **settings: `sampler`, a name of `SAMPLERS` or a `Sampler`, by default the one that suits the noise; `known`
                (N, *D), or (*D) for all samples, with the classes of positions that are given and -1 where they are
                free; `cond`, labels (N, J), or (J,) for all samples; `temperature`, `top_p` and `greedy_tail`, which
                sharpen the predictions. If examples may end early, a given `event_shape` is the length of all samples.

        Returns:
            Classes, of shape (N, *D).
        """
        given: Any = {"generator": generator, "event_shape": event_shape, "steps": steps, **settings}
        return last(self.denoiser.chain(num_samples, **given))


class DiffusionHooks(TrainingHooks):
    """Times for each batch, and what its losses say of them."""

    can_shard = True

    def __init__(self, model: Diffusion):
        self.model, self.times = model, model.time_sampler

    def draw(self, num: int) -> Tensor:
        if self.model.noise.num_steps is None:
            return self.model.noise.time_at(self.times.positions(num))
        return self.times.draw(num)

    def observe(self, draw: Tensor | None, losses: Tensor) -> None:
        if draw is not None and self.times.by_importance:
            x = torch.zeros((1, *self.model.event_shape), dtype=torch.long)
            prior = self.model.noise.prior_term(x)
            self.times.observe(draw, (losses - prior) / self.model.weights_of(draw))

    def compile(self) -> None:
        self.model.net.compile()

    def state(self) -> dict[str, Tensor]:
        return self.times.state() if self.times.by_importance else {}

    def restore(self, state: dict[str, Tensor]) -> None:
        if state:
            self.times.restore(state)
