"""How a block diffusion draws: blocks one after another, each by a sampler of masked positions."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unordinal.checks import sample_shape
from unordinal.diffusion.ordered import Ordered
from unordinal.diffusion.predictor import Predictor
from unordinal.diffusion.process import Time
from unordinal.diffusion.samplers import SAMPLERS, Sampler, default_sampler, sampler_named, suitable_samplers
from unordinal.diffusion.unmasking import SpreadUnmasking, Unmasking
from unordinal.model import device_of, evaluating
from unordinal.names import check_known
from unordinal.numerics import Rng, full_precision
from unordinal.progress import Watcher, current_watcher, watching

if TYPE_CHECKING:
    from unordinal.models.blockwise import BlockDiffusion


class BlockDenoiser:
    """The `Denoiser` of a block diffusion.

    Args:
        model: the block diffusion.
    """

    def __init__(self, model: "BlockDiffusion"):
        self.model, self.net = model, model.net

    @property
    def samplers(self) -> tuple[str, ...]:
        return suitable_samplers(self.model.noise)

    def whole_calls(self, sampler: str | None, num_free: int) -> int | None:
        return SAMPLERS[sampler or default_sampler(self.model.noise)].whole_calls(self.model.noise, num_free)

    @property
    def takes_any_known(self) -> bool:
        return self.model.block >= self.model.event_shape[0]

    @property
    def posterior(self) -> Callable[[Tensor, float], Tensor] | None:
        return None

    @torch.no_grad()
    def chain(
        self,
        num_samples: int,
        *,
        generator: Rng = None,
        event_shape: tuple[int, ...] | None = None,
        steps: int | None = None,
        sampler: str | None = None,
        budget: float | None = None,
        known: Any = None,
        cond: Any = None,
        guidance: float = 1.0,
        temperature: float = 1.0,
        top_p: float = 1.0,
        greedy_tail: float = 0.0,
        **settings: Any,
    ) -> Iterator[tuple[Time, Tensor]]:
        """Draw blocks one after another and yield the share of masked positions and x after each call.

        Args:
            num_samples: how many, N.
            generator: the random number generator; default: torch's global one.
            event_shape: (L,), the length of all samples; default: the model's own, or where samples end.
            steps: the network calls of a whole sample, shared out over the blocks; None for one for each position.
            sampler: how the positions of a block are shown, a name of `SAMPLERS`.
            budget: the nats of a call of the sampler entropy-bounded.
            known: classes (N, L), or (L,) for all samples, of positions that are given, -1 where they are free. They
                may be in the first block that has a free position, and before it.
            cond: labels, of shape (N, J), or (J,) for all samples.
            guidance: how much labels count; see `Predictor`.
            temperature: divides the logits; 0 takes the likeliest class.
            top_p: keep the likeliest classes that together have at least this probability.
            greedy_tail: take the likeliest class from this fraction of a block's chain on.
            **settings: none; others are refused.
        """
        model, size = self.model, self.model.block
        (length,) = sample_shape(model, num_samples, event_shape, settings)
        device, labels = device_of(model), model.checked_cond(cond, num_samples)
        name = default_sampler(model.noise) if sampler is None else sampler
        check_known("sampler", name, self.samplers)
        given = self.checked_given(known, num_samples, torch.Size((length,)))
        stays = torch.zeros(num_samples, length, dtype=torch.bool, device=device)  # where no sample may end
        if event_shape is not None:
            stays[:] = True
        elif given is not None:
            stays = (given >= 0).flip(1).cumsum(dim=1).flip(1) > 0
        x = torch.full((num_samples, length), self.net.mask, device=device)
        sharp = {"temperature": temperature, "top_p": top_p, "greedy_tail": greedy_tail, "guidance": guidance}
        states = [self.net.init_state(num_samples, labels)]
        if guidance != 1:
            dropped = model.dropped_labels(guidance).expand(num_samples, -1)
            states.append(self.net.init_state(num_samples, dropped))
        yield 1.0, x
        for start in range(0, length, size):
            stop = min(length, start + size)
            part = None if given is None else given[:, start:stop]
            if start and model.ends:  # samples that have ended are over
                is_over = x[:, start - 1] == model.num_classes
                if bool(is_over.all()):
                    break
                free = torch.full((num_samples, stop - start), -1, device=device) if part is None else part
                part = torch.where(is_over.unsqueeze(1), model.num_classes, free)
            num_free = stop - start if part is None else int((part < 0).sum(dim=1).max())
            if num_free:
                calls = None if steps is None else max(1, min(num_free, round(steps * (stop - start) / length)))
                if calls is None and self.whole_calls(name, num_free) is None:
                    calls = num_free
                sampling = sampler_named(name, calls, budget)
                sampling = SpreadUnmasking(calls) if name == "spread" else sampling
                drawn = self.block_chain(
                    states, (start, stop), sampling, part, stays[:, start:stop], sharp, (generator, length)
                )
                for _, z in drawn:
                    x = torch.cat([x[:, :start], z, x[:, stop:]], dim=1)
                    yield float((x == self.net.mask).double().mean(dim=1).max()), x
            else:
                assert part is not None
                x = torch.cat([x[:, :start], part, x[:, stop:]], dim=1)
            x = self.cut(x, stop)
            with evaluating(model):
                states = [self.net.append(x[:, start:stop], state) for state in states]
        x = torch.where(x == self.net.mask, model.num_classes, x) if model.ends else x
        current_watcher().state(0.0, x)
        yield 0.0, x

    def checked_given(self, known: Any, num: int, shape: torch.Size) -> Tensor | None:
        """Validate known positions: none may be in a block after the first one that has a free position."""
        if known is None:
            return None
        given = self.model.checked_known(known, num, shape).to(device_of(self.model))
        number = torch.arange(shape[0], device=given.device) // self.model.block
        first = torch.where(given < 0, number, shape[0]).amin(dim=1, keepdim=True)  # block with a free position
        if bool(((given >= 0) & (number > first)).any()):
            raise ValueError(
                f"with blocks of {self.model.block}, known positions may be in the first block that has a free "
                "position, and before it; use `block` all for others"
            )
        return given

    def block_chain(
        self,
        states: list[Any],
        span: tuple[int, int],
        sampler: Sampler,
        known: Tensor | None,
        stays: Tensor,
        sharp: dict[str, Any],
        rest: tuple[Rng, int],
    ) -> Iterator[tuple[Time, Tensor]]:
        """Draw one block given the states after the blocks before it; yield each (t, z), z (N, S)."""
        model, (generator, length) = self.model, rest
        num, width, outer = states[0].batch, span[1] - span[0], current_watcher()
        predictor = self.predictor(states, stays, sharp)
        inner = Watcher(advance=lambda amount: outer.advance(amount * width / length))
        z = model.noise.draw_prior((num, width), device_of(model), generator=generator)
        if isinstance(sampler, Unmasking):

            def revealed(logits: Tensor, is_shown: Tensor) -> Tensor:
                drawn = torch.zeros_like(z)
                drawn[is_shown] = model.noise.classes.draw_at(logits, is_shown, generator)
                return torch.where(self.forced(drawn, is_shown), model.num_classes, drawn)[is_shown]

            chain = sampler.shown(predictor, model.noise, z, revealed, known=known, generator=generator)
        else:
            chain = sampler.chain(predictor, model.noise, z, known=known, generator=generator)
        while True:
            with watching(inner):
                step = next(chain, None)
            if step is None:
                break
            yield step
        outer.network_calls += inner.network_calls

    def predictor(self, states: list[Any], stays: Tensor, sharp: dict[str, Any]) -> Predictor:
        """Return the predictions of the next block (N, S), given the states after the blocks before it.

        Args:
            states: the states with the labels of the samples, and without them if there is guidance.
            stays: where no sample may end, of shape (N, S).
            sharp: settings of the `Predictor`.
        """
        model, num, width = self.model, states[0].batch, stays.shape[1]
        rows = torch.arange(num, device=device_of(model)).unsqueeze(1)
        last_rows = rows[:, 0]

        def predict(z: Tensor, _t: Tensor, index: Tensor) -> Tensor:
            nonlocal last_rows
            is_dropped = bool(index[0, 0] < 0)  # the same rows again, without labels
            last_rows = last_rows if is_dropped else index[:, 0]
            state = states[is_dropped]
            whole = len(last_rows) == num
            state = state if whole else self.net.select_state(state, last_rows)
            with evaluating(model):
                logits = full_precision(self.net.read(z, state))
            logits = model.possible(logits, z, width)
            if model.ends:
                is_end = torch.arange(logits.shape[-1], device=z.device) == model.num_classes
                logits = logits.masked_fill(stays[last_rows].unsqueeze(2) & is_end, float("-inf"))
            return logits

        dropped = torch.tensor([-1], device=rows.device) if len(states) > 1 else None
        return Predictor(
            predict, classes=model.noise.classes, cond=rows, reads_time=False, mixes=True, dropped=dropped, **sharp
        )

    def forced(self, x: Tensor, is_shown: Tensor) -> Tensor:
        """Return which positions that a call shows are after an end that it shows: they are ends too, (N, S)."""
        if not self.model.ends:
            return torch.zeros_like(is_shown)
        is_end = (x == self.model.num_classes) & is_shown
        return is_shown & (is_end.long().cumsum(dim=1) - is_end.long() > 0)

    @torch.no_grad()
    def followed(self, x: Tensor, sampler: Ordered, cond: Tensor | None) -> Tensor:
        """Return the exact log-probability of x (N, L) under a sampler of every block: (N,) nats."""
        model, length, size = self.model, x.shape[1], self.model.block
        states, total = [self.net.init_state(len(x), cond)], torch.zeros(len(x), device=x.device)
        for start in range(0, length, size):
            current_watcher().advance(0)  # a watcher may raise here to stop the work
            part, known = x[:, start : start + size], None
            if start and model.ends:
                is_over = x[:, start - 1] == model.num_classes
                known = torch.where(is_over.unsqueeze(1), model.num_classes, torch.full_like(part, -1))
                if bool(is_over.all()):
                    break
            width = part.shape[1]
            calls = None if sampler.steps is None else max(1, min(width, round(sampler.steps * width / length)))
            predictor = self.predictor(states, torch.zeros_like(part, dtype=torch.bool), {})
            for log_p in replace(sampler, steps=calls).followed(predictor, model.noise, part, known, self.forced):
                total = total + log_p
            with evaluating(model):
                states = [self.net.append(part, state) for state in states]
        return total

    def cut(self, x: Tensor, stop: int) -> Tensor:
        """Return samples with nothing but ends after a first end, up to `stop`."""
        if not self.model.ends:
            return x
        has_ended = (x[:, :stop] == self.model.num_classes).cumsum(dim=1) > 0
        return torch.cat([torch.where(has_ended, self.model.num_classes, x[:, :stop]), x[:, stop:]], dim=1)
