"""Autoregressive Transformers over classes: tab:performance_text.

Size paper has the depth and width of the systems' own papers, the 64 layers of Al-Rfou et al. (2019) and the 24 of
Transformer-XL for text8; docs/equations.md says where it differs. tiny and small are ours.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unordinal.config import ModelSettings, OptimConfig, Size, TrainConfig
from unordinal.recipes.recipe import QUICK_MUON, Plan, Recipe, Task
from unordinal.recipes.settings import Ngrams, Transformer

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.models.autoregressive import AutoregressiveModel


NO_NGRAMS = Ngrams()


@dataclass(frozen=True)
class ArmSettings(ModelSettings):
    """An autoregressive Transformer over classes."""

    net: Transformer  # the network; dropout acts on the embedding and on what every layer adds
    # Train with the auxiliary losses of Al-Rfou et al. (2019): of every layer, and of the class after the next.
    auxiliary: bool = False
    # Cut a sequence into so many segments, each with a memory of those before it (Transformer-XL); 0 cuts nothing
    num_segments: int = 0
    ngrams: Ngrams = NO_NGRAMS  # tables of the last few classes together: better bits for more memory

    def build(self, spec: "DataSpec") -> "AutoregressiveModel":
        from unordinal.models.autoregressive import AutoregressiveModel
        from unordinal.nets.classes import ClassTransformer, SegmentTransformer
        from unordinal.recipes import parts

        spec.require_sequences()
        (length,) = spec.event_shape
        if self.num_segments == 0:
            ngrams = parts.ngram_embedding(self.ngrams, spec.num_classes + 1, self.net.width)
            net = ClassTransformer(spec.num_classes, ngrams=ngrams, **vars(self.net))
        elif self.ngrams.orders:
            raise ValueError("n-grams are for the Transformer without segments; use one or the other")
        elif self.auxiliary:
            raise ValueError("auxiliary losses are for the Transformer without segments; use one or the other")
        elif not 2 <= self.num_segments <= length:
            raise ValueError(f"`model.num_segments` must be 0, or between 2 and {length}, got {self.num_segments}")
        else:
            segment = -(-length // self.num_segments)  # the last segment sees all others, so no more is remembered
            memory = length - segment
            net = SegmentTransformer(spec.num_classes, segment=segment, memory=memory, **vars(self.net))
        return AutoregressiveModel(net, event_shape=spec.event_shape, auxiliary=self.auxiliary)


def arm(size: Size, task: Task) -> Plan:  # noqa: ARG001 (one plan for all texts)
    if size == "paper":
        net = Transformer(512, num_blocks=64, num_heads=2, dropout=0.55)
        optim = OptimConfig(optimizer="adam", ema=0.0)
        return Plan(ArmSettings(net, auxiliary=True), TrainConfig(epochs=100, batch_size=16, lr=1e-4), optim)
    if size == "tiny":  # small batches and large steps: what counts in minutes is the number of steps
        net = Transformer(128, num_blocks=3, num_heads=4, conv=5)
        train = TrainConfig(minutes=2, batch_size=4, lr=3e-3)
        return Plan(ArmSettings(net), train, replace(QUICK_MUON, matrix_lr=0.02))
    net = Transformer(320, num_blocks=6, num_heads=5, conv=5)  # as many weights as argmax-ar has
    return Plan(ArmSettings(net), TrainConfig(minutes=60, batch_size=16, lr=2e-3), QUICK_MUON)


def arm_xl(size: Size, task: Task) -> Plan:
    if size == "paper":
        net = Transformer(1024, num_blocks=24, num_heads=8, dropout=0.15)
        optim = OptimConfig(optimizer="adam", warmup=4000, decay_to_zero=True, ema=0.0)
        return Plan(ArmSettings(net, num_segments=4), TrainConfig(epochs=100, batch_size=64, lr=2.5e-4), optim)
    plan = arm(size, task)
    assert isinstance(plan.model, ArmSettings)
    return replace(plan, model=replace(plan.model, num_segments=4))


ARM = Recipe("autoregressive Transformer over classes, exact likelihood", ArmSettings, arm, ("text8", "enwik8"))
ARM_XL = Recipe("Transformer-XL: segments with a memory, exact likelihood", ArmSettings, arm_xl, ("text8", "enwik8"))
