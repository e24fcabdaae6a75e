"""Presets for text: the paper's tab:details_text_models and tab:architecture_text_models.

Size paper is what those tables say, epochs from appendix B.1 besides. tiny and small are ours: another network,
optimiser and way of drawing times, chosen for two minutes and for an hour on two cores; the bound they report is that
of the same discrete-time model.
"""

from dataclasses import replace

from unordinal.config import DataConfig, OptimConfig, RunConfig, Size, TrainConfig
from unordinal.model_config import MultinomialConfig

PAPER_TRAIN = TrainConfig(epochs=300, batch_size=32, lr=1e-4)
PAPER_OPTIM = OptimConfig(optimizer="adam", decay_per_epoch=0.99)
QUICK_OPTIM = OptimConfig(
    optimizer="muon", matrix_lr=0.012, beta2=0.99, weight_decay=0.01, warmup=50, decay_to_zero=True, clip=1.0, ema=0.99
)


def quick_train(size: Size) -> TrainConfig:
    if size == "tiny":
        return TrainConfig(minutes=2, batch_size=16, lr=2e-3)
    return TrainConfig(minutes=60, batch_size=16, lr=2e-3)


def sized(model: MultinomialConfig, size: Size) -> MultinomialConfig:
    """The paper's model cut down."""
    if size == "tiny":
        return replace(model, width=128, num_blocks=3, global_heads=4, local_heads=0, conv=5, times="stratified")
    return replace(model, width=384, num_blocks=6, global_heads=4, local_heads=2, conv=5, times="stratified")


def text8_multinomial(size: Size) -> RunConfig:
    """Multinomial Text Diffusion (text8): 12 layers, 8 global and 8 local heads, 1000 steps."""
    model = MultinomialConfig(num_steps=1000, width=512, num_blocks=12, global_heads=8, local_heads=8, window=128)
    return configured("text8/multinomial", size, DataConfig("text8", alphabet="text8", length=256), model)


def enwik8_multinomial(size: Size) -> RunConfig:
    """Multinomial Text Diffusion (enwik8): the same with 4000 steps on bytes, a window of 80."""
    model = MultinomialConfig(num_steps=4000, width=512, num_blocks=12, global_heads=8, local_heads=8, window=80)
    return configured("enwik8/multinomial", size, DataConfig("enwik8", alphabet="bytes", length=320), model)


def configured(name: str, size: Size, data: DataConfig, model: MultinomialConfig) -> RunConfig:
    if size == "paper":
        return RunConfig(name, size, data, model, PAPER_TRAIN, PAPER_OPTIM)
    return RunConfig(name, size, data, sized(model, size), quick_train(size), QUICK_OPTIM)
