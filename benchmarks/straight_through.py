"""The bias of straight-through gradients: against the exact gradient of the expected loss, on a space to enumerate.

One place of K classes, layers whose logits are free numbers. What is smoothed is the loss expected when every layer
draws its location from softmax(logits / temperature); its gradient is computed over all choices of all layers.
Prints, for 1 to 3 layers and three temperatures, the median over random logits of |ours - exact| / |exact| and of the
cosine between both. Nothing is timed.
"""

import itertools
import statistics

import torch
from torch import Tensor, nn

from unordinal.models.discrete_flow import DiscreteFlow, ModuloLayer
from unordinal.progress import Advance

CLASSES, TRIALS = 5, 200


class FreeLayer(ModuloLayer):
    """A location (and a scale) whose logits depend on nothing."""

    def __init__(self, *, has_scale: bool, temperature: float):
        super().__init__(CLASSES, has_scale=has_scale, temperature=temperature)
        self.free = nn.Parameter(torch.randn(self.num_outputs, dtype=torch.float64))

    def logits(self, x: Tensor) -> Tensor:
        return self.free.expand(*x.shape[:2], -1)

    def inverse(self, u: Tensor, advance: Advance | None = None) -> Tensor:
        return self.data_of(u, self.free.expand(*u.shape, -1))


def exact_gradient(layers: list[FreeLayer], log_base: Tensor, x: int) -> Tensor:
    """Of the expected loss to all logits, over every choice of every layer."""
    total = torch.zeros((), dtype=torch.float64)
    probabilities = []
    for layer in layers:
        location, scale = layer.parts(layer.free)
        p = torch.softmax(location / layer.temperature, -1)
        q = torch.softmax(scale / layer.temperature, -1) if layer.has_scale else torch.ones(1, dtype=torch.float64)
        inverses = layer.inverses.tolist() if layer.has_scale else [1]
        probabilities.append([(j, s, p[j] * q[i]) for j in range(CLASSES) for i, s in enumerate(inverses)])
    for choice in itertools.product(*probabilities):
        u, weight = x, torch.ones((), dtype=torch.float64)
        for j, s, p in choice:
            u, weight = (u - j) * s % CLASSES, weight * p
        total = total - weight * log_base[u]
    return torch.cat(torch.autograd.grad(total, [layer.free for layer in layers]))


def straight_through_gradient(layers: list[FreeLayer], log_base: Tensor, x: int) -> Tensor:
    model = DiscreteFlow(list(layers), num_classes=CLASSES, event_shape=(1,)).double()
    model.base.data = log_base.unsqueeze(0)
    loss = model.training_loss(torch.tensor([[x]])).sum()
    return torch.cat(torch.autograd.grad(loss, [layer.free for layer in layers]))


def main() -> int:
    print("layers  scale  temperature  relative bias  cosine")
    for num, has_scale, temperature in itertools.product((1, 2, 3), (False, True), (1.0, 0.3, 0.1)):
        if num == 3 and has_scale:  # 8000 choices in Python, and nothing new
            continue
        torch.manual_seed(0)
        errors, cosines = [], []
        for trial in range(TRIALS if num < 3 else TRIALS // 4):
            layers = [FreeLayer(has_scale=has_scale, temperature=temperature) for _ in range(num)]
            log_base = torch.log_softmax(torch.randn(CLASSES, dtype=torch.float64), -1)
            exact, ours = (f(layers, log_base, trial % CLASSES) for f in (exact_gradient, straight_through_gradient))
            errors.append(float((ours - exact).norm() / exact.norm()))
            cosines.append(float(torch.cosine_similarity(ours, exact, dim=0)))
        bias, cosine = statistics.median(errors), statistics.median(cosines)
        print(f"{num:>6}  {'yes' if has_scale else 'no':>5}  {temperature:>11}  {bias:>13.3f}  {cosine:>6.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
