"""LSTMs over sequences: causal with a step of its own, and bidirectional."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.context import Mlp
from unordinal.nets.linear import zero_linear
from unordinal.nets.sharp import SharpFeatures

State = list[tuple[Tensor, Tensor]]  # hidden and cell of each layer


class CausalLSTM(nn.Module):
    """Features of each position from the positions before it: (B, L, C) -> (B, L, width).

    >>> net = CausalLSTM(5, width=8)
    >>> net(torch.randn(2, 6, 5)).shape
    torch.Size([2, 6, 8])
    """

    def __init__(
        self, in_channels: int, *, width: int, num_layers: int = 1, dropout: float = 0.0, cond_channels: int = 0
    ):
        super().__init__()
        check_sizes(width, num_layers, dropout)
        self.out_channels = width
        self.look = SharpFeatures(in_channels)
        self.first = nn.Parameter(torch.zeros(self.look.out_channels))  # stands before the first position
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(self.look.out_channels + cond_channels, width, num_layers, batch_first=True)
        remember(self.lstm)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        before = torch.cat([self.first.expand(len(v), 1, -1), self.look(v[:, :-1])], dim=1)
        h = self.dropout(before)
        h, _ = self.lstm(h if cond is None else torch.cat([h, cond], dim=-1))
        return h

    def init_state(self, batch: int) -> State:
        zeros = self.first.new_zeros(batch, self.out_channels)
        return [(zeros, zeros) for _ in range(self.lstm.num_layers)]

    def step(self, v_before: Tensor | None, state: State, cond: Tensor | None = None) -> tuple[Tensor, State]:
        """One position on; the cell is written out, since `nn.LSTM` prepares its weights anew at every call."""
        h = self.first.expand(len(state[0][0]), -1) if v_before is None else self.look(v_before)
        h = self.dropout(h)
        if cond is not None:
            h = torch.cat([h, cond], dim=-1)
        after: State = []
        for layer, (hidden, cell) in enumerate(state):
            w: Any = [
                getattr(self.lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
            gates = F.linear(h, w[0], w[2]) + F.linear(hidden, w[1], w[3])  # (B, 4 W)
            enter, forget, new, out = gates.chunk(4, dim=-1)
            kept = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
            h = torch.sigmoid(out) * torch.tanh(kept)
            after.append((h, kept))
        return h, after


class BiLSTM(nn.Module):
    """Every position from all of them: (B, L, in) -> (B, L, out); the output starts at zero."""

    def __init__(self, in_channels: int, out_channels: int, *, width: int, num_layers: int = 1, dropout: float = 0.0):
        super().__init__()
        check_sizes(width, num_layers, dropout)
        self.look = SharpFeatures(in_channels)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(self.look.out_channels, width, num_layers, batch_first=True, bidirectional=True)
        remember(self.lstm)
        self.out = zero_linear(2 * width, out_channels)

    def forward(self, v: Tensor) -> Tensor:
        h, _ = self.lstm(self.dropout(self.look(v)))
        return self.out(h)


class AroundLSTM(nn.Module):
    """Every position from its own channels and, apart, from those before and those after it: (B, L, in) -> (B, L, out).

    Two LSTMs read the others; what they know of the position itself is left out, so that its own channels must tell.
    """

    def __init__(self, in_channels: int, out_channels: int, *, width: int, num_layers: int = 1):
        super().__init__()
        check_sizes(width, num_layers, 0.0)
        self.look = SharpFeatures(in_channels)
        # not one bidirectional LSTM, whose second layer would read the other direction and with it the position itself
        self.before = nn.LSTM(self.look.out_channels, width, num_layers, batch_first=True)
        self.after = nn.LSTM(self.look.out_channels, width, num_layers, batch_first=True)
        remember(self.before)
        remember(self.after)
        self.out = Mlp(self.look.out_channels + 2 * width, out_channels, width=width)

    def forward(self, v: Tensor) -> Tensor:
        own = self.look(v)
        before, after = self.before(own)[0], self.after(own.flip(1))[0].flip(1)
        before = F.pad(before[:, :-1], (0, 0, 1, 0))
        after = F.pad(after[:, 1:], (0, 0, 0, 1))
        return self.out(torch.cat([own, before, after], dim=-1))


def remember(lstm: nn.LSTM) -> None:
    """Start with open forget gates, so that gradients reach back from the first step."""
    with torch.no_grad():
        for name, weight in lstm.named_parameters():
            if name.startswith("bias_ih"):
                weight[lstm.hidden_size : 2 * lstm.hidden_size] += 1.0


def check_sizes(width: int, num_layers: int, dropout: float) -> None:
    if width < 1 or num_layers < 1 or not 0 <= dropout < 1:
        raise ValueError(
            f"an LSTM needs width >= 1, num_layers >= 1 and 0 <= dropout < 1; "
            f"got width {width}, num_layers {num_layers}, dropout {dropout:g}"
        )
