"""Optimisers, and the learning rate as a plain function of how far a run has come."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.config import OptimConfig
from unordinal.parallel.sharding import is_spread
from unordinal.products import times_transposed

# Coefficients of the quintic Newton-Schulz iteration that brings singular values near 1 in five rounds (Jordan et al.
# 2024).
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_ROUNDS = 5
SMALLEST_NORM = 1e-7  # guards the division by the norm of a gradient that is all zeros
MUON_MOMENTUM = 0.95
ADAM_BETA1 = 0.9


def learning_rate_factor(config: OptimConfig, *, step: int, fraction: float, epoch: float) -> float:
    """Return the factor of the learning rate at a step (from 0): warm-up times decay.

    `fraction` is the part of the budget that is used up, `epoch` the passes over the data so far.

    >>> config = OptimConfig(warmup=10, decay_per_epoch=0.5)
    >>> [learning_rate_factor(config, step=s, fraction=0.0, epoch=e) for s, e in ((0, 0), (9, 0), (99, 2))]
    [0.1, 1.0, 0.25]
    """
    factor = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    factor *= config.decay_per_epoch**epoch
    return factor * max(0.0, 1.0 - fraction) if config.decay_to_zero else factor


def build_optimizer(model: nn.Module, config: OptimConfig, lr: float) -> torch.optim.Optimizer:
    """Return the configured optimiser; each group's `peak_lr` is what `learning_rate_factor` multiplies."""
    params = [p for p in model.parameters() if p.requires_grad]
    betas = (ADAM_BETA1, config.beta2)
    fused = not any(is_spread(p) or p.device.type == "meta" for p in params)
    if config.optimizer == "muon":
        matrices, tables = inner_matrices(model), sparse_tables(model)
        chosen = {id(p) for p in matrices + tables}
        groups = [
            {"params": [p for p in params if id(p) not in chosen], "lr": lr, "update": "adamw"},
            {"params": matrices, "lr": config.matrix_lr, "update": "orthogonal"},
            {"params": tables, "lr": lr, "update": "rows"},
        ]
        optimizer: torch.optim.Optimizer = Muon(groups, betas=betas, weight_decay=config.weight_decay)
    elif config.optimizer == "adamw":
        optimizer = torch.optim.AdamW(params, lr, betas=betas, weight_decay=config.weight_decay, fused=fused)
    elif config.optimizer == "adamax":
        optimizer = torch.optim.Adamax(params, lr, betas=betas)
    else:
        optimizer = torch.optim.Adam(params, lr, betas=betas, fused=fused)
    for group in optimizer.param_groups:
        group["peak_lr"] = group["lr"]
    return optimizer


def inner_matrices(model: nn.Module) -> list[Tensor]:
    """Return the weights of layers marked `is_inner`: not embeddings, heads or conditioning."""
    return [module.get_parameter("weight") for module in model.modules() if getattr(module, "is_inner", False)]


def sparse_tables(model: nn.Module) -> list[Tensor]:
    """Return tables of which a batch reads few rows, after making their gradients sparse, which only `Muon` can use."""
    found = []
    for part in model.modules():
        for table in getattr(part, "sparse_tables", ()):
            table.sparse = True
            found.append(table.weight)
    return found


def clip_gradients(parameters: Iterable[nn.Parameter], most: float | None) -> Tensor:
    """Scale all gradients, sparse ones included, so that their norm is at most `most`; return the norm before that."""
    kept = [p for p in parameters if p.grad is not None]
    dense, sparse = ([p for p in kept if p.grad.is_sparse is which] for which in (False, True))  # type: ignore[union-attr]
    norm = torch.nn.utils.get_total_norm([p.grad for p in dense if p.grad is not None], foreach=True)
    if sparse:
        rows = torch.stack([p.grad.coalesce().values().norm() for p in sparse if p.grad is not None])
        norm = (norm.square() + rows.square().sum()).sqrt()
    if most is not None:
        torch.nn.utils.clip_grads_with_norm_(dense, most, norm, foreach=True)
        for p in sparse:
            assert p.grad is not None
            p.grad.mul_((most / (norm + SMALLEST_NORM)).clamp(max=1.0))
    return norm


