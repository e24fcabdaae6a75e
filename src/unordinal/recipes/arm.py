"""Recipes of autoregressive Transformers over classes (tab:performance_text).

Size paper has the depth and width of the original papers: 64 layers (Al-Rfou et al. 2019), and 24 for Transformer-XL on
text8; docs/equations.md lists the differences. The sizes tiny and small are our choice.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from unordinal.config import ModelSettings, OptimConfig, Size, TrainConfig
from unordinal.nets.settings import Ngrams, Transformer
from unordinal.recipes.recipe import QUICK_MUON, Plan, Recipe, Task
from unordinal.settings import Range

if TYPE_CHECKING:
    from unordinal.columns import Classes
    from unordinal.data.spec import DataSpec
    from unordinal.model import ExactModel
    from unordinal.models.any_order import AnyOrderModel
    from unordinal.models.autoregressive import AutoregressiveModel


@dataclass(frozen=True)
class ArmSettings(ModelSettings):
    """An autoregressive Transformer over classes."""

    net: Transformer
    """The network that predicts each class from those before it."""
    auxiliary: bool = False
    """Train with the auxiliary losses of Al-Rfou et al. (2019): every layer predicts the next class and the one
    after."""
    num_segments: int = 0
    """Segments of a sequence, each with a memory of those before (Transformer-XL); 0 for none."""
    ngrams: Ngrams = field(default_factory=Ngrams)
    """Tables of n-grams, which give better scores for more memory."""
    sums: Annotated[int, Range(0)] = 0
    """Rows of places in the given order: channels of a running sum of embeddings that the outputs read as well (as in
    NADE), which suits fewer rows than columns; 0 for none."""
    order: Literal["given", "any", "both"] | None = None
    """The order in which places are drawn. Given: as they are. Any: conditions on any places are exact for the order
    that results. Both: the mean of several networks, half of which read the places in reverse, which suits few rows.
    Default any for tables, given for other data."""
    num_orders: Annotated[int | None, Range(1)] = None
    """With `order` any: the number of orders whose mean is the likelihood, default 16; with both: the number of
    networks, default 4."""

    def takes(self) -> tuple[str, ...]:
        """Return what the model takes besides plain arrays; with segments nothing."""
        return () if self.num_segments else ("columns", "ends", "labels")

    def build(self, spec: "DataSpec") -> "ExactModel":
        from unordinal.models.mixture import MixtureModel
        from unordinal.recipes.parts import classes_of

        spec.require_sequences()
        if self.order == "any" or (self.order is None and spec.schema):
            return self.build_any(spec)
        classes = spec.num_classes + 1 if spec.ends else classes_of(spec)  # one class more, for the end of an example
        if self.order != "both":
            return self.build_given(spec, classes)
        if spec.num_places is None or self.num_segments or self.auxiliary or isinstance(classes, int):
            raise ValueError("`model.order` both is for rows of places; leave out segments and auxiliary losses")
        turns = (classes, classes.reversed())
        return MixtureModel([self.build_given(spec, turns[number % 2]) for number in range(self.num_orders or 4)])

    def build_given(self, spec: "DataSpec", classes: "int | Classes") -> "AutoregressiveModel":
        """Build a model of positions in the given order."""
        from unordinal.models.autoregressive import AutoregressiveModel
        from unordinal.nets.classes import ClassTransformer, SegmentTransformer
        from unordinal.nets.ngrams import NgramEmbedding

        (length,) = spec.event_shape
        given: Any = {"labels": spec.label_sizes}
        if self.num_segments == 0:
            k, width = spec.num_classes + spec.ends + 1, self.net.width  # one class more, for the start of a sequence
            if self.ngrams.orders and spec.columns:
                raise ValueError("n-grams are for sequences whose positions have the same classes; leave them out")
            ngrams = NgramEmbedding(k, width, **vars(self.ngrams)) if self.ngrams.orders else None
            if self.sums and (spec.num_places is None or self.auxiliary):
                raise ValueError("`model.sums` is for rows of places, without auxiliary losses; leave it out")
            given |= {"ngrams": ngrams, "length": spec.num_places, "sums": self.sums}
            net = ClassTransformer(classes, **given, **vars(self.net))
        elif self.ngrams.orders or self.auxiliary:
            raise ValueError("n-grams and auxiliary losses are only for Transformers without segments; leave them out")
        elif not 2 <= self.num_segments <= length:
            raise ValueError(f"`model.num_segments` must be 0, or between 2 and {length}, got {self.num_segments}")
        else:
            segment = -(-length // self.num_segments)  # the memory lets the last segment attend to all others
            net = SegmentTransformer(spec.num_classes, segment=segment, memory=length - segment, **vars(self.net))
        labels = spec.label_sizes
        return AutoregressiveModel(
            net, event_shape=spec.event_shape, auxiliary=self.auxiliary, ends=spec.ends, labels=labels
        )

    def for_more_classes(self, num_classes: int) -> "ArmSettings":
        """Return the settings with tables of n-grams as they were."""
        return replace(self, ngrams=replace(self.ngrams, classes=self.ngrams.classes or num_classes))

    def build_any(self, spec: "DataSpec") -> "AnyOrderModel":
        """Build a model of places in any order."""
        from unordinal.models.any_order import AnyOrderModel
        from unordinal.nets.orders import OrderTransformer
        from unordinal.recipes.parts import classes_of

        if spec.num_places is None:
            raise ValueError(f"`model.order` any is for rows of places; the positions of {spec.name} are not places")
        if self.num_segments or self.ngrams.orders or self.auxiliary:
            raise ValueError("segments, n-grams and auxiliary losses need `model.order` given; leave them out")
        sizes = {**vars(self.net), "conv": 0}  # neighbours in an order are no neighbours in a row
        net = OrderTransformer(classes_of(spec), spec.num_places, labels=spec.label_sizes, **sizes)
        num = self.num_orders or 16
        return AnyOrderModel(net, event_shape=spec.event_shape, num_orders=num, labels=spec.label_sizes)


def arm(size: Size, task: Task) -> Plan:  # noqa: ARG001 (one plan for all texts)
    if size == "paper":
        net = Transformer(512, num_blocks=64, num_heads=2, dropout=0.55)
        optim = OptimConfig(optimizer="adam", ema=0.0)
        return Plan(ArmSettings(net, auxiliary=True), TrainConfig(epochs=100, batch_size=16, lr=1e-4), optim)
    if size == "tiny":  # small batches and a high learning rate: in two minutes the number of steps counts
        net = Transformer(128, num_blocks=3, num_heads=4, conv=5)
        train = TrainConfig(minutes=2, batch_size=4, lr=3e-3)
        return Plan(ArmSettings(net), train, replace(QUICK_MUON, matrix_lr=0.02))
    net = Transformer(320, num_blocks=6, num_heads=5, conv=5)  # about as many weights as argmax-ar
    return Plan(ArmSettings(net), TrainConfig(minutes=60, batch_size=16, lr=2e-3), QUICK_MUON)


def arm_xl(size: Size, task: Task) -> Plan:
    if size == "paper":
        net = Transformer(1024, num_blocks=24, num_heads=8, dropout=0.15)
        optim = OptimConfig(optimizer="adam", warmup=4000, decay_to_zero=True, ema=0.0)
        return Plan(ArmSettings(net, num_segments=4), TrainConfig(epochs=100, batch_size=64, lr=2.5e-4), optim)
    plan = arm(size, task)
    assert isinstance(plan.model, ArmSettings)
    return replace(plan, model=replace(plan.model, num_segments=4))


ARM = Recipe("autoregressive Transformer, exact likelihood", ArmSettings, arm)
ARM_XL = Recipe("Transformer-XL, segments with a memory, exact likelihood", ArmSettings, arm_xl)
