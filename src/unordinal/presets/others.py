"""Presets for the systems the paper compares with: tab:performance_text, appendices B.4, C and D.

Size paper has the depth and width of the systems' own papers: the 64 layers of Al-Rfou et al. (2019), the 24 of
Transformer-XL for text8, appendix B.4 for latent flows, the argmax flow's density for categorical normalizing flows;
sequences are those of this paper's comparison (256, 320), positions rotary and optimisers ours (docs/equations.md).
tiny and small are ours.
"""

from collections.abc import Callable
from dataclasses import fields, replace

from unordinal.config import DataConfig, OptimConfig, RunConfig, Size, TrainConfig
from unordinal.model_config import (
    ArmConfig,
    CategoricalNfConfig,
    DiscreteFlowConfig,
    LatentConfig,
    MixtureConfig,
    ModelConfig,
)
from unordinal.presets.flows import ENWIK8, QUICK_OPTIM, TEXT8, paper_size, sized
from unordinal.presets.text import QUICK_OPTIM as QUICK_MATRICES

Sized = tuple[ModelConfig, TrainConfig, OptimConfig]


def minutes(size: Size) -> float:
    return 2 if size == "tiny" else 60


def arm(size: Size) -> Sized:
    """Autoregressive Transformer over classes, exact likelihood."""
    if size == "paper":
        model = ArmConfig(width=512, num_blocks=64, num_heads=2, dropout=0.55, auxiliary=True)
        return model, TrainConfig(epochs=100, batch_size=16, lr=1e-4), OptimConfig(optimizer="adam", ema=0.0)
    if size == "tiny":  # small batches and large steps: what counts in minutes is the number of steps
        model = ArmConfig(width=128, num_blocks=3, num_heads=4, conv=5)
        return model, TrainConfig(minutes=2, batch_size=4, lr=3e-3), replace(QUICK_MATRICES, matrix_lr=0.02)
    model = ArmConfig(width=320, num_blocks=6, num_heads=5, conv=5)  # as many weights as argmax-ar has
    return model, TrainConfig(minutes=60, batch_size=16, lr=2e-3), QUICK_MATRICES


def arm_xl(size: Size) -> Sized:
    """Transformer-XL: segments with a memory, exact likelihood."""
    model, train, optim = arm(size)
    assert isinstance(model, ArmConfig)
    if size == "paper":
        model = ArmConfig(width=1024, num_blocks=24, num_heads=8, dropout=0.15, num_segments=4)
        optim = OptimConfig(optimizer="adam", warmup=4000, decay_to_zero=True, ema=0.0)
        return model, TrainConfig(epochs=100, batch_size=64, lr=2.5e-4), optim
    return replace(model, num_segments=4), train, optim


def discrete_flow(size: Size) -> Sized:
    """Discrete flow, autoregressive, location modulo K, straight-through gradients."""
    if size == "paper":
        model = DiscreteFlowConfig(width=512, num_layers=8, num_heads=8)
        optim = OptimConfig(optimizer="adam", decay_per_epoch=0.995, ema=0.0)
        return model, TrainConfig(epochs=40, batch_size=64, lr=1e-3), optim
    if size == "tiny":
        model = DiscreteFlowConfig(width=128, num_layers=3, num_heads=4, conv=5)
    else:
        model = DiscreteFlowConfig(width=384, num_layers=6, num_heads=6, conv=5)
    return model, TrainConfig(minutes=minutes(size), batch_size=16, lr=1e-3), QUICK_OPTIM


def latent(model: LatentConfig, size: Size) -> Sized:
    if size == "paper":
        return model, TrainConfig(epochs=30, batch_size=32, lr=1e-3), OptimConfig(optimizer="adam", clip=5.0, ema=0.0)
    tiny = size == "tiny"
    model = replace(
        model,
        latent_channels=8 if tiny else 24,
        num_flows=2 if tiny else 4,
        width=128 if tiny else 256,
        num_layers=1,
        channel_width=16,
        dropout=0.0,
    )
    return (
        model,
        TrainConfig(minutes=minutes(size), batch_size=4 if tiny else 16, lr=8e-3 if tiny else 2e-3),
        QUICK_OPTIM,
    )


def latent_af_af(size: Size) -> Sized:
    """Latent flow AF/AF, autoregressive in time and in channels."""
    return latent(LatentConfig(flow="af-af"), size)


def latent_iaf_scf(size: Size) -> Sized:
    """Latent flow IAF/SCF, inverse autoregressive in time, split coupling in channels."""
    model, train, optim = latent(LatentConfig(flow="iaf-scf", num_flows=3, dropout=0.0), size)
    if size == "tiny":  # so few steps that the KL must rise slowly, or the latents say nothing
        assert isinstance(model, LatentConfig)
        model = replace(model, latent_channels=4, width=96, kl_flat=0.1, kl_rise=0.6)
        train = replace(train, lr=6e-3)
    return model, train, optim


def categorical_nf(size: Size) -> Sized:
    """Categorical normalizing flow on the density model of argmax-ar."""
    flow, train, optim = paper_size(TEXT8, "ar")  # the same for both data sets
    if size != "paper":
        flow, train = sized(flow, size)
        optim = QUICK_OPTIM
    shared = {field.name: getattr(flow, field.name) for field in fields(MixtureConfig)}
    return CategoricalNfConfig(**shared), train, optim


SYSTEMS: dict[str, Callable[[Size], Sized]] = {
    "arm": arm,
    "arm-xl": arm_xl,
    "discrete-flow": discrete_flow,
    "latent-af-af": latent_af_af,
    "latent-iaf-scf": latent_iaf_scf,
    "categorical-nf": categorical_nf,
}


def other_preset(data: DataConfig, system: str) -> Callable[[Size], RunConfig]:
    """A function from a size to a configuration, described as `presets` shows it."""
    settings = SYSTEMS[system]

    def make(size: Size) -> RunConfig:
        model, train, optim = settings(size)
        return RunConfig(f"{data.name}/{system}", size, data, model, train, optim)

    make.__doc__ = f"{(settings.__doc__ or '').rstrip('.')} ({data.name})."
    return make


def toy_discrete_flow(size: Size) -> RunConfig:
    """Discrete flow on the quantised eight Gaussians of appendix C, one autoregressive layer and one backwards."""
    width = {"tiny": 64, "small": 128, "paper": 256}[size]
    model = DiscreteFlowConfig(net="lstm", width=width, num_layers=1, num_flows=2)
    train = TrainConfig(minutes=60 if size == "small" else 5 if size == "paper" else 2, batch_size=256, lr=4e-3)
    return RunConfig("toy/discrete-flow", size, DataConfig("eight-gaussians"), model, train, QUICK_OPTIM)


OTHER_PRESETS: dict[str, Callable[[Size], RunConfig]] = {
    **{f"{data.name}/{system}": other_preset(data, system) for data in (TEXT8, ENWIK8) for system in SYSTEMS},
    "toy/discrete-flow": toy_discrete_flow,
}
