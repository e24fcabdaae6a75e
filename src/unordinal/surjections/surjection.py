"""The interface of every surjection."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from unordinal.flows.density import Density


class Surjection(nn.Module, ABC):
    """v (B, *D, num_channels) -> x (B, *D), and q(v | x) over what maps to x.

    Contract: quantize(lift(x)[0]) == x, always. A v that means no class quantises to a number >= num_classes.
    """

    def __init__(self, num_classes: int, num_channels: int, *, has_invalid: bool = False):
        super().__init__()
        if num_classes < 2:
            raise ValueError(f"a surjection needs at least 2 classes, got {num_classes}")
        self.num_classes, self.num_channels = num_classes, num_channels
        self.has_invalid = has_invalid  # whether some v mean no class

    @abstractmethod
    def lift(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Draw v ~ q(v | x): (v, log q(v | x)), (B, *D, C) and (B,).

        `context` (B, *D, H) is what an outer model has read off the whole of x.
        """

    @abstractmethod
    def quantize(self, v: Tensor) -> Tensor:
        """The classes of v: (B, *D, C) -> (B, *D)."""

    def drawn(self, noise: Density, x: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor]:
        """Noise for the classes x and its log-density, (B, *D, C) and (B,); noise of another width is refused."""
        u, log_q = noise.sample(len(x), context, event_shape=(*x.shape[1:], self.num_channels))
        if u.shape != (*x.shape, self.num_channels):
            raise ValueError(
                f"{type(self).__name__} of {self.num_classes} classes needs noise of shape "
                f"{(*x.shape, self.num_channels)}, but its noise gives {tuple(u.shape)}"
            )
        return u, log_q
