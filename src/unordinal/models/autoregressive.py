"""Autoregressive models of classes: exact likelihoods, one class after another."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unordinal.abilities import Network, TrainingHooks, Visits
from unordinal.checks import as_classes, check_classes, sample_shape
from unordinal.model import ExactModel, evaluating, given_labels
from unordinal.models.guidance import GuidedSteps
from unordinal.models.visiting import by_steps
from unordinal.nets.classes import ClassTransformer
from unordinal.nets.linear import Linear
from unordinal.numerics import Rng, draw_categorical, full_precision, sharpened, sum_except_batch
from unordinal.progress import current_watcher


class AutoregressiveModel(ExactModel):
    """An autoregressive model: log P(x) is the sum of log p(x_i | x_<i), exactly, from a causal network over classes.

    With `auxiliary` the training loss has the terms of Al-Rfou et al. (2019): every layer predicts as well, layer l of
    n until l / 2n of the budget is spent, and a second head predicts the class after the next at half the weight. A
    training loop of your own says how much is spent with `model.hooks.progressed(fraction)`; without it, only the last
    layer predicts.

    If examples may end early, the last class of the network is the end. It is certain after L symbols, so that the
    probabilities of all strings of 0 to L symbols sum to 1.

    Args:
        net: the network, which gives logits of each position from the classes before it; its last class is the end if
            examples may end early.
        event_shape: (L,), the length of an example. Without ends and places, other lengths can be scored and drawn too.
        auxiliary: train with the auxiliary losses.
        ends: whether examples may end early.
        labels: the number of classes of each label that may be given with an example.

    >>> model = AutoregressiveModel(ClassTransformer(4, width=8, num_blocks=1, num_heads=1), event_shape=(5,))
    >>> model.sample(3).shape
    torch.Size([3, 5])
    """

    def __init__(
        self,
        net: ClassTransformer,
        *,
        event_shape: tuple[int, ...],
        auxiliary: bool = False,
        ends: bool = False,
        labels: tuple[int, ...] = (),
    ):
        classes = net.num_classes - 1 if ends else net.classes
        super().__init__(classes, event_shape, ends=ends, labels=labels, has_places=net.has_places)
        if auxiliary and (self.has_places or ends):
            raise ValueError("auxiliary losses are for sequences without places and ends; leave them out")
        self.net = net
        self.fraction = 1.0  # of the budget that is spent
        self.second = Linear(net.width, net.num_classes) if auxiliary else None

    @property
    def stepper(self) -> "AutoregressiveStepper":
        return AutoregressiveStepper(self)

    @property
    def visits(self) -> Visits:
        return partial(by_steps, self.stepper, self.event_shape[0])

    @property
    def network(self) -> Network | None:
        """The network, which gives the logits of each position from the classes before it."""
        if self.net.has_memory or self.labels:
            return None
        return Network(self.net, {"x": torch.zeros((2, *self.event_shape), dtype=torch.long)})

    @property
    def hooks(self) -> TrainingHooks:
        return AutoregressiveHooks(self)

    def unchecked_log_prob(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        return sum_except_batch(self.position_log_probs(x, cond))

    def position_log_probs(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return the log-probability of the class of each position given those before it: (B, L) -> (B, L).

        If examples may end early, there is a column more where an end may follow, and positions after an end have 0.
        """
        if self.ends and x.shape[1] < self.event_shape[0]:
            x = F.pad(x, (0, 1), value=self.num_classes)  # every example ends
        logits = full_precision(self.net(x) if cond is None else self.net(x, cond))
        log_p = self.net.classes.log_prob(logits, x)
        if not self.ends:
            return log_p
        has_ended = F.pad(x[:, :-1] == self.num_classes, (1, 0))  # before this position
        return torch.where(has_ended, 0.0, log_p)

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        x, cond = x.long(), self.checked_cond(cond, len(x)) if cond is None else cond
        if self.second is None:
            return -self.unchecked_log_prob(x, cond)
        features = self.net.features(x, cond)  # not through `forward`: compiling leaves this loss as it is
        num = len(features)
        loss = torch.zeros(len(x), device=x.device)
        for layer, h in enumerate(features, start=1):
            if layer == num or self.fraction < layer / (2 * num):
                loss = loss - log_likelihood(self.net.out(h), x)
                if x.shape[1] > 1:
                    loss = loss - 0.5 * log_likelihood(self.second(h[:, :-1]), x[:, 1:])
        return loss

    @torch.no_grad()
    def sample(
        self,
        num_samples: int,
        *,
        generator: Rng = None,
        event_shape: tuple[int, ...] | None = None,
        temperature: float = 1.0,
        prompt: Any = None,
        known: Any = None,
        cond: Any = None,
        guidance: float = 1.0,
        particles: int = 32,
        **settings: Any,
    ) -> Tensor:
        """Draw one class after another.

        Args:
            num_samples: how many, N.
            generator: the random number generator; default: torch's global one.
            event_shape: (L,), the length of a sample; default: the model's own. With `known` positions, samples do not
                end earlier.
            temperature: divides the logits; 0 takes the likeliest class.
            prompt: classes (P,) that come first in every sample.
            known: classes (N, L), or (L,) for all samples, of positions that are given, -1 where they are free. Given
                positions at the beginning are exact. Others are respected by `particles` candidates for each sample,
                which are resampled by how likely they make each given class: consistent for many particles, not exact.
            cond: labels, of shape (N, J), or (J,) for all samples.
            guidance: how much labels count; see `unordinal.models.guidance`.
            particles: the number of candidates.

        Returns:
            Classes, of shape (N, L); the number of classes after the end of a sample.
        """
        (length,) = sample_shape(self, num_samples, event_shape, settings)
        if not 0 <= temperature < math.inf:
            raise ValueError(f"the temperature must be a number of at least 0, got {temperature:g}")
        net = self.net if guidance == 1 else GuidedSteps(self.net, self.dropped_labels(guidance), guidance)
        if known is not None:
            if prompt is not None:
                raise ValueError("give `known` or `prompt`, not both")
            checked = self.checked_known(known, num_samples, torch.Size((length,)))
            around: Any = {"particles": particles, "generator": generator, "is_whole": event_shape is not None}
            return self.sample_around(net, checked, cond, temperature, **around)
        given = [] if prompt is None else self.checked_prompt(prompt, length)
        watcher, labels = current_watcher(), given_labels(self.checked_cond(cond, num_samples))
        with evaluating(self):
            state, last = net.init_state(num_samples, **labels), None
            drawn = torch.full((num_samples, length), self.num_classes, device=self.net.device)
            has_ended = torch.zeros(num_samples, dtype=torch.bool, device=self.net.device)
            for place in range(length):
                logits, state = net.step(last, state)
                if place < len(given):
                    last = torch.full((num_samples,), given[place], device=self.net.device)
                else:
                    last = draw_categorical(sharpened(logits, temperature), generator)
                if self.ends:
                    last = torch.where(has_ended, self.num_classes, last)
                    has_ended |= last == self.num_classes
                drawn[:, place] = last
                watcher.network_calls += num_samples
                watcher.advance(num_samples / length)
                if self.ends and bool(has_ended.all()):
                    break
        return drawn

    def sample_around(
        self, net: Any, known: Tensor, cond: Any, temperature: float, *, particles: int, is_whole: bool, generator: Rng
    ) -> Tensor:
        """Draw samples with given positions (N, L) by sequential Monte Carlo; their effective number is reported.

        With `is_whole`, no sample ends before its last position.
        """
        num, length = known.shape
        first = int((known >= 0).long().cumprod(dim=1).sum(dim=1).min())  # given at the beginning, in all samples
        is_prefix = not bool((known[:, first:] >= 0).any())
        if particles < 1:
            raise ValueError(f"`particles` must be at least 1, got {particles}")
        each, device = 1 if is_prefix else particles, self.net.device
        known = known.to(device).repeat_interleave(each, dim=0)  # (N M, L)
        watcher, effective, labels = current_watcher(), float(each), self.checked_cond(cond, num)
        with evaluating(self):
            given_all = given_labels(None if labels is None else labels.repeat_interleave(each, dim=0))
            state, last = net.init_state(num * each, **given_all), None
            drawn = torch.zeros((num * each, 0), dtype=torch.long, device=device)
            for place in range(length):
                logits, state = net.step(last, state)
                given = known[:, place]
                if self.ends:  # no sample ends before a position that is given
                    is_before = (known[:, place:] >= 0).any(dim=1, keepdim=True) | is_whole
                    has_ended = (drawn == self.num_classes).any(dim=1, keepdim=True)
                    is_end = torch.arange(self.num_classes + 1, device=device) == self.num_classes
                    logits = logits.masked_fill(torch.where(has_ended, ~is_end, is_before & is_end), -math.inf)
                free = draw_categorical(sharpened(logits, temperature), generator)
                last = torch.where(given >= 0, given, free)
                drawn = torch.cat([drawn, last.unsqueeze(1)], dim=1)
                if each > 1 and bool((given >= 0).any()):
                    # weighed at the temperature at which the free positions are drawn; where no candidate can have
                    # the given class, as happens at temperature 0, all candidates stay
                    log_p = torch.log_softmax(sharpened(logits, temperature), dim=-1)
                    log_p = log_p.gather(1, given.clamp(min=0).unsqueeze(1)).squeeze(1)
                    weight = torch.softmax(torch.where(given >= 0, log_p, 0.0).view(num, each), dim=1)
                    weight = weight.nan_to_num(1 / each)
                    effective = min(effective, float((1 / weight.square().sum(dim=1)).min()))
                    picked = torch.multinomial(weight, each, replacement=True, generator=generator)
                    index = (picked + each * torch.arange(num, device=device).unsqueeze(1)).flatten()
                    drawn, last, state = drawn[index], last[index], net.select_state(state, index)
                watcher.network_calls += num * each
                watcher.advance(num / length)
        watcher.effective_particles = None if is_prefix else effective
        return drawn.view(num, each, length)[:, 0]

    def checked_prompt(self, given_prompt: Any, length: int) -> list[int]:
        """Validate a prompt for samples of this length and return its classes."""
        prompt = as_classes(given_prompt, "prompt")
        if prompt.dim() != 1 or prompt.is_floating_point():
            raise ValueError(f"a prompt is one row of integer classes, (P,); got shape {tuple(prompt.shape)}")
        given = [int(value) for value in prompt]
        if len(given) > length:
            raise ValueError(f"the prompt has {len(given)} symbols, more than the {length} of a sample")
        sizes = self.classes.columns or (self.num_classes,) * length
        for value, most in zip(given, sizes, strict=False):
            if not 0 <= value < most:
                raise ValueError(f"the prompt has class {value}, but num_classes={most}")
        return given


