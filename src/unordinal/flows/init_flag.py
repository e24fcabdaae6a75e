"""A flag that records whether a module has been initialised from its first batch."""

from typing import Any

from torch import Tensor, nn


class InitFlag:
    """A plain boolean copy of a module's buffer `is_started`, which is saved with the module's weights.

    Reading the buffer itself would make the CPU wait for a GPU in every training step.

    Args:
        module: the module, which has a boolean buffer `is_started`. Loading its weights updates the flag.
    """

    def __init__(self, module: nn.Module):
        self.is_pending = True
        module.register_load_state_dict_post_hook(self.update_from)

    def mark_done(self, is_started: Tensor) -> None:
        """Record, in the module's buffer and in the flag, that the module has been initialised."""
        is_started.fill_(True)
        self.is_pending = False

    def update_from(self, module: Any, _keys: Any) -> None:
        """Copy the state of the module's buffer, after weights were loaded."""
        self.is_pending = not bool(module.is_started)