class Muon(torch.optim.Optimizer):
    """Momentum whose update is orthogonalised, for groups that ask for it; AdamW, of all or of some rows, for others.

    In float32: torch's own Muon multiplies in bfloat16, which some CPUs advertise and do not run.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], *, betas: tuple[float, float], weight_decay: float):
        super().__init__(groups, {"lr": 1e-3, "betas": betas, "weight_decay": weight_decay, "update": "adamw"})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is None
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            steps = {"orthogonal": self._step_matrices, "adamw": self._step_adamw, "rows": self._step_rows}
            steps[group["update"]](group, params)

    def _step_matrices(self, group: dict[str, Any], params: list[Tensor]) -> None:
        shapes: dict[torch.Size, list[Tensor]] = {}
        for p in params:
            shapes.setdefault(p.shape, []).append(p)
        for shape, same in shapes.items():  # matrices of one shape go through the iteration together
            updates = []
            for p in same:
                assert p.grad is not None
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                momentum.lerp_(p.grad, 1 - MUON_MOMENTUM)
                updates.append(p.grad.lerp(momentum, MUON_MOMENTUM).flatten(1))  # Nesterov; a filter is a row
            scale = max(1.0, shape[0] / shape[1:].numel()) ** 0.5
            for p, update in zip(same, orthogonalised(torch.stack(updates)), strict=True):
                p.add_(update.view_as(p), alpha=-group["lr"] * scale)

    def _step_adamw(self, group: dict[str, Any], params: list[Tensor]) -> None:
        if not params:
            return
        for p in params:
            if not self.state[p]:
                self.state[p] = {"m": torch.zeros_like(p), "v": torch.zeros_like(p), "count": 0}
            self.state[p]["count"] += 1
        grads = [p.grad for p in params if p.grad is not None]
        first, second = ([self.state[p][name] for p in params] for name in ("m", "v"))
        count, (beta1, beta2) = self.state[params[0]]["count"], group["betas"]
        torch._foreach_lerp_(first, grads, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, grads, grads, 1 - beta2)
        root = torch._foreach_sqrt(second)
        torch._foreach_div_(root, (1 - beta2**count) ** 0.5)
        torch._foreach_add_(root, 1e-8)
        torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_addcdiv_(params, first, root, -group["lr"] / (1 - beta1**count))

    def _step_rows(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Apply Adam to the rows that the batch has read; the state of other rows stays unchanged."""
        beta1, beta2 = group["betas"]
        for p in params:
            assert p.grad is not None
            if not self.state[p]:
                self.state[p] = {"m": torch.zeros_like(p), "v": torch.zeros_like(p), "count": 0}
            state = self.state[p]
            state["count"] += 1
            grad = p.grad.coalesce() if p.grad.is_sparse else p.grad.to_sparse(1)
            rows, g = grad.indices()[0], grad.values()
            first = state["m"][rows].lerp_(g, 1 - beta1)
            second = state["v"][rows].mul_(beta2).addcmul_(g, g, value=1 - beta2)
            state["m"][rows], state["v"][rows] = first, second
            root = second.sqrt().div_((1 - beta2 ** state["count"]) ** 0.5).add_(1e-8)
            p.index_add_(0, rows, first / root, alpha=-group["lr"] / (1 - beta1 ** state["count"]))


def orthogonalised(g: Tensor) -> Tensor:
    """Orthogonalise matrices by Newton-Schulz iterations: (N, rows, columns) -> the same shape."""
    a, b, c = NEWTON_SCHULZ
    is_tall = g.shape[-2] > g.shape[-1]
    y = g.mT if is_tall else g
    y = y / y.norm(dim=(-2, -1), keepdim=True).clamp(min=SMALLEST_NORM)
    for _ in range(NEWTON_SCHULZ_ROUNDS):
        gram = times_transposed(y, y)
        y = a * y + times_transposed(b * gram + c * times_transposed(gram, gram), y.mT)  # gram is symmetric
    return y.mT if is_tall else y
