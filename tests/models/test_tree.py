"""Trees of columns: the truth by enumeration of rows, of trees, and of conditions."""

import itertools
import math

import numpy as np
import pytest
import torch
from contracts import chi_square_p_value

from unordinal.api import fit, load
from unordinal.models.tree import TreeModel, chow_liu, spanning_tree
from unordinal.numerics import mutual_information

SIZES = (2, 3, 2, 4)
EVENTS = torch.tensor(list(itertools.product(*(range(k) for k in SIZES))))


def rows(num: int = 600) -> np.ndarray:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, num)
    b = np.where(rng.random(num) < 0.8, a, rng.integers(0, 3, num))
    c = np.where(rng.random(num) < 0.7, a, 1 - a)
    d = np.where(rng.random(num) < 0.9, b, rng.integers(0, 4, num))
    return np.stack([a, b, c, d], axis=1)


def counted(has_edges: bool = True) -> TreeModel:
    model = TreeModel(SIZES, (4,), has_edges=has_edges).double()
    model.hooks.count(rows(), rows()[:100])
    return model


@pytest.mark.parametrize("has_edges", [True, False])
def test_probabilities_sum_to_one_and_samples_follow_them(has_edges: bool) -> None:
    model = counted(has_edges)
    p = model.log_prob(EVENTS).exp()
    assert float(p.sum()) == pytest.approx(1)
    x = model.sample(20_000, generator=torch.Generator().manual_seed(0))
    index = {tuple(row): place for place, row in enumerate(EVENTS.tolist())}
    counts = torch.bincount(torch.tensor([index[tuple(row)] for row in x.tolist()]), minlength=len(EVENTS)).double()
    is_rare = 20_000 * p < 5
    pooled, expected = (torch.cat([v[~is_rare], v[is_rare].sum().reshape(1) + 1e-9]) for v in (counts, p))
    assert chi_square_p_value(pooled, expected / expected.sum()) > 1e-4


def test_marginals_and_conditions_are_exact() -> None:
    model = counted()
    p = model.log_prob(EVENTS).exp()
    for known in ([-1, 2, -1, -1], [1, -1, -1, 3], [-1, -1, 0, -1], [0, 1, 1, -1], [-1, -1, -1, -1]):
        given = torch.tensor(known)
        fits = ((given < 0) | (given == EVENTS)).all(dim=1)
        marginal = float(p[fits].sum())
        assert float(model.log_prob_of_known(given.unsqueeze(0)).exp()) == pytest.approx(marginal)
        if -1 not in known or all(v < 0 for v in known):
            continue
        drawn = model.sample(10_000, known=known, generator=torch.Generator().manual_seed(1))
        assert bool(((given < 0) | (drawn == given)).all())
        share = (drawn.unsqueeze(1) == EVENTS[fits].unsqueeze(0)).all(-1).double().mean(0)
        conditional = p[fits] / marginal
        assert float((share - conditional).abs().max()) < 4.5 * math.sqrt(0.25 / 10_000)


def all_trees(num: int) -> list[list[tuple[int, int]]]:
    """Every spanning tree of a few columns, as edges."""
    edges = list(itertools.combinations(range(num), 2))
    found = []
    for chosen in itertools.combinations(edges, num - 1):
        group = list(range(num))
        for a, b in chosen:
            old, new = group[a], group[b]
            group = [new if g == old else g for g in group]
        if len(set(group)) == 1:
            found.append(list(chosen))
    return found


def test_the_tree_has_the_largest_sum_of_weights_of_all_16() -> None:
    assert len(all_trees(4)) == 16
    for seed in range(20):
        weight = np.random.default_rng(seed).random((4, 4))
        weight = weight + weight.T
        parents = spanning_tree(weight)
        ours = sum(weight[c, p] for c, p in enumerate(parents) if p >= 0)
        assert sum(p >= 0 for p in parents) == 3
        assert ours == pytest.approx(max(sum(weight[a, b] for a, b in tree) for tree in all_trees(4)))


def test_uncorrected_and_unsmoothed_the_tree_has_the_largest_training_likelihood() -> None:
    x = rows()

    def raw(a: int, b: int) -> float:
        bias = (len(np.unique(x[:, a])) - 1) * (len(np.unique(x[:, b])) - 1) / (2 * len(x))
        return mutual_information(x[:, a], x[:, b], (SIZES[a], SIZES[b])) + bias

    def likelihood(tree: list[tuple[int, int]]) -> float:
        """By counting: entropies of single columns less the mutual information of the edges."""
        single = sum(-(p * np.log(p)).sum() for p in (np.unique(c, return_counts=True)[1] / len(x) for c in x.T))
        return -len(x) * (single - sum(raw(a, b) for a, b in tree))

    weight = np.array([[raw(a, b) if a != b else 0.0 for b in range(4)] for a in range(4)])
    parents = spanning_tree(weight)
    ours = likelihood([(c, p) for c, p in enumerate(parents) if p >= 0])
    assert ours == pytest.approx(max(likelihood(tree) for tree in all_trees(4)))
    assert chow_liu(x, SIZES)[1] in (0, 3)


def test_mutual_information_of_independent_columns_is_not_taken_for_more() -> None:
    rng = np.random.default_rng(0)
    values = [mutual_information(rng.integers(0, 9, 300), rng.integers(0, 9, 300), (9, 9)) for _ in range(200)]
    assert abs(np.mean(values)) < 0.1 * 64 / 600  # a tenth of the bias that was taken away


def test_a_tree_is_fitted_saved_loaded_and_scored(tmp_path: object) -> None:
    x = rows()
    tree = fit("chow-liu", x, num_classes=SIZES, out=f"{tmp_path}/tree", progress=False)
    alone = fit("independent", x, num_classes=SIZES, progress=False)
    assert tree.score().bits_per_dim < alone.score().bits_per_dim - 0.1
    again = load(f"{tmp_path}/tree")
    torch.testing.assert_close(again.model.elbo(EVENTS), tree.model.elbo(EVENTS))
    assert again.sample(3, known=[1, -1, -1, -1])[:, 0].tolist() == [1, 1, 1]


def test_the_distribution_of_a_column_given_others_is_exact() -> None:
    model = counted()
    p = model.log_prob(EVENTS).exp()
    known = torch.tensor([[1, -1, -1, 2], [-1, -1, 0, -1]])
    for place, size in enumerate(SIZES):
        free_here = known.clone()
        free_here[:, place] = -1
        found = model.log_probs_given(free_here, [0, place])[1].exp()
        for row, free in enumerate(free_here):
            fits = ((free < 0) | (free == EVENTS)).all(dim=1)
            expected = torch.stack([p[fits & (EVENTS[:, place] == k)].sum() for k in range(size)]) / p[fits].sum()
            torch.testing.assert_close(found[row], expected)
