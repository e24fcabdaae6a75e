"""Presets for maps: tab:results_cityscapes, section 6.2 and appendix B.2.

Size paper is what those say: levels, subflows, T, optimiser, batch and epochs. They are silent on the sizes of the
DenseNets and the U-Net, on the optimiser of the diffusion, and on the VAE's latent channels; those are ours, as are
tiny and small: smaller networks, chosen for minutes and for an hour on two cores. Any data of maps will do with
--data, streets above all, which need no download.
"""

from collections.abc import Callable
from dataclasses import replace

from unordinal.config import DataConfig, OptimConfig, RunConfig, Size, TrainConfig
from unordinal.model_config import MapDensityConfig, MapFlowConfig, MapMultinomialConfig, MapVaeConfig, SurjectionName

CITYSCAPES = DataConfig("cityscapes")
BATCHES_PER_EPOCH = 2500 / 64
PAPER_FLOW_TRAIN = TrainConfig(epochs=2000, batch_size=64, lr=1e-3)
PAPER_FLOW_OPTIM = OptimConfig(optimizer="adamax", warmup=round(10 * BATCHES_PER_EPOCH), decay_per_epoch=0.995, ema=0.0)
QUICK_FLOW_OPTIM = OptimConfig(
    optimizer="adamw", beta2=0.99, weight_decay=0.01, warmup=50, decay_to_zero=True, clip=1.0, ema=0.98
)
QUICK_DIFFUSION_OPTIM = OptimConfig(
    optimizer="muon", matrix_lr=0.012, beta2=0.99, weight_decay=0.01, warmup=50, decay_to_zero=True, clip=1.0, ema=0.99
)

# What is smaller than in the paper, for argmax flows and the VAE alike.
SIZED: dict[Size, MapDensityConfig] = {
    "tiny": MapDensityConfig(
        num_levels=3, num_flows=4, width=64, depth=2,
        noise_flows=4, noise_width=32, noise_depth=1, context_width=32, context_depth=2,
    ),
    "small": MapDensityConfig(
        num_levels=3, num_flows=8, width=128, depth=3,
        noise_flows=4, noise_width=64, noise_depth=2, context_width=64, context_depth=3,
    ),
    "paper": MapDensityConfig(),
}  # fmt: skip


def flow_train(size: Size) -> tuple[TrainConfig, OptimConfig]:
    if size == "paper":
        return PAPER_FLOW_TRAIN, PAPER_FLOW_OPTIM
    minutes, lr = (2, 2e-3) if size == "tiny" else (60, 1e-3)
    return TrainConfig(minutes=minutes, batch_size=4 if size == "tiny" else 8, lr=lr, accumulate=1), QUICK_FLOW_OPTIM


def flow_preset(name: str, description: str, surjection: SurjectionName) -> Callable[[Size], RunConfig]:
    """A function from a size to a configuration, described as `presets` shows it."""

    def make(size: Size) -> RunConfig:
        model = MapFlowConfig(surjection=surjection, **vars(SIZED[size]))
        return RunConfig(name, size, CITYSCAPES, model, *flow_train(size))

    make.__doc__ = description
    return make


def cityscapes_vae(size: Size) -> RunConfig:
    """VAE with flow prior, flow posterior and categorical decoder (appendix B.2)."""
    decoder = {"tiny": (64, 2), "small": (128, 3), "paper": (512, 8)}[size]
    model = MapVaeConfig(decoder_width=decoder[0], decoder_depth=decoder[1], **vars(SIZED[size]))
    return RunConfig("cityscapes/vae", size, CITYSCAPES, model, *flow_train(size))


def cityscapes_multinomial(size: Size) -> RunConfig:
    """Multinomial diffusion with a U-Net, 4000 steps."""
    model = MapMultinomialConfig()
    if size == "paper":
        train = TrainConfig(epochs=2000, batch_size=16, lr=1e-4, accumulate=1)
        return RunConfig("cityscapes/multinomial", size, CITYSCAPES, model, train, OptimConfig(optimizer="adam"))
    tiny = size == "tiny"
    model = replace(model, width=32 if tiny else 48, num_levels=3, deep_blocks=2 if tiny else 3, times="stratified")
    train = TrainConfig(minutes=2 if tiny else 60, batch_size=8, lr=2e-3, accumulate=2)
    return RunConfig("cityscapes/multinomial", size, CITYSCAPES, model, train, QUICK_DIFFUSION_OPTIM)


FLOWS: dict[str, tuple[SurjectionName, str]] = {
    "argmax-softplus": ("softplus", "Argmax flow, softplus thresholding"),
    "argmax-gumbel": ("gumbel", "Argmax flow, Gumbel inverse"),
    "argmax-gumbel-threshold": ("gumbel-threshold", "Argmax flow, Gumbel thresholding"),
    "uniform-dequant": ("round-uniform", "Uniform dequantisation of the one-hot"),
    "variational-dequant": ("round-variational", "Variational dequantisation of the one-hot"),
}
MAP_PRESETS: dict[str, Callable[[Size], RunConfig]] = {
    **{
        f"cityscapes/{way}": flow_preset(f"cityscapes/{way}", f"{what}, coupling flow of 4 levels.", surjection)
        for way, (surjection, what) in FLOWS.items()
    },
    "cityscapes/multinomial": cityscapes_multinomial,
    "cityscapes/vae": cityscapes_vae,
}
