"""Layers for examples whose positions are places with a meaning of their own, and for labels given with examples.

Columns of a table and aligned sites of DNA are places; the positions of a text only have neighbours. A network with
places has an embedding and an output layer for each place. If they would have too many weights, the places share them,
and each has a vector that is added to its embedding, and a scale and a bias of its own in the output. Classes that
stand for numbers also share weights with their neighbours, through smooth features of the numbers.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.columns import Classes, Numbers
from unordinal.nets.linear import zero_linear

MOST_WEIGHTS = 1 << 22  # of the embeddings, or of the output layers, of all places together
NUM_WAVES, NUM_BUMPS = 8, 15
NUM_FEATURES = 2 + 2 * NUM_WAVES + NUM_BUMPS
HALF_A_COUNT = 0.5  # is added to the count of each class, so that its logarithm is finite


def number_features(numbers: tuple[float, ...] | None, size: int) -> Tensor:
    """Return smooth features of the numbers that classes stand for: (size, NUM_FEATURES); zero for other classes.

    They are the number itself, its logarithm, and waves and bumps along the ranks of the numbers. Waves that are too
    short for the number of ranks are zero.
    """
    found = torch.zeros(size, NUM_FEATURES)
    if numbers is not None:
        values = torch.tensor(numbers, dtype=torch.float64)
        rank = torch.linspace(0, 1, len(values)).unsqueeze(1)
        z = ((values - values.mean()) / values.std().clamp(min=1e-300)).float().unsqueeze(1)
        waves = 2.0 ** torch.arange(NUM_WAVES)  # half periods over all ranks
        angles, is_long = rank * torch.pi * waves, waves < len(values)
        bumps = torch.exp(-(((rank - torch.linspace(0, 1, NUM_BUMPS)) * NUM_BUMPS) ** 2))
        parts = [z, z.sign() * z.abs().log1p(), angles.sin() * is_long, angles.cos() * is_long, bumps]
        found[: len(values)] = torch.cat(parts, dim=1)
    return found


class PlaceEmbedding(nn.Module):
    """Embeddings of the class of each place: (B, L) -> (B, L, width).

    Args:
        sizes: the number of classes of each place. The places of a causal network read the place before them.
        most: the first special class; special classes, such as a mask, are the same for all places.
        num_special: the number of special classes.
        width: the number of channels.
        numbers: the numbers that the classes of each place stand for, or None; empty if no place has any.

    >>> PlaceEmbedding((2, 3), most=3, num_special=1, width=4)(torch.tensor([[1, 3]])).shape
    torch.Size([1, 2, 4])
    """

    offsets: Tensor
    sizes: Tensor
    features: Tensor

    def __init__(self, sizes: tuple[int, ...], *, most: int, num_special: int, width: int, numbers: Numbers = ()):
        super().__init__()
        rows = torch.tensor([size + num_special for size in sizes])
        self.is_shared, self.most = int(rows.sum()) * width > MOST_WEIGHTS, most
        self.register_buffer("offsets", rows.cumsum(0) - rows, persistent=False)
        self.register_buffer("sizes", torch.tensor(sizes), persistent=False)
        self.table = nn.Embedding(most + num_special if self.is_shared else int(rows.sum()), width)
        self.place = nn.Parameter(torch.randn(len(sizes), width)) if self.is_shared else None
        self.smooth = None
        if any(numbers) and not self.is_shared:
            every = [number_features(*both) for both in zip(numbers, rows.tolist(), strict=True)]
            self.register_buffer("features", torch.cat(every), persistent=False)
            self.smooth = nn.Parameter(0.3 * torch.randn(NUM_FEATURES, width))

    def forward(self, x: Tensor, place: int | None = None) -> Tensor:
        """Embed the classes of all places (B, L), or those of one place (B,)."""
        at = slice(None) if place is None else place
        if self.place is not None:
            return self.table(x) + self.place[at]
        row = self.offsets[at] + torch.where(x >= self.most, self.sizes[at] + x - self.most, x)
        if self.smooth is None:
            return self.table(row)
        return F.embedding(row, self.table.weight + self.features @ self.smooth)


class PlaceHeads(nn.Module):
    """Output layers of all places: (B, L, width) -> logits (B, L, K), or ragged ones (B, sum of K).

    Args:
        classes: the classes of the places.
        length: the number of places L.
        width: the number of input channels.

    >>> PlaceHeads(Classes((2, 3)), 2, width=4)(torch.zeros(1, 2, 4)).shape
    torch.Size([1, 5])
    """

    is_reversed = False  # whether the network reads rows in reverse

    def __init__(self, classes: Classes, length: int, *, width: int):
        super().__init__()
        self.classes = classes
        total = sum(classes.columns) or length * classes.most
        self.is_shared = total * width > MOST_WEIGHTS and not classes.columns
        if self.is_shared:
            self.linear = zero_linear(width, classes.most)
            self.scale = nn.Parameter(torch.ones(length, width))
            self.bias = nn.Parameter(torch.zeros(length, classes.most))
            return
        groups = classes.groups or [(classes.most, list(range(length)), 0)]
        self.members = [members for _, members, _ in groups]
        self.weights = nn.ParameterList(torch.zeros(len(members), width, k) for k, members, _ in groups)
        self.biases = nn.ParameterList(torch.zeros(len(members), k) for k, members, _ in groups)
        self.smooth = nn.ParameterDict()  # of the groups of places whose classes stand for numbers
        for index, (k, members, _) in enumerate(groups):
            numbers = [classes.numbers[place] for place in members] if classes.numbers else []
            if any(numbers):
                features = torch.stack([number_features(part, k) for part in numbers])
                self.register_buffer(f"features_{index}", features, persistent=False)  # (places, K, features)
                self.smooth[str(index)] = torch.zeros(len(members), width, NUM_FEATURES)

    def weight(self, group: int) -> Tensor:
        """Return the weights of a group of places, (places, width, K)."""
        if str(group) not in self.smooth:
            return self.weights[group]
        return self.weights[group] + self.smooth[str(group)] @ self.get_buffer(f"features_{group}").mT

    def forward(self, h: Tensor) -> Tensor:
        if self.is_shared:
            return self.linear(h * self.scale) + self.bias
        parts = []
        for group, (members, bias) in enumerate(zip(self.members, self.biases, strict=True)):
            part = h[:, members] if self.classes.columns else h
            parts.append(torch.einsum("blc,lck->blk", part, self.weight(group)) + bias)
        return torch.cat([part.flatten(1) for part in parts], dim=1) if self.classes.columns else parts[0]

    @torch.no_grad()
    def start_at(self, x: Tensor) -> None:
        """Let the biases be the log-frequencies of the classes of rows (N, L), so that training begins there."""
        x = x.flip(1) if self.is_reversed else x
        places, biases = [list(range(x.shape[1]))], [self.bias] if self.is_shared else []
        if not self.is_shared:
            places, biases = self.members, list(self.biases)
        for members, bias in zip(places, biases, strict=True):
            for rank, place in enumerate(members):
                counts = torch.bincount(x[:, place], minlength=bias.shape[1]).to(bias) + HALF_A_COUNT
                bias[rank] = (counts / counts.sum()).log()

    def at(self, h: Tensor, place: int) -> Tensor:
        """Return the logits of one place, (B, width) -> (B, K)."""
        if self.is_shared:
            return self.linear(h * self.scale[place]) + self.bias[place]
        group = next(index for index, members in enumerate(self.members) if place in members)
        rank = self.members[group].index(place)
        return h @ self.weight(group)[rank] + self.biases[group][rank]


class LabelEmbedding(nn.Module):
    """The sum of the embeddings of the labels given with each example: (B, J) -> (B, width). It starts at zero.

    Each label has two classes more than its own: one for a missing label and one for a label that is dropped.

    Args:
        sizes: the number of classes of each label.
        width: the number of channels.

    >>> LabelEmbedding((3, 2), 4)(torch.tensor([[0, 2]])).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    """

    offsets: Tensor

    def __init__(self, sizes: tuple[int, ...], width: int):
        super().__init__()
        self.sizes = tuple(sizes)
        rows = torch.tensor([size + 2 for size in sizes])
        self.register_buffer("offsets", rows.cumsum(0) - rows, persistent=False)
        self.table = nn.Embedding(int(rows.sum()), width)
        nn.init.zeros_(self.table.weight)

    def forward(self, cond: Tensor) -> Tensor:
        return self.table(cond + self.offsets).sum(dim=1)


def label_embedding(labels: tuple[int, ...], width: int) -> LabelEmbedding | None:
    """Return the embedding of labels; None if there are none."""
    return LabelEmbedding(labels, width) if labels else None


def embedding_of(
    classes: Classes, width: int, *, num_special: int, length: int | None = None, is_causal: bool = False
) -> Any:
    """Return the embedding of classes: the same at all positions, or with a `length` one for each place."""
    if length is None:
        return nn.Embedding(classes.most + num_special, width)
    sizes = classes.columns or (classes.most,) * length
    numbers = classes.numbers
    if is_causal:  # the first place of a causal network reads a special class
        sizes, numbers = (0, *sizes[:-1]), (None, *numbers[:-1]) if numbers else ()
    return PlaceEmbedding(sizes, most=classes.most, num_special=num_special, width=width, numbers=numbers)


def head_of(classes: Classes, width: int, *, length: int | None = None) -> Any:
    """Return an output layer that starts at zero: the same at all positions, or with a `length` one for each place."""
    return zero_linear(width, classes.most) if length is None else PlaceHeads(classes, length, width=width)
