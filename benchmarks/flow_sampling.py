"""Sampling one sequence from flows at paper size: linear time against the naive inverse, and length against length.

The naive inverse runs the whole network once per position and channel and solves for one number each time; it is
timed on a few of them and extrapolated. The coupling flow is timed with the paper's biLSTM and with a Transformer
of as many parameters.
"""

import statistics
import sys
import time
from dataclasses import replace

import torch
from timing import interleaved, matmul, matmul_flops, verdict

from unordinal.data.spec import DataSpec
from unordinal.flows.autoregressive import ChannelAutoregressive, TimeFlow
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.nets.settings import LSTM, Transformer
from unordinal.recipes import configured
from unordinal.recipes.argmax_flow import ArgmaxFlowSettings
from unordinal.recipes.settings import CouplingLayers

LENGTH, ROUNDS, NAIVE_STEPS = 256, 3, 6


def built(config: ArgmaxFlowSettings) -> ArgmaxFlow:
    torch.manual_seed(0)
    return config.build(DataSpec("text8", 27, (LENGTH,))).eval()


def num_parameters(model: torch.nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def naive_seconds(model: ArgmaxFlow) -> float:
    """A whole sample, extrapolated from the first numbers of a sequence filled up with zeros."""
    layer = next(part for part in model.density.modules() if isinstance(part, TimeFlow))
    inner = layer.inner
    assert isinstance(inner, ChannelAutoregressive)
    z = torch.randn(1, LENGTH, inner.num_channels)
    v = torch.zeros_like(z)
    times = []
    with torch.no_grad():
        for step in range(NAIVE_STEPS):
            began = time.perf_counter()
            place, channel = divmod(step, inner.num_channels)
            parameters = inner.head(layer.net(v), v) + inner.start
            v[:, place, channel] = inner.transform.inverse(z[:, place, channel], parameters[:, place, channel])[0]
            times.append(time.perf_counter() - began)
    return statistics.median(times) * LENGTH * inner.num_channels


def transformer_like(lstm: ArgmaxFlow, config: ArgmaxFlowSettings) -> tuple[ArgmaxFlow, Transformer]:
    """A Transformer coupling flow with as many parameters as the LSTM one, as near as a multiple of 16 allows."""
    density = config.density
    assert isinstance(density, CouplingLayers)
    assert isinstance(density.net, LSTM)
    blocks = density.net.num_layers
    best = min(
        range(64, 1600, 16), key=lambda width: abs(12 * width**2 * blocks * density.num_flows - num_parameters(lstm))
    )
    net = Transformer(best, blocks, num_heads=8, dropout=density.net.dropout)
    return built(replace(config, density=replace(density, net=net))), net


def main() -> int:
    ar = configured("text8/argmax-ar", "paper").model
    coupling = configured("text8/argmax-coupling", "paper").model
    assert isinstance(ar, ArgmaxFlowSettings)
    assert isinstance(coupling, ArgmaxFlowSettings)
    held = autoregressive(built(ar)) + couplings(coupling)
    return 0 if all(held) else 1


def autoregressive(flow: ArgmaxFlow) -> list[bool]:
    seconds = interleaved(
        {
            "256": lambda: flow.sample(1, event_shape=(LENGTH,)),
            "512": lambda: flow.sample(1, event_shape=(2 * LENGTH,)),
            "matmul": matmul(),
        },
        ROUNDS,
    )
    naive = naive_seconds(flow)
    print(f"AR argmax flow, paper size, {num_parameters(flow):,} parameters, one sequence, 2 threads")
    print(
        f"  256 characters {seconds['256']:.2f} s, 512 {seconds['512']:.2f} s, naive 256 {naive:.0f} s (extrapolated)"
    )
    print(f"  matmul peak {matmul_flops() / seconds['matmul'] / 1e9:.0f} GFLOP/s")
    return [
        verdict("speed-up over the naive inverse", naive / seconds["256"], 100, at_least=True, unit="x"),
        verdict("time(512) / time(256)", seconds["512"] / seconds["256"], 2.3, at_least=False),
        verdict("seconds for 256 characters", seconds["256"], 6, at_least=False, unit=" s"),
    ]


def couplings(config: ArgmaxFlowSettings) -> list[bool]:
    lstm = built(config)
    transformer, chosen = transformer_like(lstm, config)
    seconds = interleaved(
        {
            "lstm": lambda: lstm.sample(1, event_shape=(LENGTH,)),
            "transformer": lambda: transformer.sample(1, event_shape=(LENGTH,)),
        },
        7,
    )
    print(
        f"coupling argmax flow, paper size: biLSTM {num_parameters(lstm):,} parameters, "
        f"Transformer of width {chosen.width} {num_parameters(transformer):,}"
    )
    return [
        verdict("coupling, biLSTM, seconds for 256 characters", seconds["lstm"], 0.75, at_least=False, unit=" s"),
        verdict("coupling, Transformer, seconds", seconds["transformer"], 0.4, at_least=False, unit=" s"),
    ]


if __name__ == "__main__":
    sys.exit(main())
