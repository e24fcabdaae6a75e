"""Networks over real channels of a sequence, by name: what several models' builders share."""

from torch import nn

from unordinal.model_config import NetConfig
from unordinal.nets.recurrent import BiLSTM, CausalLSTM
from unordinal.nets.sequence import CausalTransformer, SequenceTransformer

NETS = ("lstm", "transformer")


def causal_net(config: NetConfig, in_channels: int) -> nn.Module:
    """Features of each position from those before it: (B, L, in) -> (B, L, width)."""
    if config.net == "lstm":
        return CausalLSTM(in_channels, width=config.width, num_layers=config.num_layers, dropout=config.dropout)
    return CausalTransformer(
        in_channels,
        width=config.width,
        num_blocks=config.num_layers,
        num_heads=config.num_heads,
        conv=config.conv,
        dropout=config.dropout,
    )


def sequence_net(config: NetConfig, in_channels: int, out_channels: int) -> nn.Module:
    """Every position from all of them: (B, L, in) -> (B, L, out)."""
    if config.net == "lstm":
        return BiLSTM(
            in_channels, out_channels, width=config.width, num_layers=config.num_layers, dropout=config.dropout
        )
    return SequenceTransformer(
        in_channels,
        out_channels,
        width=config.width,
        num_blocks=config.num_layers,
        num_heads=config.num_heads,
        conv=config.conv,
        dropout=config.dropout,
    )
