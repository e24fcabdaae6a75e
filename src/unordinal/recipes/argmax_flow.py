"""Recipes of argmax flows and dequantisation: a density p(v) combined with a surjection from v to classes.

Size paper follows tab:details_text_models and tab:architecture_text_models for text, section 6.2 and appendix B.2 for
maps. These do not state the mixture components, the network over channels and the sizes of the DenseNets, which are our
choice, as are the smaller networks of tiny and small, chosen for two minutes and an hour on two cores.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from unordinal.config import ModelSettings, OptimConfig, Size, TrainConfig
from unordinal.names import check_known
from unordinal.nets.settings import LSTM, DenseNet
from unordinal.recipes.recipe import MAP_OPTIM, MAP_TRAIN, MINUTES, QUICK_ADAMW, Plan, Recipe, Task, toy_train
from unordinal.recipes.settings import CouplingLayers, Density, Inverse, Levels, MapInverse, Mixture
from unordinal.recipes.settings import SequenceInverse as SeqInverse
from unordinal.settings import Flag

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.model import CategoricalModel
    from unordinal.models.argmax_flow import ArgmaxFlow

SurjectionName = Literal[
    "binary", "softplus", "gumbel", "gumbel-threshold", "round-uniform", "round-variational", "ordinal"
]


@dataclass(frozen=True)
class ArgmaxFlowSettings(ModelSettings):
    """A flow on real numbers v and a surjection that turns v into classes."""

    LABEL_WIDTH: ClassVar = 32  # features of the labels that are given with an example

    def takes(self) -> tuple[str, ...]:
        """Return labels, if the density is autoregressive."""
        return ("labels",) if isinstance(self.density, Mixture) else ()

    density: Density
    """The density p(v)."""
    inverse: Inverse
    """The noise q(u | x), from which the surjection computes v."""
    surjection: Annotated[SurjectionName, Flag("--surjection")] = "binary"
    """How real numbers become classes: by the sign of each bit, by argmax with one of three inverses, or by
    rounding."""
    base: Annotated[int | None, Flag("--base")] = None
    """Write classes in this base M first, with M real numbers per digit (binary then becomes softplus)."""

    @property
    def used_surjection(self) -> SurjectionName:
        """The surjection to build: with a base every digit has M real numbers, so that binary becomes softplus."""
        return "softplus" if self.surjection == "binary" and self.base is not None else self.surjection

    def build(self, spec: "DataSpec") -> "ArgmaxFlow":
        from unordinal.flows.actnorm import ActNorm
        from unordinal.flows.bijection import Bijection
        from unordinal.models.argmax_flow import ArgmaxFlow
        from unordinal.nets.places import label_embedding
        from unordinal.recipes import parts

        check_known("surjection", self.surjection, parts.SURJECTIONS)
        parts.require_shape(spec, self.density)
        surjection = parts.build_surjection(self.used_surjection, self.base, spec.num_classes, self.inverse)
        if isinstance(self.density, Levels) and surjection.num_channels < 2:
            found = f"one real number per pixel for {spec.num_classes} classes, but a coupling flow needs two"
            raise ValueError(f"surjection {self.surjection} gives {found}; use softplus, gumbel or gumbel-threshold")
        # the bits of a sequence have zero mean and unit scale at the start, so they need no ActNorm
        is_ready = self.used_surjection == "binary" and not isinstance(self.density, Levels)
        front: list[Bijection] = [] if is_ready else [ActNorm(surjection.num_channels)]
        labels = label_embedding(spec.label_sizes, self.LABEL_WIDTH)
        shape, width = (*spec.event_shape, surjection.num_channels), self.LABEL_WIDTH if spec.labels else 0
        density = parts.build_density(self.density, shape, front, width)
        has_context = self.surjection != "round-uniform"  # uniform noise does not depend on x
        context = parts.context_net(self.inverse, spec.num_classes) if has_context else None
        given: Any = {"side_multiple": parts.side_multiple(self.density), "labels": labels}
        return ArgmaxFlow(surjection, density, event_shape=spec.event_shape, context=context, **given)

    def facts(self, model: "CategoricalModel") -> dict[str, Any]:
        from unordinal.models.argmax_flow import ArgmaxFlow

        assert isinstance(model, ArgmaxFlow)
        base = 2 if self.used_surjection == "binary" else self.base or model.num_classes
        whole, density = (sum(p.numel() for p in part.parameters()) for part in (model, model.density))
        facts = {"surjection": self.used_surjection, "base": base, "reals_per_symbol": model.surjection.num_channels}
        return {**facts, "density_parameters": density, "inverse_parameters": whole - density}


def autoregressive(size: Size, task: Task) -> Plan:
    if task == "toy":
        density = Mixture(LSTM({"tiny": 64, "small": 128, "paper": 256}[size], 1), num_mixtures=8)
        return Plan(ArgmaxFlowSettings(density, SeqInverse(64)), toy_train(size), QUICK_ADAMW)
    if size == "paper":
        density = Mixture(LSTM(2048, 2, dropout=0.25), num_mixtures=27, channel_width=128)
        train = TrainConfig(epochs=40, batch_size=64, lr=1e-3)
        optim = OptimConfig(optimizer="adam", decay_per_epoch=0.995, ema=0.0)
        return Plan(ArgmaxFlowSettings(density, SeqInverse()), train, optim)
    if size == "tiny":
        density, batch_size, lr = Mixture(LSTM(256, 1), num_mixtures=8, channel_width=32), 4, 1.2e-2
    else:
        density, batch_size, lr = Mixture(LSTM(768, 2), num_mixtures=8), 16, 2e-3
    train = TrainConfig(minutes=MINUTES[size], batch_size=batch_size, lr=lr)
    return Plan(ArgmaxFlowSettings(density, SeqInverse(64)), train, QUICK_ADAMW)


def coupling(size: Size, task: Task) -> Plan:
    if size == "paper":
        is_bytes = task == "enwik8"
        net = LSTM(768, 2, dropout=0.1) if is_bytes else LSTM(512, 2, dropout=0.05)
        train = TrainConfig(epochs=20 if is_bytes else 40, batch_size=32 if is_bytes else 16, lr=1e-3)
        optim = OptimConfig(optimizer="adamax", decay_per_epoch=0.995, ema=0.0)
        return Plan(ArgmaxFlowSettings(CouplingLayers(net), SeqInverse()), train, optim)
    width, num_flows, batch_size, lr = (64, 4, 4, 8e-3) if size == "tiny" else (256, 8, 16, 2e-3)
    density = CouplingLayers(LSTM(width, 1), num_flows, num_mixtures=4)
    train = TrainConfig(minutes=MINUTES[size], batch_size=batch_size, lr=lr)
    return Plan(ArgmaxFlowSettings(density, SeqInverse(64)), train, QUICK_ADAMW)


MAP_FLOWS: dict[Size, tuple[Levels, MapInverse]] = {
    "tiny": (Levels(DenseNet(64, 2), 3, num_flows=4), MapInverse(DenseNet(32, 1), DenseNet(32, 2), num_flows=4)),
    "small": (Levels(DenseNet(128, 3), 3, num_flows=8), MapInverse(DenseNet(64, 2), DenseNet(64, 3), num_flows=4)),
    "paper": (Levels(DenseNet(512, 8)), MapInverse(DenseNet(256, 4), DenseNet(64, 4))),
}


def map_training(size: Size) -> tuple[TrainConfig, OptimConfig]:
    """Return how flows and the VAE of maps are trained; MAP_FLOWS has their densities and noise."""
    if size == "paper":
        return MAP_TRAIN, MAP_OPTIM
    batch_size, lr = (4, 2e-3) if size == "tiny" else (8, 1e-3)
    train = TrainConfig(minutes=MINUTES[size], batch_size=batch_size, lr=lr, accumulate=1)
    return train, replace(QUICK_ADAMW, ema=0.98)


def maps(size: Size, task: Task) -> Plan:  # noqa: ARG001 (one plan for all maps)
    return Plan(ArgmaxFlowSettings(*MAP_FLOWS[size]), *map_training(size))


def flow(description: str, surjection: SurjectionName, plan: Callable[[Size, Task], Plan]) -> Recipe:
    """Return the recipe of a flow with a surjection."""

    def with_surjection(size: Size, task: Task) -> Plan:
        made = plan(size, task)
        assert isinstance(made.model, ArgmaxFlowSettings)
        return replace(made, model=replace(made.model, surjection=surjection))

    if plan is maps:
        return Recipe(description, ArgmaxFlowSettings, with_surjection, takes=("maps",))
    return Recipe(description, ArgmaxFlowSettings, with_surjection)


UNIFORM, VARIATIONAL = "uniform dequantisation of the one-hot", "variational dequantisation of the one-hot"
FLOWS: dict[str, Recipe] = {
    "argmax-ar": flow("argmax flow on bits, autoregressive", "binary", autoregressive),
    "argmax-coupling": flow("argmax flow on bits, couplings", "binary", coupling),
    "uniform-dequant-ar": flow(f"{UNIFORM}, autoregressive", "round-uniform", autoregressive),
    "uniform-dequant-coupling": flow(f"{UNIFORM}, couplings", "round-uniform", coupling),
    "variational-dequant-ar": flow(f"{VARIATIONAL}, autoregressive", "round-variational", autoregressive),
    "variational-dequant-coupling": flow(f"{VARIATIONAL}, couplings", "round-variational", coupling),
    "argmax-softplus": flow("argmax flow, softplus thresholding", "softplus", maps),
    "argmax-gumbel": flow("argmax flow, Gumbel inverse", "gumbel", maps),
    "argmax-gumbel-threshold": flow("argmax flow, Gumbel thresholding", "gumbel-threshold", maps),
    "uniform-dequant": flow(UNIFORM, "round-uniform", maps),
    "variational-dequant": flow(VARIATIONAL, "round-variational", maps),
}
