"""Recipes of latent variable models: latent flows and categorical normalizing flows for sequences, a VAE for maps.

Size paper follows appendix B.4 for latent flows (Ziegler and Rush 2019), uses the density of argmax-ar for categorical
normalizing flows (Lippe and Gavves 2020), and appendix B.2 for the VAE, whose channels are ours, like tiny and small.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from unordinal.config import ModelSettings, OptimConfig, Size, TrainConfig
from unordinal.names import check_known, check_positive
from unordinal.nets.settings import LSTM, DenseNet
from unordinal.recipes.argmax_flow import MAP_FLOWS, ArgmaxFlowSettings, autoregressive, map_training
from unordinal.recipes.recipe import MINUTES, QUICK_ADAMW, Plan, Recipe, Task
from unordinal.recipes.settings import Levels, MapInverse, Mixture

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.models.latent_flow import LatentFlow


@dataclass(frozen=True)
class LatentFlowSettings(ModelSettings):
    """A latent flow for sequences: flow prior, diagonal normal posterior, bidirectional LSTM as decoder."""

    net: LSTM
    """The LSTMs of prior, posterior and decoder; dropout is applied to the prior only."""
    flow: Literal["af-af", "iaf-scf"] = "af-af"
    """The prior: autoregressive, or inverse autoregressive with couplings."""
    latent_channels: int = 50
    """Number of latent channels per position."""
    num_flows: int = 5
    """Number of layers of the prior that transform the channels of a position."""
    channel_width: int = 16
    """Hidden units of the network of such a layer, per channel or pair of channels."""
    kl_flat: float = 2 / 30
    """Fraction of the budget with a KL weight of 1e-5 (2 of 30 epochs in appendix B.4)."""
    kl_rise: float = 4 / 30
    """Fraction of the budget over which the KL weight then rises linearly to 1."""

    def build(self, spec: "DataSpec") -> "LatentFlow":
        from torch import nn

        from unordinal.flows.density import ConditionalNormal
        from unordinal.models.latent_flow import KlWarmup, LatentFlow, time_prior
        from unordinal.nets.recurrent import AroundLSTM, BiLSTM
        from unordinal.recipes import parts

        spec.require_sequences()
        check_known("flow", self.flow, ("af-af", "iaf-scf"))
        check_positive("model.num_flows", self.num_flows)
        if (channels := self.latent_channels) < 2:
            raise ValueError(f"`model.latent_channels` must be at least 2, got {channels}")
        num_classes, width, is_inverse = spec.num_classes, self.net.width, self.flow == "iaf-scf"
        lstm = {"width": width, "num_layers": self.net.num_layers}
        sizes = {"width": width, "num_flows": self.num_flows, "channel_width": self.channel_width}
        shape, net = (*spec.event_shape, channels), parts.causal_net(self.net, channels)
        return LatentFlow(
            prior=time_prior(net, event_shape=shape, is_inverse=is_inverse, **sizes),
            context=nn.Sequential(nn.Embedding(num_classes, width), BiLSTM(width, 2 * channels, **lstm)),
            posterior=ConditionalNormal(nn.Identity()),
            decoder=AroundLSTM(channels, num_classes, **lstm),
            num_classes=num_classes,
            event_shape=spec.event_shape,
            warmup=KlWarmup(self.kl_flat, self.kl_rise),
        )


@dataclass(frozen=True)
class CategoricalNfSettings(ModelSettings):
    """A categorical normalizing flow with the density of the autoregressive argmax flow."""

    density: Mixture
    """The density p(v)."""
    latent_channels: int | None = None
    """Number of latent channels per position; default the bits of a class."""

    def build(self, spec: "DataSpec") -> "LatentFlow":
        from unordinal.flows.actnorm import ActNorm
        from unordinal.models.categorical_nf import encoding
        from unordinal.models.latent_flow import LatentFlow
        from unordinal.recipes import parts

        spec.require_sequences()
        channels = (spec.num_classes - 1).bit_length() if self.latent_channels is None else self.latent_channels
        check_positive("model.latent_channels", channels)
        return LatentFlow(
            **encoding(spec.num_classes, channels),
            prior=parts.build_density(self.density, (*spec.event_shape, channels), [ActNorm(channels)]),
            num_classes=spec.num_classes,
            event_shape=spec.event_shape,
        )


@dataclass(frozen=True)
class VaeSettings(ModelSettings):
    """A VAE of maps with a flow as prior, a flow as posterior and a categorical decoder."""

    density: Levels
    """The prior p(z)."""
    inverse: MapInverse
    """The posterior q(z | x)."""
    decoder: DenseNet
    """The network of p(x | z)."""
    latent_channels: int = 8
    """Number of latent channels per pixel."""

    def build(self, spec: "DataSpec") -> "LatentFlow":
        from unordinal.flows.actnorm import ActNorm
        from unordinal.models.latent_flow import LatentFlow
        from unordinal.recipes import parts

        parts.require_shape(spec, self.density)
        if (channels := self.latent_channels) < 2:
            raise ValueError(f"`model.latent_channels` must be at least 2 for couplings, got {channels}")
        return LatentFlow(
            prior=parts.build_density(self.density, (*spec.event_shape, channels), [ActNorm(channels)]),
            posterior=parts.noise(self.inverse, channels),
            context=parts.context_net(self.inverse, spec.num_classes),
            decoder=parts.map_net(self.decoder, channels, spec.num_classes),
            num_classes=spec.num_classes,
            event_shape=spec.event_shape,
            side_multiple=parts.side_multiple(self.density),
        )


def af_af(size: Size, task: Task) -> Plan:  # noqa: ARG001 (one plan for all texts)
    return latent(LatentFlowSettings(LSTM(500, 2, dropout=0.2)), size)


def iaf_scf(size: Size, task: Task) -> Plan:  # noqa: ARG001
    plan = latent(LatentFlowSettings(LSTM(500, 2), "iaf-scf", num_flows=3), size)
    if size == "tiny" and isinstance(plan.model, LatentFlowSettings):
        # with so few steps the KL weight must rise slowly, or the decoder ignores the latent variables
        model = replace(plan.model, net=LSTM(96, 1), latent_channels=4, kl_flat=0.1, kl_rise=0.6)
        return replace(plan, model=model, train=replace(plan.train, lr=6e-3))
    return plan


def latent(model: LatentFlowSettings, size: Size) -> Plan:
    """Return the paper's model and training, or a smaller model for the other sizes."""
    if size == "paper":
        optim = OptimConfig(optimizer="adam", clip=5.0, ema=0.0)
        return Plan(model, TrainConfig(epochs=30, batch_size=32, lr=1e-3), optim)
    width, channels, num_flows, batch_size, lr = (128, 8, 2, 4, 8e-3) if size == "tiny" else (256, 24, 4, 16, 2e-3)
    model = replace(model, net=LSTM(width, 1), latent_channels=channels, num_flows=num_flows)
    return Plan(model, TrainConfig(minutes=MINUTES[size], batch_size=batch_size, lr=lr), QUICK_ADAMW)


def categorical_nf(size: Size, task: Task) -> Plan:
    plan = autoregressive(size, task)
    assert isinstance(plan.model, ArgmaxFlowSettings)
    assert isinstance(plan.model.density, Mixture)
    return replace(plan, model=CategoricalNfSettings(plan.model.density))


def vae(size: Size, task: Task) -> Plan:  # noqa: ARG001 (one plan for all maps)
    decoder = {"tiny": DenseNet(64, 2), "small": DenseNet(128, 3), "paper": DenseNet(512, 8)}[size]
    return Plan(VaeSettings(*MAP_FLOWS[size], decoder), *map_training(size))


AF_AF = Recipe("latent flow, autoregressive over positions and channels", LatentFlowSettings, af_af)
IAF_SCF = Recipe("latent flow, inverse autoregressive, split couplings", LatentFlowSettings, iaf_scf)
CATEGORICAL_NF = Recipe("categorical normalizing flow, autoregressive", CategoricalNfSettings, categorical_nf)
VAE = Recipe("VAE with flow prior and flow posterior", VaeSettings, vae, takes=("maps",))