class AutoregressiveStepper:
    """The `Stepper` of an autoregressive model.

    Args:
        model: the model.
    """

    def __init__(self, model: AutoregressiveModel):
        self.model, self.net = model, model.net

    def first_state(self, num: int, cond: Tensor | None = None) -> Any:
        return self.net.init_state(num, **given_labels(self.model.checked_cond(cond, num)))

    @torch.no_grad()
    def next_log_probs(self, before: Tensor | None, state: Any) -> tuple[Tensor, Any]:
        with evaluating(self.model):
            logits, state = self.net.step(before, state)
        return torch.log_softmax(logits, dim=-1), state

    def select_state(self, state: Any, index: Tensor) -> Any:
        return self.net.select_state(state, index)

    @torch.no_grad()
    def log_probs(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        check_classes(self.model, x)
        with evaluating(self.model):
            return self.model.position_log_probs(x.long(), self.model.checked_cond(cond, len(x)))

    @property
    def in_order(self) -> Callable[[Tensor, Any], tuple[Tensor, Any]] | None:
        return self.continued if self.net.has_memory else None

    @torch.no_grad()
    def continued(self, chunks: Tensor, past: Any) -> tuple[Tensor, Any]:
        """Score consecutive chunks (N, L) of one text, each given a memory of those before."""
        check_classes(self.model, chunks)
        found = []
        with evaluating(self.model):
            for chunk in chunks.long():
                h, past = self.net.normed(chunk.unsqueeze(0), past)  # type: ignore[operator]
                found.append(log_likelihood(self.net.out(h), chunk.unsqueeze(0)))
        return torch.cat(found), past


class AutoregressiveHooks(TrainingHooks):
    """Passes the progress of training on to the model, whose auxiliary losses end one after another."""

    def __init__(self, model: AutoregressiveModel):
        self.model = model
        self.can_shard = model.net.can_shard and model.net.ngrams is None

    def progressed(self, fraction: float) -> None:
        self.model.fraction = fraction

    def compile(self) -> None:
        if self.model.net.ngrams is None:
            self.model.net.compile()
            return
        for block in self.model.net.blocks:  # without the tables, whose sparse gradients cannot be compiled
            block.compile()


def log_likelihood(logits: Tensor, x: Tensor) -> Tensor:
    """Return log p(x) from logits (B, L, K) and classes (B, L): (B,) nats."""
    logits = full_precision(logits)
    return -sum_except_batch(F.cross_entropy(logits.flatten(0, 1), x.flatten(), reduction="none").view(x.shape))
