"""One sampling step at size tiny, batch 16: how much of it is not the network call."""

import statistics
import sys
import time

import torch
from timing import verdict
from torch import nn

from unordinal.data.spec import DataSpec
from unordinal.models.diffusion import Diffusion
from unordinal.recipes import configured

BATCH, ROUNDS = 16, 60


class Timed(nn.Module):
    """A network that notes how long its calls take."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net, self.seconds = net, 0.0

    def forward(self, z: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        began = time.perf_counter()
        out = self.net(z, t)
        self.seconds = time.perf_counter() - began
        return out


def main() -> int:
    torch.manual_seed(0)
    model = configured("text8/multinomial", "tiny").model.build(DataSpec("text8", 27, (256,)))
    assert isinstance(model, Diffusion)
    timed = model.net = Timed(model.net)
    total, inside = [], []
    chain = model.eval().denoiser.chain(BATCH, steps=ROUNDS)
    next(chain)  # the draw of pure noise
    began = time.perf_counter()
    for _ in chain:
        total.append(time.perf_counter() - began)
        inside.append(timed.seconds)
        began = time.perf_counter()
    outside = [all_of_it - net for all_of_it, net in zip(total, inside, strict=True)]
    print(f"sampling step, tiny, batch {BATCH}: {statistics.median(total) * 1e3:.1f} ms")
    print(f"  outside the network call: {statistics.median(outside) * 1e3:.2f} ms (median of {len(total)} steps)")
    share = statistics.median(o / t for o, t in zip(outside, total, strict=True))
    return 0 if verdict("share outside the network", 100 * share, 10, at_least=False, unit=" %") else 1


if __name__ == "__main__":
    sys.exit(main())
