"""The recipe of block diffusion: blocks one after another, each a masked diffusion."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from unordinal.config import ModelSettings, Size
from unordinal.nets.settings import Transformer
from unordinal.recipes.arm import ArmSettings, arm
from unordinal.recipes.recipe import Plan, Recipe, Task
from unordinal.settings import Checked, Range

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.models.block import BlockModel


@dataclass(frozen=True)
class BlockSettings(ModelSettings, Checked):
    """Blocks of positions one after another; the positions of a block are masked and shown in any order."""

    handles: ClassVar = ("ends", "labels")

    net: Transformer
    """The network that predicts masked positions from their block and from the blocks before it."""
    block: Annotated[int | Literal["all"], Range(1)] = 4
    """Positions of a block; 1 is an autoregressive model with an exact likelihood, all a masked diffusion."""
    also: Annotated[tuple[int | Literal["all"], ...], Range(1)] = ()
    """Further sizes of blocks, which some of the training batches have, so that the model is good at them too."""
    also_share: Annotated[float, Range(above=0, below=1)] = 0.1
    """The share of training batches with blocks of each of the sizes of `also`."""

    def build(self, spec: "DataSpec") -> "BlockModel":
        from unordinal.models.block import BlockModel
        from unordinal.nets.blockwise import BlockTransformer

        spec.require_sequences()
        shared = self.also_share * len(self.also)
        if shared >= 1:
            raise ValueError(
                f"`model.also_share` {self.also_share:g} of {len(self.also)} sizes leaves no batch for others"
            )
        labels, (length,) = spec.label_sizes, spec.event_shape
        net = BlockTransformer(spec.num_classes + spec.ends, length=spec.num_places, labels=labels, **vars(self.net))
        # blocks larger than the examples, which are short, hold everything
        sizes = [length if size == "all" else min(size, length) for size in (self.block, *self.also)]
        mixture = list(zip(sizes, [1 - shared, *[self.also_share] * len(self.also)], strict=True))
        return BlockModel(
            net, event_shape=spec.event_shape, block=sizes[0], mixture=mixture, ends=spec.ends, labels=labels
        )


def block(size: Size, task: Task) -> Plan:
    """Return the plan of `arm`, whose network has twice the positions here: half the examples."""
    plan = arm(size, task)
    assert isinstance(plan.model, ArmSettings)
    net = replace(plan.model.net, dropout=0.0) if size == "paper" else plan.model.net
    return replace(plan, model=BlockSettings(net))


BLOCK = Recipe("block diffusion: from autoregressive to masked diffusion in one network", BlockSettings, block)
