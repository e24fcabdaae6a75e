"""Recipes of diffusions in continuous time, which came after the paper: absorbing (masked) and uniform noise.

Size paper has the network, the optimiser and the batches of multinomial diffusion at that size.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from unordinal.config import ModelSettings, Size
from unordinal.names import check_known
from unordinal.nets.settings import DiffusionTransformer, Transformer, UNet
from unordinal.recipes.diffusion import MultinomialSettings, multinomial
from unordinal.recipes.recipe import MAPS, Plan, Recipe, Task

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.models.diffusion import Diffusion


@dataclass(frozen=True)
class UniformSettings(ModelSettings):
    """Uniform noise in continuous time; the network reads the noise."""

    handles: ClassVar = ("columns", "ends", "labels")

    net: DiffusionTransformer | UNet
    """The network that predicts x_0: a Transformer for sequences, a U-Net for maps."""
    schedule: Literal["linear", "cosine"] = "cosine"
    """The noise over time. The bound does not depend on it, but with linear the variance of its draws is infinite."""
    times: Literal["uniform", "stratified"] = "stratified"
    """How times are drawn in training."""

    def build(self, spec: "DataSpec") -> "Diffusion":
        from unordinal.diffusion.continuous import ContinuousUniformNoise
        from unordinal.diffusion.schedules import CURVES, Schedule
        from unordinal.models.diffusion import Diffusion
        from unordinal.recipes import parts

        check_known("schedule", self.schedule, CURVES)
        noise = ContinuousUniformNoise(spec.classes, Schedule(CURVES[self.schedule]), ends=spec.ends)
        net = parts.denoiser(self.net, spec, noise.num_input_classes)
        given = parts.given_parts(spec)
        return Diffusion(net, noise=noise, event_shape=spec.event_shape, times=self.times, **given)


@dataclass(frozen=True)
class AbsorbingSettings(ModelSettings):
    """Absorbing noise: classes are masked, and a network predicts them from those that are shown."""

    handles: ClassVar = ("columns", "ends", "labels")

    net: Transformer | DiffusionTransformer | UNet
    """The network that predicts x_0: a Transformer for sequences, with or without the time, or a U-Net for maps."""
    draws: Literal["count", "time"] = "count"
    """What training draws: the number of masks (for networks that do not read the time), or a time."""
    complementary: bool = True
    """Train on two complementary masks of each example, which needs `draws` count."""
    schedule: Literal["linear", "cosine"] = "cosine"
    """The share of masks as a function of time, with `draws` time."""
    num_steps: int | None = None
    """Number of diffusion steps T, with `draws` time; none for continuous time."""
    times: Literal["uniform", "stratified"] = "stratified"
    """How times, or numbers of masks, are drawn in training."""

    def build(self, spec: "DataSpec") -> "Diffusion":
        from unordinal.diffusion.absorbing import AbsorbingNoise, MaskCountNoise
        from unordinal.diffusion.schedules import CURVES, Schedule
        from unordinal.models.diffusion import Diffusion
        from unordinal.recipes import parts

        check_known("schedule", self.schedule, CURVES)
        reads_time = self.net.reads_time if isinstance(self.net, UNet) else isinstance(self.net, DiffusionTransformer)
        if self.draws == "count" and (reads_time or self.num_steps is not None):
            raise ValueError(
                "`model.draws` count is for networks that do not read the time, in continuous time; use time"
            )
        if self.draws == "time" and self.complementary:
            raise ValueError("`model.complementary` masks need `model.draws` count; turn them off")
        schedule, ends = Schedule(CURVES[self.schedule], self.num_steps), spec.ends
        count = self.draws == "count"
        noise = MaskCountNoise(spec.classes, ends=ends) if count else AbsorbingNoise(spec.classes, schedule, ends=ends)
        net = parts.denoiser(self.net, spec, noise.num_input_classes)
        given = parts.given_parts(spec) | {"complementary": self.complementary}
        return Diffusion(net, noise=noise, event_shape=spec.event_shape, times=self.times, **given)


def quick(size: Size, task: Task) -> Plan:
    """Return the plan of multinomial diffusion; at size tiny on sequences with higher learning rates, which pay."""
    plan = multinomial(size, task)
    if size != "tiny" or task in MAPS:
        return plan
    return replace(plan, train=replace(plan.train, lr=4e-3), optim=replace(plan.optim, matrix_lr=0.03))


def uniform(size: Size, task: Task) -> Plan:
    plan = quick(size, task)
    assert isinstance(plan.model, MultinomialSettings)
    return replace(plan, model=UniformSettings(plan.model.net))


def absorbing(size: Size, task: Task) -> Plan:
    plan = quick(size, task)
    assert isinstance(plan.model, MultinomialSettings)
    net = plan.model.net
    if task in MAPS:
        assert isinstance(net, UNet)
        return replace(plan, model=AbsorbingSettings(replace(net, reads_time=False)))
    assert isinstance(net, DiffusionTransformer)
    heads = net.global_heads + net.local_heads
    plain = Transformer(net.width, net.num_blocks, heads, conv=net.conv)
    train = replace(plan.train, batch_size=max(1, plan.train.batch_size // 2))  # every example counts twice
    return replace(plan, model=AbsorbingSettings(plain), train=train)


ABSORBING = Recipe(
    "absorbing diffusion: classes masked and shown again", AbsorbingSettings, absorbing, takes=("sequences", "maps")
)
UNIFORM = Recipe("uniform diffusion in continuous time", UniformSettings, uniform, takes=("sequences", "maps"))
