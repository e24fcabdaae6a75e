"""Write examples as bits with a model's own probabilities, and read them back (range coding, extra `compress`).

The writer and the reader run the same generator of probabilities, in the same batches and in float64, and round the
logits, so that both have the same numbers. A row of the batch that has ended, or that is shorter than others, is not
coded.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unordinal.model import CategoricalModel

ROUNDING = 2.0**16  # logits are multiples of 1 / ROUNDING
LEAST_LOGIT = -30.0  # below the largest one; less likely classes are as likely as this
MOST_NUMBERS = 1 << 22  # probabilities that are passed to the coder at a time

Exchange = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Writes or reads the classes (M,) of cells, given which cells of the example they are and probabilities (M, K)."""


def coder_package() -> Any:
    """Return the package constriction; raise a ValueError that says how to install it."""
    try:
        import constriction
    except ImportError as error:
        raise ValueError("compressing needs the package constriction: pip install 'unordinal[compress]'") from error
    return constriction


def written(model: CategoricalModel, x: Tensor, sizes: Tensor, calls: int | None = None) -> tuple[bytes, float]:
    """Return examples (N, *D) as bytes, and their bits under the model.

    Args:
        model: a model with `visits`, in float64.
        x: classes; what comes after the end of a row has no meaning.
        sizes: how many positions of each row are coded, (N,).
        calls: the network calls of a diffusion; None for its default.
    """
    stream = coder_package().stream
    encoder, family = stream.queue.RangeEncoder(), stream.model.Categorical(perfect=False)
    flat, bits = x.flatten(1).numpy(), 0.0

    def write(cells: np.ndarray, p: np.ndarray) -> np.ndarray:
        nonlocal bits
        symbols = flat[cells[:, 0], cells[:, 1]].astype(np.int32)
        bits -= float(np.log2(p[np.arange(len(p)), symbols]).sum())
        encoder.encode(symbols, family, p)
        return symbols

    exchange_all(model, sizes, write, calls)
    return encoder.get_compressed().astype("<u4").tobytes(), bits


def read(model: CategoricalModel, data: bytes, sizes: Tensor, calls: int | None = None) -> Tensor:
    """Return the examples (N, *D) that `written` made bytes of; 0 after the end of a row, or the class of an end."""
    stream = coder_package().stream
    words = np.frombuffer(data, "<u4").astype(np.uint32)
    decoder, family = stream.queue.RangeDecoder(words), stream.model.Categorical(perfect=False)

    def take(_: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.asarray(decoder.decode(family, p))

    return exchange_all(model, sizes, take, calls)


@torch.no_grad()
def exchange_all(model: CategoricalModel, sizes: Tensor, exchange: Exchange, calls: int | None) -> Tensor:
    """Visit all positions of examples, exchange their classes, and return them (N, *D)."""
    num, length, k = len(sizes), model.event_shape.numel(), model.num_classes
    assert model.visits is not None
    x = torch.full((num, length), k if model.ends else 0)
    is_open = torch.ones(num, dtype=torch.bool)  # until an end
    visits = model.visits(num, **({} if calls is None else {"calls": calls}))
    visit = next(visits)
    while True:
        is_coded = (visit.places < sizes.unsqueeze(1)) & is_open.unsqueeze(1)  # (N, P)
        rows, columns = torch.nonzero(is_coded, as_tuple=True)
        cells = torch.stack([rows, visit.places[columns]], dim=1).numpy()
        step = max(1, MOST_NUMBERS // visit.logits.shape[-1])
        for begin in range(0, len(rows) if visit.logits.shape[-1] > 1 else 0, step):  # a single class needs no bits
            part = slice(begin, begin + step)
            symbols = exchange(cells[part], probabilities(visit.logits[rows[part], columns[part]]))
            x[rows[part], visit.places[columns[part]]] = torch.from_numpy(symbols.astype(np.int64))
        if model.ends:
            is_open &= x[:, visit.places[-1]] != k
        if model.ends and not bool(is_open.any()):
            break
        try:
            visit = visits.send(x[:, visit.places])
        except StopIteration:
            break
    return x.view(num, *model.event_shape)


def probabilities(logits: Tensor) -> np.ndarray:
    """Return probabilities (M, K) in float64 that small differences of logits do not change."""
    rounded = torch.round(torch.log_softmax(logits.double().cpu(), dim=-1) * ROUNDING) / ROUNDING
    return torch.softmax(rounded.clamp(min=LEAST_LOGIT), dim=-1).numpy()
