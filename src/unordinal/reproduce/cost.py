"""What a job would cost, without doing it: operations and memory, counted on tensors without values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.data.spec import DataSpec
from unordinal.experiments import DATA
from unordinal.reproduce.jobs import Job

BACKWARD = 3  # a forward and a backward pass take three times the operations of a forward pass
BYTES = 4  # of a number
COPIES = {"adam": 4, "adamw": 4, "adamax": 4, "muon": 4}  # weights, gradients and the state of the optimiser


@dataclass(frozen=True)
class Cost:
    """The cost of training a model.

    Args:
        parameters: the number of weights.
        step: operations of a step, counted as twice the multiplications of linear, convolution and LSTM layers.
        steps: the steps of the whole training; None if the budget is a time.
        memory: bytes of weights, gradients, the optimiser's state, and what one step keeps for its backward pass.
    """

    parameters: int
    step: float
    steps: int | None
    memory: int

    @property
    def total(self) -> float | None:
        """Operations of the whole training; None if the budget is a time."""
        return None if self.steps is None else self.step * self.steps


def cost_of(job: Job) -> Cost:
    """Return the cost of a job, from one step of its model on the device meta."""
    config, paper = job.config(), DATA[job.task]
    length = getattr(config.data, "length", None)
    shape = (length,) if length and len(paper.shape) == 1 and job.task != "toy" else paper.shape
    train = config.train
    with torch.device("meta"):
        model = config.model.build(DataSpec(config.data.name, paper.num_classes, shape)).train()
        part = max(1, train.batch_size // (train.accumulate or 1))
        x = torch.zeros((part, *shape), dtype=torch.long)
        operations, kept = counted(model, x)
    parameters = sum(p.numel() for p in model.parameters())
    steps = train.steps
    if steps is None and train.epochs is not None:
        steps = round(train.epochs * whole_size(job) / train.batch_size)
    copies = COPIES.get(config.optim.optimizer, 4) + (1 if config.optim.ema else 0)
    return Cost(parameters, operations * train.batch_size / part, steps, parameters * BYTES * copies + kept)


WHOLE = {"text8": 90_000_000 // 256, "enwik8": 90_000_000 // 320, "cityscapes": 2500, "toy": 10_000}


def whole_size(job: Job) -> int:
    """Return the number of training examples of the paper's data."""
    return WHOLE[job.task]


def counted(model: nn.Module, x: Tensor) -> tuple[float, int]:
    """Return the operations of one training step on x, and the bytes that it keeps for its backward pass."""
    total, kept, seen = 0.0, 0, set[int]()

    def note(module: nn.Module, given: tuple[Any, ...], out: Any) -> None:
        nonlocal total
        total += 2 * multiplications(module, given, out)

    def pack(tensor: Tensor) -> Tensor:
        nonlocal kept
        if id(tensor) not in seen and not isinstance(tensor, nn.Parameter):
            seen.add(id(tensor))
            kept += tensor.numel() * tensor.element_size()
        return tensor

    hooks = [module.register_forward_hook(note) for module in model.modules()]
    unpack: Callable[[Tensor], Tensor] = lambda tensor: tensor  # noqa: E731
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        model(x).mean()
    for hook in hooks:
        hook.remove()
    return BACKWARD * total, kept


def multiplications(module: nn.Module, given: tuple[Any, ...], out: Any) -> float:
    """Return the multiplications of a layer; 0 for modules that hold other modules."""
    if isinstance(module, nn.Linear):
        return out.numel() * module.in_features
    if isinstance(module, nn.modules.conv._ConvNd):
        return out.numel() * module.weight[0].numel()
    if isinstance(module, nn.LSTM):
        positions = given[0].numel() // given[0].shape[-1]
        return positions * sum(weight.numel() for name, weight in module.named_parameters() if "weight" in name)
    return 0.0
