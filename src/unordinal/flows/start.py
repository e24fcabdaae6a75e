"""Whether a module that starts from its first batch has done so, known without waiting for the device."""

from typing import Any

from torch import Tensor, nn


class Start:
    """Mirrors a module's buffer `is_started`, which is saved with its weights, in a plain boolean.

    Asking the buffer itself would make the CPU wait for a GPU in every training step.
    """

    def __init__(self, module: nn.Module):
        self.is_due = True
        module.register_load_state_dict_post_hook(self.loaded)

    def done(self, is_started: Tensor) -> None:
        """Note in the module's buffer, and here, that it has started."""
        is_started.fill_(True)
        self.is_due = False

    def loaded(self, module: Any, _keys: Any) -> None:
        self.is_due = not bool(module.is_started)
