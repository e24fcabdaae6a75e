"""Block diffusion: blocks one after another, each a masked diffusion given the clean blocks before it."""

import itertools
import math
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unordinal.abilities import Orders, RandomOrder, SamplerScores, Times, WeightFactors, Weights
from unordinal.checks import check_classes
from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.ordered import Ordered
from unordinal.diffusion.times import stratified_positions
from unordinal.model import CategoricalModel, evaluating
from unordinal.nets.blockwise import BlockTransformer, layout_of
from unordinal.nets.positions import can_choose
from unordinal.numerics import Rng, full_precision, uniform
from unordinal.progress import current_watcher

if TYPE_CHECKING:
    from unordinal.models.block_sampling import BlockDenoiser

GOLDEN = (math.sqrt(5) - 1) / 2  # spreads the numbers of masks over the blocks of an example
MOST_EXACT = 4  # positions of a block whose orders are summed over exactly


class BlockDiffusion(CategoricalModel):
    """A model of blocks, one after another: log P(x) >= the sum over blocks of a masked bound given the blocks before.

    Examples that may end early have a class for the end, as autoregressive models do. Within a block the end may be
    shown before what comes earlier: every position after a shown end is an end, and no position before a shown symbol
    is one, so that the probabilities of all strings sum to 1.

    Args:
        net: the network; its last class is the end if examples may end early.
        event_shape: (L,), the length of an example, or the longest.
        block: the number of positions of a block; the last block may be shorter.
        ends: whether examples may end early.
        labels: the number of classes of each label that may be given with an example.

    >>> net = BlockTransformer(4, width=8, num_blocks=1, num_heads=1)
    >>> BlockDiffusion(net, event_shape=(6,), block=4).sample(3).shape
    torch.Size([3, 6])
    """

    def __init__(
        self,
        net: BlockTransformer,
        *,
        event_shape: tuple[int, ...],
        block: int,
        ends: bool = False,
        labels: tuple[int, ...] = (),
    ):
        super().__init__(net.num_classes - ends, event_shape, ends=ends, labels=labels, has_places=net.has_places)
        if not 1 <= block <= event_shape[0]:
            raise ValueError(f"`block` must be between 1 and {event_shape[0]}, the length of an example; got {block}")
        self.net, self.block = net, block
        self.noise = AbsorbingNoise(net.num_classes)

    @property
    def times(self) -> Times:
        return Times(None, self.elbo_at)

    @property
    def weights(self) -> Weights:
        return self.log_weight

    @property
    def weight_factors(self) -> WeightFactors:
        return self.log_weights_of_blocks

    @property
    def orders(self) -> Orders:
        return self.log_prob_of_order

    @property
    def random_order(self) -> RandomOrder | None:
        return self.log_prob_of_random_order if self.block <= MOST_EXACT else None

    @property
    def sampler_scores(self) -> SamplerScores:
        return self.log_prob_of_sampler

    @property
    def denoiser(self) -> "BlockDenoiser":
        from unordinal.models.block_sampling import BlockDenoiser

        return BlockDenoiser(self)

    def completed(self, x: Tensor) -> Tensor:
        """Return examples (B, L) with the whole of the blocks in which they end."""
        longest = self.event_shape[0]
        if not self.ends or x.shape[1] >= longest:
            return x
        wanted = min(longest, (x.shape[1] // self.block + 1) * self.block)
        return F.pad(x, (0, wanted - x.shape[1]), value=self.num_classes)

    def counted(self, x: Tensor) -> Tensor:
        """Return which positions count: those of all blocks up to that of the end, (B, L)."""
        if not self.ends:
            return torch.ones_like(x, dtype=torch.bool)
        last = (x != self.num_classes).sum(dim=1, keepdim=True) // self.block
        return torch.arange(x.shape[1], device=x.device) // self.block <= last

    def log_probs(self, z: Tensor, x: Tensor, cond: Tensor | None, at: Tensor) -> Tensor:
        """Return the log-probability of the class of x given z and earlier blocks of x, 0 where `at` is false: (B, L).

        All but z and x (B, L) are as in the network.
        """
        if not can_choose(self.net, z):
            logits = self.possible(full_precision(self.net(z, x, self.block, cond)), z)
            return torch.where(at, self.noise.classes.log_prob(logits, x), 0.0)
        logits = full_precision(self.net(z, x, self.block, cond, at))  # (M, K)
        if self.ends:
            logits = logits.masked_fill(self.ruled_out(z)[at], -math.inf)
        log_p = self.noise.classes.log_prob(logits, x[at])
        return log_p.new_zeros(x.shape).masked_scatter(at, log_p)

    def possible(self, logits: Tensor, z: Tensor, block: int | None = None) -> Tensor:
        """Return logits (B, L, K) without what the positions of z that are shown rule out: ends, or all but an end."""
        return logits.masked_fill(self.ruled_out(z, block), -math.inf) if self.ends else logits

    def ruled_out(self, z: Tensor, block: int | None = None) -> Tensor:
        """Return which classes of a position the shown positions of z (B, L) rule out, if examples end: (B, L, K)."""
        place, end = torch.arange(z.shape[1], device=z.device), self.num_classes
        same = layout_of(z.shape[1], block or self.block, z.device).same.float()
        before, after = (same * (place < place.unsqueeze(1)), same * (place > place.unsqueeze(1)))
        is_over = ((z == end).float() @ before.T) > 0  # an end is shown before
        is_inside = ((z < end).float() @ after.T) > 0  # a symbol is shown after
        is_end = torch.arange(self.net.num_classes, device=z.device) == end
        return torch.where(is_over.unsqueeze(2), ~is_end, is_inside.unsqueeze(2) & is_end)

    def sizes(self, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the number of each position's block, (L,), and the size of each block, (blocks,)."""
        starts = range(0, length, self.block)
        sizes = torch.tensor([min(self.block, length - start) for start in starts], device=device)
        return torch.arange(length, device=device) // self.block, sizes

    def ranks(self, keys: Tensor) -> Tensor:
        """Return the rank of each position within its block by keys (B, L) in [0, 1): (B, L)."""
        number, _ = self.sizes(keys.shape[1], keys.device)
        order = (number + keys.double()).argsort(dim=1).argsort(dim=1)
        return order - number * self.block

    def terms(self, x: Tensor, position: Tensor, cond: Tensor | None, generator: Rng = None) -> Tensor:
        """Return minus the bound's estimate with one number of masks for each block: (B,) nats.

        The numbers of masks of an example's blocks start from `position` (B,) in [0, 1); uniform positions give
        uniform numbers. A block of S positions of which m are masked counts S / m times.
        """
        x = self.completed(x)
        number, sizes = self.sizes(x.shape[1], x.device)
        shift = GOLDEN * torch.arange(len(sizes), device=x.device, dtype=torch.float64)
        level = (position.to(x.device).double().unsqueeze(1) + shift) % 1  # (B, blocks)
        num_masked = (level * sizes).floor().long() + 1
        is_masked = self.ranks(uniform(x.shape, x.device, generator)) < num_masked[:, number]
        weight = (sizes / num_masked)[:, number]
        z = torch.where(is_masked, self.net.mask, x)
        log_p = self.log_probs(z, x, cond, is_masked & self.counted(x))
        return -(weight.to(log_p) * log_p).sum(dim=1)

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        cond = self.checked_cond(cond, len(x)) if cond is None else cond
        position = stratified_positions(len(x), torch.rand((), dtype=torch.float64)) if draw is None else draw
        return self.terms(x.long(), position, cond)

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        offset = uniform((), torch.device("cpu") if generator is None else generator.device, generator).cpu().double()
        return self.elbo_at(x, stratified_positions(len(x), offset), generator, cond=cond)

    def elbo_at(self, x: Tensor, position: Tensor, generator: Rng = None, *, cond: Tensor | None = None) -> Tensor:
        """Return the bound's estimate with numbers of masks that start from `position` (B,) in [0, 1)."""
        check_classes(self, x)
        with evaluating(self):
            return -self.terms(x.long(), position, self.checked_cond(cond, len(x)), generator)

    def log_prob_of_order(self, x: Tensor, order: Tensor, *, num_given: int = 0, cond: Tensor | None = None) -> Tensor:
        """Return the log-probability of x when the positions of each block are shown in a given order: (B,) nats.

        Blocks come one after another, and the positions of a block in the order in which `order` (L,) or (B, L) has
        them. It is exact for the model that draws so, one position per call.
        """
        check_classes(self, x)
        cond, length = self.checked_cond(cond, len(x)), x.shape[1]
        if num_given:
            raise ValueError("block models take no given positions in an order; use `block` all")
        order = order.to(x.device).expand(len(x), -1)
        if not torch.equal(order.sort(dim=1).values, torch.arange(order.shape[1], device=x.device).expand_as(order)):
            raise ValueError(f"an order has each of the {length} positions once")
        x = self.completed(x.long())
        keys = order.argsort(dim=1).double() / order.shape[1]
        keys = F.pad(keys, (0, x.shape[1] - keys.shape[1]), value=1 - 1e-9)
        return self.by_ranks(x, self.ranks(keys), cond).sum(dim=1)

    def by_ranks(self, x: Tensor, ranks: Tensor, cond: Tensor | None) -> Tensor:
        """Return the log-probability of each block of x, shown in the order of ranks (B, L): (B, blocks) nats."""
        number, sizes = self.sizes(x.shape[1], x.device)
        total, counts = torch.zeros(len(x), len(sizes), device=x.device), self.counted(x)
        with evaluating(self):
            for rank in range(min(self.block, x.shape[1])):
                current_watcher().advance(0)  # a watcher may raise here to stop the work
                z = torch.where(ranks < rank, x, self.net.mask)
                shown = self.log_probs(z, x, cond, (ranks == rank) & counts)
                total = total.to(shown).index_add(1, number, shown)
        return total

    def log_weight(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        """Return the log-probability of x in an order drawn at random within each block: (B,) nats."""
        return self.log_weights_of_blocks(x, cond=cond, generator=generator).sum(dim=1)

    def log_weights_of_blocks(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        """Return the log-probability of each block in an order drawn at random: (B, L) -> (B, blocks) nats."""
        check_classes(self, x)
        x = self.completed(x.long())
        ranks = self.ranks(uniform(x.shape, x.device, generator))
        return self.by_ranks(x, ranks, self.checked_cond(cond, len(x)))

    def log_prob_of_random_order(self, x: Tensor, *, cond: Tensor | None = None) -> Tensor:
        """Return log P(x) of the model that shows each block in random order, one position per call: (B,) nats.

        It is exact, with 2^S - 1 network calls for blocks of S positions: the probability g of a set of masked
        positions is the mean over its members i of p(x_i) g(the others).
        """
        check_classes(self, x)
        if self.block > MOST_EXACT:
            raise ValueError(f"all orders of a block are summed for at most {MOST_EXACT} positions, got {self.block}")
        cond, x = self.checked_cond(cond, len(x)), self.completed(x.long())
        number, sizes = self.sizes(x.shape[1], x.device)
        within = torch.arange(x.shape[1], device=x.device) - number * self.block
        counts, found = self.counted(x), dict[tuple[int, ...], Tensor]()
        kind = torch.promote_types(next(self.net.parameters()).dtype, torch.float32)
        found[()] = torch.zeros(len(x), len(sizes), device=x.device, dtype=kind)
        with evaluating(self):
            for num in range(1, self.block + 1):
                for members in itertools.combinations(range(self.block), num):
                    is_masked = (within.unsqueeze(1) == torch.tensor(members, device=x.device)).any(dim=1)
                    z = torch.where(is_masked, self.net.mask, x)
                    log_p = self.log_probs(z, x, cond, is_masked & counts)
                    parts = []
                    for member in members:
                        own = torch.zeros_like(found[()])
                        own[:, number[within == member]] = log_p[:, within == member]
                        parts.append(own + found[tuple(other for other in members if other != member)])
                    found[members] = torch.logsumexp(torch.stack(parts), dim=0) - math.log(num)
        total = torch.zeros(len(x), device=x.device, dtype=kind)
        for index, size in enumerate(sizes.tolist()):
            total = total + found[tuple(range(size))][:, index]
        return total

    def log_prob_of_sampler(self, x: Tensor, sampler: Ordered, *, cond: Tensor | None = None) -> Tensor:
        """Return the exact log-probability of x under a sampler of every block: (B, L) -> (B,) nats."""
        check_classes(self, x)
        x = self.completed(x.long())
        x = F.pad(x, (0, self.event_shape[0] - x.shape[1]), value=self.num_classes) if self.ends else x
        return self.denoiser.followed(x, sampler, self.checked_cond(cond, len(x)))

    def sample(
        self, num_samples: int, *, generator: Rng = None, event_shape: tuple[int, ...] | None = None, **settings: Any
    ) -> Tensor:
        """Draw samples, block by block; the arguments are those of `BlockDenoiser.chain`."""
        from unordinal.diffusion.samplers import last

        return last(self.denoiser.chain(num_samples, generator=generator, event_shape=event_shape, **settings))
