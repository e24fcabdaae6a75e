"""Whether a network can compute the logits of some positions alone, which saves half of its output layer."""

from torch import Tensor, nn


def can_choose(net: nn.Module, z: Tensor) -> bool:
    """Return whether a network takes `at`, the positions (B, *D) to compute logits of, for an input like z.

    Only on a CPU: elsewhere the host would have to wait for the number of positions. Compiled networks are left as
    they are.
    """
    is_plain = getattr(net, "_compiled_call_impl", None) is None
    return z.device.type == "cpu" and is_plain and getattr(net, "takes_positions", False)
