"""Embeddings of time and of position, compared with their formulas."""

import math

import torch

from unordinal.nets.embeddings import TimeEmbedding, rotary_angles, rotary_angles_at, rotate, sinusoids


def test_rotary_scores_depend_on_distance_alone() -> None:
    torch.manual_seed(0)
    q, k = torch.randn(8, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
    cos, sin = (a.double() for a in rotary_angles(40, 8, q.device))
    turned_q, turned_k = (rotate(h.expand(40, 1, 8), cos, sin)[:, 0] for h in (q, k))
    scores = turned_q @ turned_k.T
    for distance in (0, 1, 7):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-5, atol=1e-5)
    assert (scores[0, 1] - scores[0, 2]).abs() > 1e-3


def test_sinusoids_are_cos_and_sin() -> None:
    h = sinusoids(torch.tensor([2.0]), 4, longest_period=100.0)
    expected = [math.cos(2), math.cos(0.2), math.sin(2), math.sin(0.2)]
    torch.testing.assert_close(h, torch.tensor([expected]))


def test_angles_at_given_positions_equal_those_of_all() -> None:
    places = torch.tensor([0, 7, 3])
    for some, every in zip(rotary_angles_at(places, 8), rotary_angles(10, 8, places.device), strict=True):
        assert torch.equal(some, every[places])


@torch.no_grad()
def test_neighbouring_steps_of_a_long_chain_have_different_embeddings() -> None:
    torch.manual_seed(0)
    embed = TimeEmbedding(16, 32)
    found = embed(torch.arange(1, 1001) / 1000)
    assert found.shape == (1000, 16)
    assert float((found[1:] - found[:-1]).norm(dim=-1).min()) > 1e-3
