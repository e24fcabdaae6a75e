"""Trees of columns, fitted by counting: independent columns, and the tree of Chow and Liu (1968)."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unordinal.abilities import Conditional, Marginals, TrainingHooks, Visits
from unordinal.checks import sample_shape
from unordinal.model import ExactModel
from unordinal.models.visiting import by_branches
from unordinal.numerics import Rng, draw_categorical, mutual_information, sharpened
from unordinal.progress import current_watcher

SMOOTHING = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # counts that are added to each row of a table; the validation rows choose


class TreeModel(ExactModel):
    """A distribution in which each column depends on at most one other: P(x) = prod p(x_c | x_parent(c)).

    Likelihoods, marginals and conditions on any columns are exact. The tree and its tables are counted, not trained.

    Args:
        num_classes: the number of classes K, or one number for each column.
        event_shape: (L,), the number of columns.
        has_edges: whether columns depend on each other; without, they are independent.

    >>> model = TreeModel((2, 3), (2,), has_edges=True)
    >>> x = np.array([[0, 0], [1, 2]] * 20)
    >>> model.hooks.count(x, x)
    >>> model.sample(2, known=[1, -1]).tolist()
    [[1, 2], [1, 2]]
    """

    parents: Tensor
    tables: Tensor

    def __init__(self, num_classes: Any, event_shape: tuple[int, ...], *, has_edges: bool):
        super().__init__(num_classes, event_shape, has_places=True)
        self.has_edges = has_edges
        self.sizes = self.classes.columns or (self.num_classes,) * event_shape[0]
        self.register_buffer("parents", torch.full((len(self.sizes),), -1))
        self.register_buffer("tables", torch.cat([torch.full((k,), -math.log(k)) for k in self.sizes]))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        if prefix + "tables" in state_dict:  # how large the tables are depends on the tree
            self.tables = torch.empty_like(state_dict[prefix + "tables"], device=self.tables.device)
        super()._load_from_state_dict(state_dict, prefix, *args)

    @property
    def marginals(self) -> Marginals:
        return self.log_prob_of_known

    @property
    def visits(self) -> Visits:
        return partial(by_branches, self)

    @property
    def hooks(self) -> "TreeHooks":
        return TreeHooks(self)

    def log_tables(self) -> list[Tensor]:
        """Return log p(x_c | x_parent) of each column: (K_parent, K), or (1, K) without a parent."""
        found, begin = [], 0
        for size, parent in zip(self.sizes, self.parents.tolist(), strict=True):
            rows = 1 if parent < 0 else self.sizes[parent]
            found.append(self.tables[begin : begin + rows * size].view(rows, size).double())
            begin += rows * size
        return found

    def order(self) -> list[int]:
        """Return the columns, each after its parent."""
        left, done = list(range(len(self.sizes))), list[int]()
        while left:
            ready = [c for c in left if int(self.parents[c]) < 0 or int(self.parents[c]) in done]
            done, left = done + ready, [c for c in left if c not in ready]
        return done

    def unchecked_log_prob(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        total = torch.zeros(len(x), dtype=torch.float64, device=x.device)
        for column, (table, parent) in enumerate(zip(self.log_tables(), self.parents.tolist(), strict=True)):
            total = total + table[0 if parent < 0 else x[:, parent], x[:, column]]
        return total.to(self.tables.dtype)

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.unchecked_log_prob(x.long())

    def upward(self, known: Tensor) -> tuple[list[Tensor], dict[int, Tensor], Tensor]:
        """Sum the free columns out from the leaves to the roots.

        Returns:
            What the columns below and at each column say of its classes, (B, K) in log space; what each column says of
            the classes of its parent, (B, K_parent); and the log-probability (B,) of all that is known.
        """
        tables, parents = self.log_tables(), self.parents.tolist()
        said, messages = [], dict[int, Tensor]()
        for column, size in enumerate(self.sizes):
            is_allowed = (known[:, column : column + 1] < 0) | (known[:, column : column + 1] == torch.arange(size))
            said.append(torch.where(is_allowed, 0.0, -math.inf).double())
        total = torch.zeros(len(known), dtype=torch.float64)
        for column in reversed(self.order()):
            messages[column] = torch.logsumexp(tables[column].unsqueeze(0) + said[column].unsqueeze(1), dim=-1)
            if parents[column] < 0:
                total = total + messages[column][:, 0]
            else:
                said[parents[column]] = said[parents[column]] + messages[column]
        return said, messages, total

    @torch.no_grad()
    def log_prob_of_known(self, known: Tensor, *, cond: Tensor | None = None) -> Tensor:
        """Return the log-probability of the known columns, -1 elsewhere, with the others summed out: (B,)."""
        return self.upward(known.cpu())[2]

    @property
    def conditional(self) -> Conditional:
        return Conditional(self.log_probs_given)

    @torch.no_grad()
    def log_probs_given(self, known: Tensor, places: Sequence[int], *, cond: Tensor | None = None) -> list[Tensor]:
        """Return the log-probabilities (B, K) of some columns given known ones (B, L), -1 elsewhere; exactly."""
        said, messages, _ = self.upward(known.cpu())
        tables, parents = self.log_tables(), self.parents.tolist()
        found = dict[int, Tensor]()
        for column in self.order():  # from the roots to the leaves: the parent's distribution without what this said
            if parents[column] < 0:
                found[column] = tables[column] + said[column]
            else:
                above = (found[parents[column]] - messages[column]).unsqueeze(-1)  # (B, K_parent, 1)
                found[column] = torch.logsumexp(above + tables[column], dim=1) + said[column]
        return [torch.log_softmax(found[place], dim=-1) for place in places]

    @torch.no_grad()
    def sample(
        self,
        num_samples: int,
        *,
        generator: Rng = None,
        event_shape: tuple[int, ...] | None = None,
        temperature: float = 1.0,
        known: Any = None,
        **settings: Any,
    ) -> Tensor:
        """Draw samples, given the classes of `known` columns (N, L) or (L,), -1 where they are free; exactly.

        A temperature of 0 takes the likeliest class of each column given those drawn before.
        """
        shape = sample_shape(self, num_samples, event_shape, settings)
        given = torch.full((num_samples, *shape), -1)
        if known is not None:
            given = self.checked_known(known, num_samples, shape)
        said, _, _ = self.upward(given)
        tables, parents = self.log_tables(), self.parents.tolist()
        x = torch.empty(num_samples, *shape, dtype=torch.long)
        for column in self.order():
            row = torch.zeros(num_samples, dtype=torch.long) if parents[column] < 0 else x[:, parents[column]]
            logits = tables[column][row] + said[column]
            x[:, column] = draw_categorical(sharpened(logits, temperature), generator)
        current_watcher().advance(num_samples)
        return x


class TreeHooks(TrainingHooks):
    """Counts the tree and its tables from all training rows."""

    is_counted = True

    def __init__(self, model: TreeModel):
        self.model = model

    def count(self, train: np.ndarray, val: np.ndarray) -> None:
        """Find the tree from training rows (N, L), and the smoothing that suits validation rows."""
        model, rows = self.model, torch.from_numpy(np.asarray(train).astype(np.int64))
        held = torch.from_numpy(np.asarray(val).astype(np.int64))
        parents = chow_liu(train, model.sizes) if model.has_edges else [-1] * len(model.sizes)
        model.parents = torch.tensor(parents)
        best = -math.inf
        for smoothing in SMOOTHING:
            tables = torch.cat([table.flatten() for table in counted_tables(rows, parents, model.sizes, smoothing)])
            old, model.tables = model.tables, tables.log().to(model.tables.dtype)
            score = float(model.unchecked_log_prob(held).double().mean())
            if score > best:
                best = score
            else:
                model.tables = old


def counted_tables(x: Tensor, parents: list[int], sizes: tuple[int, ...], smoothing: float) -> list[Tensor]:
    """Return p(x_c | x_parent) of each column, smoothed towards its marginal, and that towards equal shares."""
    found = []
    for column, parent in enumerate(parents):
        k = sizes[column]
        alone = torch.bincount(x[:, column], minlength=k).double()
        marginal = ((alone + smoothing / k) / (alone.sum() + smoothing)).unsqueeze(0)
        if parent < 0:
            found.append(marginal)
            continue
        pairs = torch.bincount(x[:, parent] * k + x[:, column], minlength=sizes[parent] * k).double().view(-1, k)
        found.append((pairs + smoothing * marginal) / (pairs.sum(dim=1, keepdim=True) + smoothing))
    return found


def chow_liu(train: np.ndarray, sizes: tuple[int, ...]) -> list[int]:
    """Return the parent of each column, -1 for none, in the tree with the largest sum of mutual information."""
    num = len(sizes)
    rows = np.ascontiguousarray(np.asarray(train).T)
    weight = np.zeros((num, num))
    for a in range(num):
        for b in range(a + 1, num):
            weight[a, b] = weight[b, a] = mutual_information(rows[a], rows[b], (sizes[a], sizes[b]))
    return spanning_tree(weight)


def spanning_tree(weight: np.ndarray) -> list[int]:
    """Return the parents of the columns in the largest spanning forest of positive edges (Prim)."""
    num = len(weight)
    parents, is_in = [-1] * num, np.zeros(num, bool)
    gain, source = np.full(num, -np.inf), np.full(num, -1)
    for _ in range(num):
        column = int(np.where(is_in, -np.inf, np.maximum(gain, 0.0)).argmax())
        parents[column] = int(source[column]) if gain[column] > 0 else -1
        is_in[column] = True
        better = ~is_in & (weight[column] > gain)
        gain[better], source[better] = weight[column][better], column
    return parents
