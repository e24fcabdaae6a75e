"""Recipe of discrete flows (Tran et al. 2019): appendix C and tab:time_experiment; sizes and optimisers are ours."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from unordinal.config import ModelSettings, OptimConfig, Size, TrainConfig
from unordinal.names import check_known, check_positive
from unordinal.nets.settings import LSTM, Transformer
from unordinal.recipes.recipe import MINUTES, QUICK_ADAMW, Plan, Recipe, Task, toy_train
from unordinal.recipes.settings import SequenceNet
from unordinal.settings import Flag

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.models.discrete_flow import DiscreteFlow


@dataclass(frozen=True)
class DiscreteFlowSettings(ModelSettings):
    """A discrete flow: invertible transformations of the classes modulo K."""

    net: SequenceNet
    """The network of each layer."""
    flow: Annotated[Literal["ar", "bipartite"], Flag("--flow")] = "ar"
    """ar transforms each position given those before it; bipartite transforms every second position given the
    others."""
    scale: Annotated[bool, Flag("--scale")] = False
    """Besides shifting classes modulo K, also divide them modulo K by a predicted number that is coprime to K."""
    num_flows: int | None = None
    """Number of layers; default 1 (ar) or 2 (bipartite). ar layers alternate in direction."""
    temperature: float = 0.1
    """Temperature of the softmax whose gradient replaces that of argmax (straight-through)."""

    def build(self, spec: "DataSpec") -> "DiscreteFlow":
        from unordinal.models.discrete_flow import AutoregressiveModulo, BipartiteModulo, DiscreteFlow, ModuloLayer
        from unordinal.recipes import parts

        spec.require_sequences()
        check_known("flow", self.flow, ("ar", "bipartite"))
        num_flows = (1 if self.flow == "ar" else 2) if self.num_flows is None else self.num_flows
        check_positive("model.num_flows", num_flows)
        if num_flows < 2 and self.flow == "bipartite":
            raise ValueError("one bipartite layer transforms only half the positions; set `model.num_flows` above 1")
        k = spec.num_classes
        shared: Any = {"has_scale": self.scale, "temperature": self.temperature}

        def layer(is_odd: bool) -> ModuloLayer:
            if self.flow == "bipartite":
                return BipartiteModulo(partial(parts.sequence_net, self.net), k, moves_odd=not is_odd, **shared)
            net = parts.causal_net(self.net, k)
            return AutoregressiveModulo(net, self.net.width, k, is_reversed=is_odd, **shared)

        layers = [layer(number % 2 == 1) for number in range(num_flows)]
        return DiscreteFlow(layers, num_classes=k, event_shape=spec.event_shape)


def discrete_flow(size: Size, task: Task) -> Plan:
    if task == "toy":  # two autoregressive layers, the second in reverse order
        model = DiscreteFlowSettings(LSTM({"tiny": 64, "small": 128, "paper": 256}[size], num_layers=1), num_flows=2)
        return Plan(model, toy_train(size), QUICK_ADAMW)
    if size == "paper":
        model = DiscreteFlowSettings(Transformer(512, 8, num_heads=8))
        optim = OptimConfig(optimizer="adam", decay_per_epoch=0.995, ema=0.0)
        return Plan(model, TrainConfig(epochs=40, batch_size=64, lr=1e-3), optim)
    width, num_blocks, num_heads = (128, 3, 4) if size == "tiny" else (384, 6, 6)
    model = DiscreteFlowSettings(Transformer(width, num_blocks, num_heads, conv=5))
    return Plan(model, TrainConfig(minutes=MINUTES[size], batch_size=16, lr=1e-3), QUICK_ADAMW)


MODULO = "discrete flow: shifts modulo K, straight-through gradients"
VARIANTS = {"autoregressive": {"flow": "ar"}, "bipartite": {"flow": "bipartite"}}
DISCRETE_FLOW = Recipe(MODULO, DiscreteFlowSettings, discrete_flow, variants=VARIANTS)
