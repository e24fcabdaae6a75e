"""LSTMs over sequences: causal, with a function for single steps, and bidirectional."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.context import Mlp
from unordinal.nets.linear import zero_linear
from unordinal.nets.sharp import SharpFeatures
from unordinal.products import linear

State = list[tuple[Tensor, Tensor]]  # hidden state and cell state of each layer, both (B, W)


class CausalLSTM(nn.Module):
    """An LSTM whose features at each position depend only on the positions before it.

    Calling it computes all positions at once; `init_state` and `step` compute one position after another.

    Args:
        in_channels: the number of input channels C.
        width: the number of channels of the LSTM, and of features.
        num_layers: the number of layers.
        dropout: the dropout probability of the input.
        cond_channels: the number of channels H of the condition; 0 for none.

    >>> net = CausalLSTM(5, width=8)
    >>> net(torch.randn(2, 6, 5)).shape
    torch.Size([2, 6, 8])
    """

    is_recurrent = True

    def __init__(
        self, in_channels: int, *, width: int, num_layers: int = 1, dropout: float = 0.0, cond_channels: int = 0
    ):
        super().__init__()
        check_sizes(width, num_layers, dropout)
        self.out_channels = width
        self.look = SharpFeatures(in_channels)
        self.first = nn.Parameter(torch.zeros(self.look.out_channels))  # the input before the first position
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(self.look.out_channels + cond_channels, width, num_layers, batch_first=True)
        open_forget_gates(self.lstm)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        """Compute the features of every position.

        Args:
            v: the input, of shape (B, L, C).
            cond: the condition, of shape (B, L, H).

        Returns:
            The features of each position given the positions before it, of shape (B, L, width).
        """
        before = torch.cat([self.first.expand(len(v), 1, -1), self.look(v[:, :-1])], dim=1)
        h = self.dropout(before)
        h, _ = self.lstm(h if cond is None else torch.cat([h, cond], dim=-1))
        return h

    def init_state(self, batch: int) -> State:
        """Return the state before the first position, for a batch of this size."""
        zeros = self.first.new_zeros(batch, self.out_channels)
        return [(zeros, zeros) for _ in range(self.lstm.num_layers)]

    def step(self, v_before: Tensor | None, state: State, cond: Tensor | None = None) -> tuple[Tensor, State]:
        """Compute the features of the next position.

        Args:
            v_before: the input (B, C) at the position before it; None for the first position.
            state: the state after the position before.
            cond: the condition (B, H) of the next position.

        Returns:
            The features, of shape (B, width), and the new state.
        """
        # The equations of the cell are written out, because nn.LSTM prepares its weights again in every call.
        h = self.first.expand(len(state[0][0]), -1) if v_before is None else self.look(v_before)
        h = self.dropout(h)
        if cond is not None:
            h = torch.cat([h, cond], dim=-1)
        after: State = []
        for layer, (hidden, cell) in enumerate(state):
            w: Any = [
                getattr(self.lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
            gates = linear(h, w[0], w[2]) + linear(hidden, w[1], w[3])  # (B, 4 W)
            enter, forget, new, out = gates.chunk(4, dim=-1)
            kept = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
            h = torch.sigmoid(out) * torch.tanh(kept)
            after.append((h, kept))
        return h, after


class BiLSTM(nn.Module):
    """A bidirectional LSTM, whose output at each position depends on all positions. Its output starts at zero.

    Args:
        in_channels: the number of input channels.
        out_channels: the number of output channels.
        width: the number of channels of each direction.
        num_layers: the number of layers.
        dropout: the dropout probability of the input.

    >>> BiLSTM(5, 3, width=8)(torch.randn(2, 6, 5)).shape
    torch.Size([2, 6, 3])
    """

    is_recurrent = True

    def __init__(self, in_channels: int, out_channels: int, *, width: int, num_layers: int = 1, dropout: float = 0.0):
        super().__init__()
        check_sizes(width, num_layers, dropout)
        self.look = SharpFeatures(in_channels)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(self.look.out_channels, width, num_layers, batch_first=True, bidirectional=True)
        open_forget_gates(self.lstm)
        self.out = zero_linear(2 * width, out_channels)

    def forward(self, v: Tensor) -> Tensor:
        """Compute the output of every position: (B, L, in_channels) -> (B, L, out_channels)."""
        h, _ = self.lstm(self.dropout(self.look(v)))
        return self.out(h)


class AroundLSTM(nn.Module):
    """A network that reads the channels of each position itself and, separately, its surroundings.

    One LSTM summarises the positions before it and another one those after it; neither sees the position itself, so
    that its own channels are needed to predict it: (B, L, in) -> (B, L, out).
    """

    is_recurrent = True

    def __init__(self, in_channels: int, out_channels: int, *, width: int, num_layers: int = 1):
        super().__init__()
        check_sizes(width, num_layers, 0.0)
        self.look = SharpFeatures(in_channels)
        # A bidirectional LSTM would not do: its second layer reads both directions, and with them the position itself.
        self.before = nn.LSTM(self.look.out_channels, width, num_layers, batch_first=True)
        self.after = nn.LSTM(self.look.out_channels, width, num_layers, batch_first=True)
        open_forget_gates(self.before)
        open_forget_gates(self.after)
        self.out = Mlp(self.look.out_channels + 2 * width, out_channels, width=width)

    def forward(self, v: Tensor) -> Tensor:
        own = self.look(v)
        before, after = self.before(own)[0], self.after(own.flip(1))[0].flip(1)
        before = F.pad(before[:, :-1], (0, 0, 1, 0))
        after = F.pad(after[:, 1:], (0, 0, 0, 1))
        return self.out(torch.cat([own, before, after], dim=-1))


def open_forget_gates(lstm: nn.LSTM) -> None:
    """Initialise the forget gates such that cells keep their state, which lets gradients reach far back."""
    with torch.no_grad():
        for name, weight in lstm.named_parameters():
            if name.startswith("bias_ih"):
                weight[lstm.hidden_size : 2 * lstm.hidden_size] += 1.0


def check_sizes(width: int, num_layers: int, dropout: float) -> None:
    """Raise a ValueError if these are no valid settings of an LSTM."""
    if width < 1 or num_layers < 1 or not 0 <= dropout < 1:
        raise ValueError(
            f"an LSTM needs width >= 1, num_layers >= 1 and 0 <= dropout < 1; "
            f"got width {width}, num_layers {num_layers}, dropout {dropout:g}"
        )
