"""Models whose weights, gradients and optimiser are spread over processes (FSDP2), since one device cannot hold them.

Each block of the network gathers its weights when it runs and lets them go afterwards. What is written to disk is
always the whole, so that a run can be continued with any strategy and any number of processes.
"""

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.config import OptimConfig, TrainConfig
from unordinal.model import CategoricalModel, TrainingHooks

SCORED_BY = ("elbo", "elbo_at")  # methods besides `forward` that run the network in training; the last of diffusions


def check_strategy(config: TrainConfig, optim: OptimConfig, hooks: TrainingHooks) -> None:
    """Raise a ValueError if a run cannot be sharded."""
    if config.strategy != "fsdp":
        return
    if not hooks.can_shard:
        raise ValueError("`strategy` fsdp is for the diffusions and for arm without n-grams; leave it out")
    if optim.optimizer == "muon":
        raise ValueError(
            "`optim.optimizer` muon needs whole matrices, which `strategy` fsdp does not keep; choose adamw or adam"
        )
    if config.compile:
        raise ValueError("`compile` does not go with `strategy` fsdp; leave one of them out")


def check_precision(config: TrainConfig, device: torch.device) -> None:
    """Raise a ValueError if the device cannot compute in the precision that is asked for."""
    if config.precision == "bf16" and device.type != "cuda":
        raise ValueError(f"`precision` bf16 needs cuda, but this run is on {device.type}; leave `precision` out")


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """The blocks that the networks of a model are made of: modules that say they are one."""
    return [module for module in model.modules() if getattr(module, "is_block", False)]


def shard(model: CategoricalModel, device: torch.device, size: int) -> None:
    """Spread the weights of a model over the processes of a group, in place."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    if not hasattr(FSDPModule, "set_force_sum_reduction_for_comms"):
        raise ValueError("`strategy` fsdp needs a newer torch; 2.9 has all of it")
    mesh = init_device_mesh(device.type, (size,))
    for block in blocks_of(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # The parts of a loss are divided by the whole batch already. gloo has no mean to offer in any case.
            module.set_force_sum_reduction_for_comms(True)
            module.set_gradient_divide_factor(1.0)
    for name in SCORED_BY if model.times is not None else SCORED_BY[:1]:
        register_fsdp_forward_method(model, name)


def is_sharded(module: nn.Module) -> bool:
    # Do not import FSDP here: it takes a second. It is imported already if a model is sharded.
    fsdp = sys.modules.get("torch.distributed.fsdp")
    return fsdp is not None and isinstance(module, fsdp.FSDPModule)


def is_spread(value: Any) -> bool:
    """Whether a value is a tensor of which this process holds a part."""
    tensors = sys.modules.get("torch.distributed.tensor")
    return tensors is not None and isinstance(value, tensors.DTensor)


def free_gathered_weights(model: nn.Module) -> None:
    """Free the weights that a sharded model gathered for scoring."""
    for module in model.modules():
        if is_sharded(module):
            module.reshard()  # type: ignore[operator]


def sync_after_last_part(model: nn.Module, *, is_last: bool) -> None:
    """Let the gradients of a sharded model be summed over processes after the last part of a batch only."""
    if is_sharded(model):
        model.set_requires_gradient_sync(is_last)  # type: ignore[operator]


def local(value: Tensor) -> Tensor:
    """The part of a tensor that this process holds; all of it where it is not spread."""
    return value.to_local() if is_spread(value) else value  # type: ignore[attr-defined]


def whole(state: Any) -> Any:
    """A nested state with every tensor gathered from all processes; all of them must call this."""
    if is_spread(state):
        return state.full_tensor().cpu()
    if isinstance(state, Mapping):
        return {name: whole(value) for name, value in state.items()}
    if isinstance(state, list):
        return [whole(value) for value in state]
    return state


def restored(state: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """A flat state with its tensors spread as those of `like` are; every process has the whole state."""
    return {name: spread(value, like.get(name)) for name, value in state.items()}


def spread(value: Any, like: Any) -> Any:
    if not (is_spread(like) and isinstance(value, Tensor) and value.shape == like.shape):
        return value
    from torch.distributed.tensor import distribute_tensor

    value = value.to(like.device)
    return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None)


def restored_optimizer(state: dict[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """An optimiser's state with its tensors spread as its weights are."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    of_each = {
        index: {name: spread(value, params[index]) for name, value in values.items()}
        for index, values in state["state"].items()
    }
    return {**state, "state": of_each}
