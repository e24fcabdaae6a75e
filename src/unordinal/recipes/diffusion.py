"""Recipe of multinomial diffusion: tab:details_text_models, tab:architecture_text_models, and section 6.2 for maps.

Size paper follows these and appendix B. For maps the paper does not state the network and T: the U-Net and T = 4000 are
those of the authors' code, with sizes of our choice. The sizes tiny and small have other networks, optimisers and
distributions of t, chosen for two minutes and an hour on two cores; their bound is that of the same diffusion process.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from unordinal.config import ModelSettings, OptimConfig, Size, TrainConfig
from unordinal.nets.settings import DiffusionTransformer, UNet
from unordinal.recipes.recipe import MAP_OPTIM, MAP_TRAIN, MAPS, MINUTES, QUICK_MUON, Plan, Recipe, Task

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.models.diffusion import Diffusion


@dataclass(frozen=True)
class MultinomialSettings(ModelSettings):
    """Multinomial diffusion: uniform noise over the classes, in discrete steps."""

    handles: ClassVar = ("columns", "ends", "labels")

    net: DiffusionTransformer | UNet
    """The network that predicts x_0: a Transformer for sequences, a U-Net for maps."""
    num_steps: int = 1000
    """Number of diffusion steps T."""
    output: Literal["leave-one-out", "denoiser"] = "leave-one-out"
    """What the network predicts: x_0 given the noisy classes of all other positions (the paper's), or of all
    positions."""
    times: Literal["uniform", "importance", "stratified", "stratified-importance"] = "importance"
    """How t is drawn in training; importance draws it in proportion to running estimates of the loss, as in the
    paper."""

    def build(self, spec: "DataSpec") -> "Diffusion":
        from unordinal.diffusion.schedules import cosine_schedule
        from unordinal.diffusion.uniform import UniformNoise
        from unordinal.models.diffusion import Diffusion
        from unordinal.recipes import parts

        schedule = cosine_schedule(self.num_steps)
        noise = UniformNoise(spec.classes, schedule, output=self.output, ends=spec.ends)
        net = parts.denoiser(self.net, spec, noise.num_input_classes)
        given = parts.given_parts(spec)
        return Diffusion(net, noise=noise, event_shape=spec.event_shape, times=self.times, **given)


def multinomial(size: Size, task: Task) -> Plan:
    if task in MAPS:
        return multinomial_maps(size)
    num_steps, window = (4000, 80) if task == "enwik8" else (1000, 128)
    if size == "paper":
        model = MultinomialSettings(DiffusionTransformer(window=window), num_steps)
        optim = OptimConfig(optimizer="adam", decay_per_epoch=0.99, ema=0.0)
        return Plan(model, TrainConfig(epochs=300, batch_size=32, lr=1e-4), optim)
    width, num_blocks, local_heads = (128, 3, 0) if size == "tiny" else (384, 6, 2)
    net = DiffusionTransformer(width, num_blocks, global_heads=4, local_heads=local_heads, window=window, conv=5)
    model = MultinomialSettings(net, num_steps, times="stratified")
    return Plan(model, TrainConfig(minutes=MINUTES[size], batch_size=16, lr=2e-3), QUICK_MUON)


def multinomial_maps(size: Size) -> Plan:
    if size == "paper":
        train = replace(MAP_TRAIN, accumulate=4)  # four parts of 16 maps are fastest on a CPU
        return Plan(MultinomialSettings(UNet(), 4000), train, MAP_OPTIM)
    net = UNet(32, num_levels=3, deep_blocks=2) if size == "tiny" else UNet(48, num_levels=3, deep_blocks=3)
    model = MultinomialSettings(net, 4000, times="stratified")
    return Plan(model, TrainConfig(minutes=MINUTES[size], batch_size=8, lr=2e-3, accumulate=2), QUICK_MUON)


NAME = "multinomial diffusion: uniform noise, removed step by step"
MULTINOMIAL = Recipe(NAME, MultinomialSettings, multinomial, takes=("sequences", "maps"))
