"""Presets for flows over text: tab:performance_generative_flow_text, tab:details_text_models and
tab:architecture_text_models.

Size paper is what those tables say; they are silent on the number of mixture components and on the network inside a
position, which are ours. tiny and small are ours too: smaller networks, chosen for minutes and for an hour on two
cores.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from unordinal.config import DataConfig, OptimConfig, RunConfig, Size, TrainConfig
from unordinal.model_config import ArgmaxFlowConfig, SurjectionName

FlowKind = Literal["ar", "coupling"]
TEXT8 = DataConfig("text8", alphabet="text8", length=256)
ENWIK8 = DataConfig("enwik8", alphabet="bytes", length=320)

QUICK_OPTIM = OptimConfig(
    optimizer="adamw", beta2=0.99, weight_decay=0.01, warmup=50, decay_to_zero=True, clip=1.0, ema=0.99
)


def paper_size(data: DataConfig, kind: FlowKind) -> tuple[ArgmaxFlowConfig, TrainConfig, OptimConfig]:
    """Network, budget and optimiser of the paper's tables."""
    if kind == "ar":
        model = ArgmaxFlowConfig(flow="ar", width=2048, num_layers=2, num_mixtures=27, channel_width=128, dropout=0.25)
        train = TrainConfig(epochs=40, batch_size=64, lr=1e-3)
        return model, train, OptimConfig(optimizer="adam", decay_per_epoch=0.995, ema=0.0)
    is_text8 = data.name == "text8"
    model = ArgmaxFlowConfig(
        flow="coupling",
        width=512 if is_text8 else 768,
        num_layers=2,
        num_flows=8,
        num_mixtures=8,
        dropout=0.05 if is_text8 else 0.1,
    )
    train = TrainConfig(epochs=40 if is_text8 else 20, batch_size=16 if is_text8 else 32, lr=1e-3)
    return model, train, OptimConfig(optimizer="adamax", decay_per_epoch=0.995, ema=0.0)


def sized(model: ArgmaxFlowConfig, size: Size) -> tuple[ArgmaxFlowConfig, TrainConfig]:
    """The paper's model cut down, and its budget."""
    tiny = size == "tiny"
    minutes = 2 if tiny else 60
    if model.flow == "ar":
        width, layers = (256, 1) if tiny else (768, 2)
        model = replace(model, width=width, num_layers=layers, num_heads=4, num_mixtures=8, dropout=0.0)
        model = replace(model, channel_width=32 if tiny else 64, context_width=64)
        return model, TrainConfig(minutes=minutes, batch_size=4 if tiny else 16, lr=1.2e-2 if tiny else 2e-3)
    width, flows = (64, 4) if tiny else (256, 8)
    model = replace(model, width=width, num_layers=1, num_flows=flows, num_heads=4, num_mixtures=4, dropout=0.0)
    model = replace(model, context_width=64)
    return model, TrainConfig(minutes=minutes, batch_size=4 if tiny else 16, lr=8e-3 if tiny else 2e-3)


def flow_preset(
    name: str, description: str, data: DataConfig, kind: FlowKind, surjection: SurjectionName
) -> Callable[[Size], RunConfig]:
    """A function from a size to a configuration, described as `presets` shows it."""

    def make(size: Size) -> RunConfig:
        model, train, optim = paper_size(data, kind)
        model = replace(model, surjection=surjection)
        if size != "paper":
            model, train = sized(model, size)
            optim = QUICK_OPTIM
        return RunConfig(name, size, data, model, train, optim)

    make.__doc__ = description
    return make


SURJECTION_OF: dict[str, tuple[SurjectionName, str]] = {
    "argmax": ("binary", "Argmax flow on bits"),
    "uniform-dequant": ("round-uniform", "Uniform dequantisation of the one-hot"),
    "variational-dequant": ("round-variational", "Variational dequantisation of the one-hot"),
}
FLOW_OF: dict[FlowKind, str] = {"ar": "autoregressive flow", "coupling": "coupling flow"}

FLOW_PRESETS: dict[str, Callable[[Size], RunConfig]] = {
    f"{data.name}/{way}-{kind}": flow_preset(
        f"{data.name}/{way}-{kind}", f"{what}, {flow} ({data.name}).", data, kind, surjection
    )
    for data in (TEXT8, ENWIK8)
    for way, (surjection, what) in SURJECTION_OF.items()
    for kind, flow in FLOW_OF.items()
}


def toy_eight_gaussians(size: Size) -> RunConfig:
    """Argmax flow on the quantised eight Gaussians of appendix C, one autoregressive layer."""
    width = {"tiny": 64, "small": 128, "paper": 256}[size]
    model = ArgmaxFlowConfig(
        flow="ar", width=width, num_layers=1, num_mixtures=8, channel_width=64, context_width=64, num_heads=4
    )
    train = TrainConfig(minutes=60 if size == "small" else 5 if size == "paper" else 2, batch_size=256, lr=4e-3)
    return RunConfig("toy/eight-gaussians", size, DataConfig("eight-gaussians"), model, train, QUICK_OPTIM)
