"""Training steps with the products of torch and with those of oneDNN, interleaved: python benchmarks/matrix_products.py

Prints how much faster single products and whole training steps are. Which of the two a machine takes by default is in
`unordinal.products`.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from step_profile import loop_of
from timing import interleaved

from unordinal import products
from unordinal.data.spec import DataSpec
from unordinal.recipes import configured

SHAPES = ((2048, 128, 512), (2048, 512, 128), (1024, 320, 1280), (4096, 512, 2048))
STEPS = ("arm", "absorbing", "block", "multinomial"), ("tiny", "small")
MAPS = ("cityscapes/multinomial", "paper")
LENGTH = 256  # characters of a sample
ROUNDS = 5


def taking(choice: str, work: Callable[[], object]) -> Callable[[], object]:
    """Return work that takes the products of oneDNN, or those of torch."""

    def run() -> object:
        os.environ["UNORDINAL_PRODUCTS"] = choice
        products.uses_onednn.cache_clear()
        return work()

    return run


def compared(name: str, work: Callable[[], object]) -> None:
    """Print how long work takes with each kind of product."""
    seconds = interleaved({"torch": taking("torch", work), "onednn": taking("onednn", work)}, ROUNDS)
    ratio = seconds["torch"] / seconds["onednn"]
    print(f"{name:<38}{1e3 * seconds['torch']:>10.2f} ms{1e3 * seconds['onednn']:>10.2f} ms{ratio:>8.2f}", flush=True)


def main() -> int:
    default = products.uses_onednn()
    print(f"by default this machine takes the products of {'oneDNN' if default else 'torch'}")
    if not products.uses_onednn("onednn"):
        print("this build of torch has no oneDNN")
        return 2
    print(f"{'':<38}{'torch':>13}{'oneDNN':>13}{'ratio':>8}")
    for rows, inner, columns in SHAPES:
        x, weight = torch.randn(rows, inner, requires_grad=True), torch.randn(columns, inner, requires_grad=True)

        def product(x: torch.Tensor = x, weight: torch.Tensor = weight) -> None:
            products.linear(x, weight).sum().backward()

        compared(f"{rows} x {inner} x {columns}, with gradients", product)
    torch.manual_seed(0)
    flow = configured("text8/argmax-ar", "paper").model.build(DataSpec("text8", 27, (LENGTH,))).eval()
    compared("a sample of text8/argmax-ar, paper", lambda: flow.sample(1, event_shape=(LENGTH,)))
    models, sizes = STEPS
    for name, size in [(model, size) for model in models for size in sizes] + [MAPS]:
        with tempfile.TemporaryDirectory() as folder:
            loop = loop_of(configured(name, size), Path(folder))
            compared(f"a training step of {name}, {size}", loop.train_step)
    return 0


if __name__ == "__main__":
    sys.exit(main())
