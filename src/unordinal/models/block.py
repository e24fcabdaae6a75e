"""One network for several sizes of blocks: from an autoregressive model to a masked diffusion."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.abilities import (
    Blocks,
    Conditional,
    Denoiser,
    Orders,
    RandomOrder,
    SamplerScores,
    Stepper,
    Times,
    TrainingHooks,
    Visits,
    WeightFactors,
    Weights,
)
from unordinal.diffusion.absorbing import MaskCountNoise
from unordinal.diffusion.times import stratified_positions
from unordinal.model import CategoricalModel
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.blockwise import BlockDiffusion
from unordinal.models.diffusion import Diffusion
from unordinal.nets.blockwise import BlockTransformer
from unordinal.numerics import Rng


class BlockModel(CategoricalModel):
    """A model that draws blocks of positions one after another, and a block by showing masked positions.

    With blocks of one position it is an autoregressive model with an exact likelihood, and with one block for all a
    masked diffusion. It trains on blocks of one size, or of several sizes in turn; `at` gives the model of any size.

    Args:
        net: the network; its last class is the end if examples may end early.
        event_shape: (L,), the length of an example, or the longest.
        block: the number of positions of a block in scores and samples; None for one block for all.
        mixture: the sizes of blocks that training draws for a batch, with their shares; by default `block` alone.
        ends: whether examples may end early.
        labels: the number of classes of each label that may be given with an example.

    >>> net = BlockTransformer(4, width=8, num_blocks=1, num_heads=1)
    >>> model = BlockModel(net, event_shape=(6,), block=3)
    >>> model.is_exact, model.at(1).is_exact, type(model.at("all")).__name__
    (False, True, 'Diffusion')
    """

    def __init__(
        self,
        net: BlockTransformer,
        *,
        event_shape: tuple[int, ...],
        block: int | None = 4,
        mixture: Sequence[tuple[int | None, float]] = (),
        ends: bool = False,
        labels: tuple[int, ...] = (),
    ):
        size = self.size_of(block, event_shape[0])
        given: Any = {"ends": ends, "labels": labels, "has_places": net.has_places}
        super().__init__(net.num_classes - ends, event_shape, is_exact=size == 1, **given)
        self.net, self.block = net, size
        pairs = [(self.size_of(block, event_shape[0]), share) for block, share in mixture or [(block, 1.0)]]
        if min(share for _, share in pairs) <= 0:
            raise ValueError(f"the shares of a mixture of blocks must be above 0, got {list(mixture)}")
        self.sizes, self.shares = [size for size, _ in pairs], [share for _, share in pairs]
        # not parts of this module: they have the same network
        self.others: dict[int, CategoricalModel] = {}
        self.blockwise = {
            size: BlockDiffusion(net, event_shape=event_shape, block=size, ends=ends, labels=labels)
            for size in dict.fromkeys([self.block, *self.sizes])
        }

    @staticmethod
    def size_of(block: int | str | None, length: int) -> int:
        """Return the number of positions of a block; None and all stand for the length of an example."""
        size = length if block in (None, "all") else block
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= length:
            raise ValueError(f"`block` must be between 1 and {length}, the length of an example, or all; got {block}")
        return size

    def at(self, block: int | str | None) -> CategoricalModel:
        """Return the model with blocks of a size, which shares the weights: 1, ..., L, or all.

        Blocks of sizes that were not trained are allowed; `sizes` has those that were.
        """
        size = self.size_of(block, self.event_shape[0])
        if size not in self.others:
            given: Any = {"event_shape": tuple(self.event_shape), "labels": self.labels}
            made: CategoricalModel
            if size == 1:
                causal: Any = CausalSteps(self.net)
                made = AutoregressiveModel(causal, ends=self.ends, **given)
            elif size == self.event_shape[0] and not self.ends:
                noise = MaskCountNoise(self.classes)
                made = Diffusion(WholeBlock(self.net), noise=noise, has_places=self.has_places, **given)
            elif size in self.blockwise:
                made = self.blockwise[size]
            else:
                made = BlockDiffusion(self.net, block=size, ends=self.ends, **given)
            self.others[size] = made
        made = self.others[size]
        made.training = self.training
        return made

    @property
    def blocks(self) -> Blocks:
        return Blocks(tuple(self.sizes), self.at)

    @property
    def own(self) -> CategoricalModel:
        """The model with blocks of its own size."""
        return self.at(self.block)

    @property
    def stepper(self) -> Stepper | None:
        return self.own.stepper

    @property
    def denoiser(self) -> Denoiser | None:
        return self.own.denoiser

    @property
    def times(self) -> Times | None:
        return self.own.times

    @property
    def orders(self) -> Orders | None:
        return self.own.orders

    @property
    def random_order(self) -> RandomOrder | None:
        return self.own.random_order

    @property
    def sampler_scores(self) -> SamplerScores | None:
        return self.own.sampler_scores

    @property
    def conditional(self) -> Conditional | None:
        return self.own.conditional

    @property
    def visits(self) -> Visits | None:
        return self.own.visits

    @property
    def weights(self) -> Weights | None:
        return None if self.is_exact else self.own.weights

    @property
    def weight_factors(self) -> WeightFactors | None:
        return None if self.is_exact else self.own.weight_factors

    @property
    def hooks(self) -> TrainingHooks:
        return BlockHooks(self)

    def log_prob(self, x: Tensor, *, cond: Tensor | None = None) -> Tensor:
        """Return the exact log-probability with blocks of one position: (B, L) -> (B,) nats."""
        exact = self.at(1)
        assert isinstance(exact, AutoregressiveModel)
        return exact.log_prob(x, cond=cond)

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        """Return minus the bound for blocks of a drawn size: (B, L) -> (B,) nats."""
        draw = BlockHooks(self).draw(len(x)) if draw is None else draw
        cond = self.checked_cond(cond, len(x)) if cond is None else cond
        model = self.blockwise[round(draw[:1, 1].tolist()[0])]
        return model.terms(x.long(), draw[:, 0], cond)

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        return self.own.elbo(x, cond=cond, generator=generator)

    def sample(
        self, num_samples: int, *, generator: Rng = None, event_shape: tuple[int, ...] | None = None, **settings: Any
    ) -> Tensor:
        """Draw samples; the arguments are those of the model with blocks of its own size."""
        return self.own.sample(num_samples, generator=generator, event_shape=event_shape, **settings)


class BlockHooks(TrainingHooks):
    """Draws a size of blocks for each batch, and numbers of masks for its examples."""

    def __init__(self, model: BlockModel):
        self.model = model

    def draw(self, num: int) -> Tensor:
        """Return where the numbers of masks of each example start, and the size of blocks: (num, 2)."""
        positions = stratified_positions(num, torch.rand((), dtype=torch.float64))
        shares = torch.tensor(self.model.shares, dtype=torch.float64)
        size = self.model.sizes[torch.multinomial(shares, 1).tolist()[0]]
        return torch.stack([positions, torch.full_like(positions, size)], dim=1)

    def compile(self) -> None:
        self.model.net.compile()


class WholeBlock(nn.Module):
    """A block network as a denoiser of masks, with one block for all."""

    reads_time = False

    def __init__(self, net: BlockTransformer):
        super().__init__()
        self.net = net

    def forward(self, z: Tensor, time: Tensor | None = None, cond: Tensor | None = None) -> Tensor:
        return self.net(z, z, z.shape[1], cond)


class CausalSteps(nn.Module):
    """A block network as a causal one, with blocks of one position: it has the interface of `ClassTransformer`."""

    has_memory, can_shard, ngrams = False, False, None

    def __init__(self, net: BlockTransformer):
        super().__init__()
        self.net, self.classes, self.num_classes = net, net.classes, net.num_classes
        self.width, self.has_places = net.width, net.has_places

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.net.device

    def forward(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return the logits of each position given the classes before it: (B, L) -> (B, L, K)."""
        return self.net(torch.full_like(x, self.net.mask), x, 1, cond)

    def init_state(self, batch: int, cond: Tensor | None = None) -> Any:
        """Return the state before the first position, for a batch of this size."""
        return self.net.init_state(batch, cond)

    def select_state(self, state: Any, index: Tensor) -> Any:
        """Return the state of some rows of the batch, `index` (M,)."""
        return self.net.select_state(state, index)

    def step(self, x_before: Tensor | None, state: Any) -> tuple[Tensor, Any]:
        """Return the logits of the next position (B, K) given the class before it (B,), and the new state."""
        if x_before is not None:
            state = self.net.append(x_before.unsqueeze(1), state)
        masked = torch.full((state.batch, 1), self.net.mask, device=self.device)
        return self.net.read(masked, state)[:, 0], state
