"""Differentiable fixed points of causal functions: a few passes over all positions replace one step per position."""

from collections.abc import Callable

import torch
from torch import Tensor


def causal_fixed_point(
    function: Callable[[Tensor], Tensor], start: Tensor, *, most: int | None = None
) -> Tensor | None:
    """Solve v = function(v), where position i of the function's value depends only on positions before i.

    Every pass makes at least one more position exact, so L passes always suffice; few are enough where positions depend
    little on distant ones. The result is differentiable with respect to the tensors that the function closes over, by
    the implicit function theorem: backward solves w = gradient + J^T w by the same iteration, as J is causal too.

    Args:
        function: the causal function, from (B, L, ...) to the same shape.
        start: the initial value of v, of shape (B, L, ...).
        most: the largest number of passes. Default: L.

    Returns:
        The fixed point, of shape (B, L, ...), or None if the iteration did not converge in `most` passes.

    >>> sums = lambda v: torch.ones(1, 4) + torch.nn.functional.pad(v[:, :-1], (1, 0))
    >>> causal_fixed_point(sums, torch.zeros(1, 4)).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    """
    length = start.shape[1]
    most = length if most is None else min(most, length)
    with torch.no_grad():
        v, is_converged = iterate(function, start, most)
    if not (is_converged or most == length):
        return None
    if not torch.is_grad_enabled():
        return v
    point = v.detach().requires_grad_()
    out = function(point)

    def solve_adjoint(gradient: Tensor) -> Tensor:
        def adjoint(w: Tensor) -> Tensor:
            return gradient + torch.autograd.grad(out, point, w, retain_graph=True)[0]

        return iterate(adjoint, gradient, length)[0]

    result = out.view_as(out)  # a separate node, so that the hook does not run when `adjoint` differentiates `out`
    result.register_hook(solve_adjoint)
    return result


def iterate(function: Callable[[Tensor], Tensor], v: Tensor, most: int) -> tuple[Tensor, bool]:
    """Apply the function until v changes only by rounding, at most `most` times; return v and whether it converged."""
    for _ in range(most):
        before, v = v, function(v)
        if bool((v - before).abs().max() <= 8 * torch.finfo(v.dtype).eps * v.abs().max()):
            return v, True
    return v, False
