"""Embeddings of the last few classes."""

import itertools

import pytest
import torch

from unordinal.nets.classes import ClassTransformer
from unordinal.nets.ngrams import NgramEmbedding


def test_contexts_have_rows_of_their_own_where_there_is_room() -> None:
    net = NgramEmbedding(3, 4, orders=(2,), rows=9, row_width=5)
    contexts = torch.tensor(list(itertools.product(range(3), repeat=2)))
    assert sorted(net.row_of(contexts, 2).flatten().tolist()) == list(range(9))


def test_hashed_contexts_spread_over_all_rows_and_are_repeated() -> None:
    net = NgramEmbedding(7, 4, orders=(5,), rows=1024, row_width=2)
    contexts = torch.tensor(list(itertools.product(range(7), repeat=5)))
    rows = net.row_of(contexts, 5).flatten()
    counts = torch.bincount(rows, minlength=1024)
    assert len(counts) == 1024
    assert counts.max() < 2.5 * len(contexts) / 1024
    assert torch.equal(rows, net.row_of(contexts, 5).flatten())


def test_a_row_depends_on_its_context_alone() -> None:
    torch.manual_seed(0)
    net = NgramEmbedding(6, 4, orders=(2, 4), rows=100, row_width=3)
    for table in net.tables:
        torch.nn.init.normal_(table.get_parameter("weight"))
    before = torch.randint(6, (2, 12))
    found = net(before)
    assert found.shape == (2, 9, 4)
    for place in range(9):
        assert torch.allclose(net(before[:, place : place + 4])[:, 0], found[:, place], atol=1e-6)


def test_step_by_step_as_all_at_once() -> None:
    torch.manual_seed(0)
    ngrams = NgramEmbedding(6, 16, orders=(2, 3, 5), rows=50, row_width=4)
    net = ClassTransformer(5, width=16, num_blocks=2, num_heads=2, conv=3, ngrams=ngrams).double()
    for table in ngrams.tables:
        torch.nn.init.normal_(table.get_parameter("weight"))
    torch.nn.init.normal_(net.out.weight)
    x = torch.randint(5, (3, 9))
    whole, state, last = net(x), net.init_state(3), None
    for place in range(9):
        logits, state = net.step(last, state)
        assert torch.allclose(logits, whole[:, place])
        last = x[:, place]
    changed = x.clone()
    changed[:, 6] = (changed[:, 6] + 1) % 5
    assert torch.equal(net(changed)[:, :7], whole[:, :7])
    assert not torch.allclose(net(changed)[:, 7], whole[:, 7])


def test_it_starts_without_influence() -> None:
    assert not NgramEmbedding(5, 8, orders=(3,), rows=10, row_width=2)(torch.zeros(1, 6, dtype=torch.long)).any()


@pytest.mark.parametrize("wrong", [{"orders": ()}, {"orders": (0,)}, {"orders": (3, 3)}, {"rows": 0}, {"row_width": 0}])
def test_what_makes_no_table_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="n-grams need different orders"):
        NgramEmbedding(5, 8, **{"orders": (2,), "rows": 10, "row_width": 2, **wrong})  # type: ignore[arg-type]
