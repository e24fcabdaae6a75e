"""The interface of every surjection from continuous values to classes."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from unordinal.flows.density import Density
from unordinal.numerics import Rng


class Surjection(nn.Module, ABC):
    """The interface of a deterministic function from continuous v to classes x and its probabilistic inverse q(v | x).

    `quantize` computes x (B, *D) from v (B, *D, C). `lift` draws v from q(v | x), whose support is the set of all v
    with quantize(v) == x; therefore quantize(lift(x)[0]) == x always. Some surjections have codes v that represent no
    class: for these, `quantize` returns a number of at least `num_classes`.

    Args:
        num_classes: the number of classes K, at least 2.
        num_channels: the number C of continuous values for each class.
        has_invalid: whether some v represent no class.

    >>> import torch
    >>> from unordinal.surjections.argmax import GumbelArgmax
    >>> surjection: Surjection = GumbelArgmax(27, None)
    >>> x = torch.randint(27, (2, 8))
    >>> v, log_q = surjection.lift(x)
    >>> surjection.quantize(v).equal(x)
    True
    """

    def __init__(self, num_classes: int, num_channels: int, *, has_invalid: bool = False):
        super().__init__()
        if num_classes < 2:
            raise ValueError(f"a surjection needs at least 2 classes, got {num_classes}")
        self.num_classes, self.num_channels = num_classes, num_channels
        self.has_invalid = has_invalid

    @abstractmethod
    def lift(self, x: Tensor, context: Tensor | None = None, *, generator: Rng = None) -> tuple[Tensor, Tensor]:
        """Draw v from q(v | x).

        Args:
            x: classes, of shape (B, *D).
            context: features that a network has computed from x, of shape (B, *D, H), if q depends on them.
            generator: the random number generator; default: torch's global one.

        Returns:
            v, of shape (B, *D, C), and log q(v | x) in nats, of shape (B,).
        """

    @abstractmethod
    def quantize(self, v: Tensor) -> Tensor:
        """Compute the classes of v.

        Args:
            v: continuous values, of shape (B, *D, C).

        Returns:
            The classes, of shape (B, *D); at least `num_classes` where v represents no class.
        """

    def draw_noise(self, noise: Density, x: Tensor, context: Tensor | None, generator: Rng) -> tuple[Tensor, Tensor]:
        """Draw noise for the classes x, of shape (B, *D, C), and compute its log-density, of shape (B,).

        Raises:
            ValueError: if the noise has another shape.
        """
        u, log_q = noise.sample(len(x), context, event_shape=(*x.shape[1:], self.num_channels), generator=generator)
        if u.shape != (*x.shape, self.num_channels):
            raise ValueError(
                f"{type(self).__name__} of {self.num_classes} classes needs noise of shape "
                f"{(*x.shape, self.num_channels)}, but its noise has shape {tuple(u.shape)}"
            )
        return u, log_q
