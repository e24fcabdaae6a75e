"""Latent variables with flows: latent flows and categorical normalizing flows for sequences, the VAE for maps.

Size paper is appendix B.4 for latent flows (Ziegler and Rush 2019), the density of argmax-ar for categorical
normalizing flows (Lippe and Gavves 2020), appendix B.2 for the VAE, whose latent channels are ours. tiny and small are
ours.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from unordinal.config import ModelSettings, OptimConfig, Size, TrainConfig
from unordinal.names import check_known
from unordinal.recipes.argmax_flow import MAP_FLOWS, ArgmaxFlowSettings, autoregressive, map_training
from unordinal.recipes.recipe import QUICK_ADAMW, Plan, Recipe, Task, minutes
from unordinal.recipes.settings import LSTM, DenseNet, Levels, MapInverse, Mixture

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.models.latent_flow import LatentFlow


@dataclass(frozen=True)
class LatentFlowSettings(ModelSettings):
    """A latent flow for sequences: flow prior, diagonal normal posterior, biLSTM emission."""

    net: LSTM  # the LSTMs of prior, posterior and emission; dropout acts on the input of the prior's
    # Autoregressive in time and channels, or inverse autoregressive in time with split coupling in channels
    flow: Literal["af-af", "iaf-scf"] = "af-af"
    latent_channels: int = 50  # latent numbers per position
    num_flows: int = 5  # layers of the prior inside a position, one after another
    # Hidden units of the network inside a position, per channel (af-af) or per pair of channels (iaf-scf)
    channel_width: int = 16
    kl_flat: float = 2 / 30  # part of the budget during which the KL weighs 1e-5; appendix B.4 has 2 of 30 epochs.
    kl_rise: float = 4 / 30  # part of the budget over which that weight then rises linearly to 1

    def build(self, spec: "DataSpec") -> "LatentFlow":
        from torch import nn

        from unordinal.flows.density import ConditionalNormal
        from unordinal.models.latent_flow import KlWarmup, LatentFlow, time_prior
        from unordinal.nets.recurrent import AroundLSTM, BiLSTM
        from unordinal.recipes import parts

        spec.require_sequences()
        check_known("flow", self.flow, ("af-af", "iaf-scf"))
        if self.latent_channels < 2 or self.num_flows < 1:
            raise ValueError(
                f"a latent flow needs latent_channels >= 2 and num_flows >= 1, got {self.latent_channels} and "
                f"{self.num_flows}"
            )
        channels, num_classes, width = self.latent_channels, spec.num_classes, self.net.width
        lstm = {"width": width, "num_layers": self.net.num_layers}
        return LatentFlow(
            prior=time_prior(
                parts.causal_net(self.net, channels),
                width=width,
                event_shape=(*spec.event_shape, channels),
                num_flows=self.num_flows,
                channel_width=self.channel_width,
                is_inverse=self.flow == "iaf-scf",
            ),
            context=nn.Sequential(nn.Embedding(num_classes, width), BiLSTM(width, 2 * channels, **lstm)),
            posterior=ConditionalNormal(nn.Identity()),
            decoder=AroundLSTM(channels, num_classes, **lstm),
            num_classes=num_classes,
            num_channels=channels,
            event_shape=spec.event_shape,
            warmup=KlWarmup(self.kl_flat, self.kl_rise),
        )


@dataclass(frozen=True)
class CategoricalNfSettings(ModelSettings):
    """A categorical normalizing flow, on the density model of the autoregressive argmax flow."""

    density: Mixture  # p(v)
    # Latent numbers per position; default as many as classes have bits, what argmax-ar has
    latent_channels: int | None = None

    def build(self, spec: "DataSpec") -> "LatentFlow":
        from unordinal.flows.actnorm import ActNorm
        from unordinal.models.categorical_nf import encoding
        from unordinal.models.latent_flow import LatentFlow
        from unordinal.recipes import parts

        spec.require_sequences()
        channels = (spec.num_classes - 1).bit_length() if self.latent_channels is None else self.latent_channels
        parts.check_positive(latent_channels=channels)
        context, posterior, decoder = encoding(spec.num_classes, channels)
        return LatentFlow(
            prior=parts.built_density(self.density, (*spec.event_shape, channels), [ActNorm(channels)]),
            context=context,
            posterior=posterior,
            decoder=decoder,
            num_classes=spec.num_classes,
            num_channels=channels,
            event_shape=spec.event_shape,
        )


@dataclass(frozen=True)
class VaeSettings(ModelSettings):
    """A VAE over maps: flow prior, flow posterior, categorical decoder, of the same parts as the argmax flow."""

    density: Levels  # p(z)
    inverse: MapInverse  # q(z | x)
    decoder: DenseNet  # p(x | z)
    latent_channels: int = 8  # latent numbers per pixel

    def build(self, spec: "DataSpec") -> "LatentFlow":
        from unordinal.flows.actnorm import ActNorm
        from unordinal.models.latent_flow import LatentFlow
        from unordinal.recipes import parts

        parts.require_shape(spec, self.density)
        channels = self.latent_channels
        if channels < 2:
            raise ValueError(f"latent_channels must be at least 2, for couplings to have two sides; got {channels}")
        return LatentFlow(
            prior=parts.built_density(self.density, (*spec.event_shape, channels), [ActNorm(channels)]),
            posterior=parts.noise(self.inverse, channels),
            context=parts.context_net(self.inverse, spec.num_classes),
            decoder=parts.map_net(self.decoder, channels, spec.num_classes),
            num_classes=spec.num_classes,
            num_channels=channels,
            event_shape=spec.event_shape,
            side_multiple=parts.side_multiple(self.density),
        )


def af_af(size: Size, task: Task) -> Plan:  # noqa: ARG001 (one plan for all texts)
    return latent(LatentFlowSettings(LSTM(500, 2, dropout=0.2)), size)


def iaf_scf(size: Size, task: Task) -> Plan:  # noqa: ARG001
    plan = latent(LatentFlowSettings(LSTM(500, 2), "iaf-scf", num_flows=3), size)
    if size != "tiny":
        return plan
    assert isinstance(plan.model, LatentFlowSettings)
    # so few steps that the KL must rise slowly, or the latents say nothing
    model = replace(plan.model, net=LSTM(96, 1), latent_channels=4, kl_flat=0.1, kl_rise=0.6)
    return replace(plan, model=model, train=replace(plan.train, lr=6e-3))


def latent(model: LatentFlowSettings, size: Size) -> Plan:
    """The paper's model and training, or the model cut down."""
    if size == "paper":
        optim = OptimConfig(optimizer="adam", clip=5.0, ema=0.0)
        return Plan(model, TrainConfig(epochs=30, batch_size=32, lr=1e-3), optim)
    if size == "tiny":
        model = replace(model, net=LSTM(128, 1), latent_channels=8, num_flows=2)
        return Plan(model, TrainConfig(minutes=2, batch_size=4, lr=8e-3), QUICK_ADAMW)
    model = replace(model, net=LSTM(256, 1), latent_channels=24, num_flows=4)
    return Plan(model, TrainConfig(minutes=minutes(size), batch_size=16, lr=2e-3), QUICK_ADAMW)


def categorical_nf(size: Size, task: Task) -> Plan:
    plan = autoregressive(size, task)
    assert isinstance(plan.model, ArgmaxFlowSettings)
    assert isinstance(plan.model.density, Mixture)
    return replace(plan, model=CategoricalNfSettings(plan.model.density))


def vae(size: Size, task: Task) -> Plan:  # noqa: ARG001 (one plan for all maps)
    decoder = {"tiny": DenseNet(64, 2), "small": DenseNet(128, 3), "paper": DenseNet(512, 8)}[size]
    return Plan(VaeSettings(*MAP_FLOWS[size], decoder), *map_training(size))


TEXTS = ("text8", "enwik8")
AF_AF = Recipe("latent flow, autoregressive in time and channels", LatentFlowSettings, af_af, TEXTS)
IAF_SCF = Recipe("latent flow, inverse autoregressive in time, split couplings", LatentFlowSettings, iaf_scf, TEXTS)
CATEGORICAL_NF = Recipe(
    "categorical normalizing flow on the density of argmax-ar", CategoricalNfSettings, categorical_nf, TEXTS
)
VAE = Recipe(
    "VAE with flow prior, flow posterior and categorical decoder", VaeSettings, vae, ("cityscapes",), takes=("maps",)
)
