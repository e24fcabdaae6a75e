"""Embeddings and output layers of places, and embeddings of labels."""

from typing import Any

import pytest
import torch
from torch import nn

from unordinal.columns import Classes
from unordinal.nets import places
from unordinal.nets.classes import ClassTransformer
from unordinal.nets.places import LabelEmbedding, PlaceEmbedding, PlaceHeads, embedding_of, head_of, number_features
from unordinal.nets.sequence import DenoisingTransformer
from unordinal.nets.transformer import TimeTransformer

SIZES = (2, 3, 1)


def test_every_class_of_every_place_has_a_row_of_its_own() -> None:
    embed = PlaceEmbedding(SIZES, most=3, num_special=2, width=4)
    rows = [embed.table.weight.shape[0]]
    assert rows == [sum(SIZES) + 2 * len(SIZES)]
    seen = set()
    for place, size in enumerate(SIZES):
        for value in (*range(size), 3, 4):
            row = embed(torch.tensor([value]), place)[0]
            seen.add(tuple(row.tolist()))
            x = torch.zeros(1, 3, dtype=torch.long)
            x[0, place] = value
            assert torch.equal(embed(x)[0, place], row)
    assert len(seen) == rows[0]


@pytest.mark.parametrize("is_shared", [False, True])
def test_one_place_at_a_time_gives_what_all_give(is_shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_WEIGHTS", 0 if is_shared else 1 << 22)
    for classes in (Classes(3), *(() if is_shared else (Classes(SIZES),))):
        heads = PlaceHeads(classes, 3, width=4)
        assert heads.is_shared is is_shared
        for p in heads.parameters():
            nn.init.normal_(p)
        h = torch.randn(5, 3, 4)
        logits = heads(h)
        assert logits.shape == ((5, 6) if classes.columns else (5, 3, 3))
        for place in range(3):
            torch.testing.assert_close(heads.at(h[:, place], place), classes.at(logits, place))
    embed = PlaceEmbedding((3, 3, 3), most=3, num_special=1, width=4)
    assert embed.is_shared is is_shared
    x = torch.tensor([[0, 3, 2]])
    torch.testing.assert_close(embed(x)[:, 1], embed(x[:, 1], 1))


def test_heads_start_at_zero_and_without_places_nothing_is_new() -> None:
    assert not bool(PlaceHeads(Classes(SIZES), 3, width=4)(torch.randn(2, 3, 4)).any())
    assert type(embedding_of(Classes(5), 4, num_special=1)) is nn.Embedding
    assert isinstance(head_of(Classes(5), 4), nn.Linear)


def test_networks_with_places_tell_positions_apart_and_those_without_do_not() -> None:
    """Without convolution and with one position seen, only a place can tell where it stands."""
    torch.manual_seed(0)
    sizes: Any = {"width": 8, "num_blocks": 1, "num_heads": 1}
    z = torch.full((1, 4), 3)
    for length, tells in ((None, False), (4, True)):
        net = DenoisingTransformer(3, num_input_classes=4, length=length, **sizes)
        for p in net.parameters():
            nn.init.normal_(p)
        logits = net(z)[0]
        assert bool(((logits - logits[0]).abs() > 1e-3).any()) is tells


@pytest.mark.parametrize("classes", [3, SIZES])
def test_steps_with_places_and_labels_give_what_the_whole_pass_gives(classes: int | tuple[int, ...]) -> None:
    torch.manual_seed(0)
    net = ClassTransformer(classes, length=3, labels=(2, 4), width=8, num_blocks=2, num_heads=2, conv=3).double()
    for p in net.parameters():
        nn.init.normal_(p, std=0.5)
    x, cond = torch.tensor([[1, 2, 0], [0, 1, 0]]), torch.tensor([[0, 3], [2, 1]])
    logits = net(x, cond)
    state, before = net.init_state(2, cond), None
    for place in range(3):
        step, state = net.step(before, state)
        torch.testing.assert_close(step, net.classes.at(logits, place))
        before = x[:, place]


def test_labels_change_predictions_and_each_has_classes_for_missing_and_dropped() -> None:
    labels = LabelEmbedding((3, 2), 4)
    assert labels.table.weight.shape == (3 + 2 + 2 + 2, 4)
    nn.init.normal_(labels.table.weight)
    found = {tuple(labels(torch.tensor([[a, b]]))[0].tolist()) for a in range(5) for b in range(4)}
    assert len(found) == 20
    net = TimeTransformer(3, labels=(2,), width=8, num_blocks=1, global_heads=1)
    for p in net.parameters():
        nn.init.normal_(p, std=0.5)
    z, t = torch.zeros(2, 4, dtype=torch.long), torch.full((2,), 0.5)
    one, other = net(z, t, torch.tensor([[0], [1]]))
    assert bool(((one - other).abs() > 1e-3).any())


@pytest.mark.parametrize("kind", [DenoisingTransformer, TimeTransformer])
def test_positions_after_an_end_are_not_seen(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    heads = {"num_heads": 2} if kind is DenoisingTransformer else {"global_heads": 1, "local_heads": 1, "window": 2}
    net = kind(3, num_input_classes=5, pad=3, width=8, num_blocks=2, conv=3, **heads).double()
    for p in net.parameters():
        nn.init.normal_(p, std=0.5)
    t = torch.full((1,), 0.5, dtype=torch.float64)
    x = torch.tensor([[0, 4, 2, 1]])
    alone = net(x, t)
    padded = net(torch.cat([x, torch.full((1, 3), 3)], dim=1), t)
    torch.testing.assert_close(padded[:, :4], alone)


def test_classes_that_stand_for_numbers_share_weights_with_their_neighbours() -> None:
    features = number_features((1.0, 2.0, 3.0, 100.0), 6)
    assert features.shape[0] == 6
    assert bool((features[4:] == 0).all())  # other and missing
    near, far = ((features[0] - features[k]).norm() for k in (1, 3))
    assert float(near) < float(far)
    classes = Classes((4, 2), ((1.0, 2.0, 3.0), None))
    heads = PlaceHeads(classes, 2, width=8)
    h = torch.randn(5, 2, 8)
    assert bool((heads(h) == 0).all())  # they start at zero, as all outputs do
    for weight in heads.parameters():
        nn.init.normal_(weight)
    logits = heads(h)
    for place in range(2):
        torch.testing.assert_close(heads.at(h[:, place], place), classes.at(logits, place))
    assert list(heads.smooth) == ["1"]  # a group without numbers has no further weights


def test_outputs_start_at_the_frequencies_of_the_classes() -> None:
    heads = PlaceHeads(Classes((2, 3)), 2, width=4)
    x = torch.tensor([[0, 2], [0, 2], [0, 0], [1, 2]])
    heads.start_at(x)
    p = torch.softmax(heads.at(torch.zeros(1, 4), 1), dim=-1)
    torch.testing.assert_close(p[0], torch.tensor([1.5, 0.5, 3.5]) / 5.5)
