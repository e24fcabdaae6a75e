"""The solution of v = f(v) for a causal f: a few whole passes in place of one step per position, with derivatives."""

from collections.abc import Callable

import torch
from torch import Tensor


def causal_fixed_point(
    function: Callable[[Tensor], Tensor], start: Tensor, *, most: int | None = None
) -> Tensor | None:
    """The v with v = function(v), (B, L, ...), where position i of the function depends on positions before i only.

    Every pass settles one more position at least, so L passes suffice; where positions depend little on those far
    before them, few do. None where `most` did not suffice. Derivatives flow to what the function closes over, by the
    implicit function theorem: backward solves w = gradient + J^T w in the same way, since J is causal too.

    >>> sums = lambda v: torch.ones(1, 4) + torch.nn.functional.pad(v[:, :-1], (1, 0))
    >>> causal_fixed_point(sums, torch.zeros(1, 4)).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    """
    length = start.shape[1]
    most = length if most is None else min(most, length)
    with torch.no_grad():
        v, is_settled = settled(function, start, most)
    if not (is_settled or most == length):
        return None
    if not torch.is_grad_enabled():
        return v
    point = v.detach().requires_grad_()
    out = function(point)

    def solved(gradient: Tensor) -> Tensor:
        def through(w: Tensor) -> Tensor:
            return gradient + torch.autograd.grad(out, point, w, retain_graph=True)[0]

        return settled(through, gradient, length)[0]

    result = out.view_as(out)  # a node of its own: the hook must not run when `through` asks `out`
    result.register_hook(solved)
    return result


def settled(function: Callable[[Tensor], Tensor], v: Tensor, most: int) -> tuple[Tensor, bool]:
    """Apply the function until nothing moves by more than rounding does, or so many times; and whether it settled."""
    for _ in range(most):
        before, v = v, function(v)
        if bool((v - before).abs().max() <= 8 * torch.finfo(v.dtype).eps * v.abs().max()):
            return v, True
    return v, False
