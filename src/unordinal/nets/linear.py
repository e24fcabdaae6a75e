"""Linear layers: inner layers of a network, and output layers that are initialised to zero."""

from torch import Tensor, nn

from unordinal.products import linear


class Linear(nn.Linear):
    """A linear layer whose product takes the faster of two libraries; see `unordinal.products`."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (torch's name)
        return linear(input, self.weight, self.bias)


class InnerLinear(Linear):
    """A linear layer inside a network, as opposed to an embedding or an output layer.

    The optimiser `muon` orthogonalises the updates of every layer with the attribute `is_inner = True` and uses AdamW
    for all others. Set this attribute on your own layers to include them.
    """

    is_inner = True


def zero_linear(in_channels: int, out_channels: int) -> Linear:
    """Return a linear layer whose weights and biases, and therefore its output, start at zero."""
    layer = Linear(in_channels, out_channels)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
