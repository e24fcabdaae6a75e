"""The channel is checked against every path that it can take through a short clean text."""

import itertools
from collections import defaultdict

import numpy as np
import pytest
import torch
from mistyping import light_channel, random_channel

from unordinal.tasks.channel import NO_LETTER, Channel, Paths, Typed, substitutions


def typed_texts(channel: Channel, clean: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Return the probability of every typed text, by walking through the channel one event after another."""
    k = channel.num_classes
    found: dict[tuple[int, ...], float] = defaultdict(float)
    insert, delete = channel.insert.tolist(), channel.delete.tolist()
    substitute, swap = channel.substitute.tolist(), channel.swap.tolist()

    def gap(place: int, left_out: int, text: tuple[int, ...], p: float) -> None:
        before = clean[place - 1] if place else k
        stop = 1 - sum(insert[before])
        letter(place, left_out, text, p * stop)
        for a in range(k):
            letter(place, left_out, (*text, a), p * insert[before][a] * stop)
            for b in range(k):
                letter(place, left_out, (*text, a, b), p * insert[before][a] * insert[before][b])

    def letter(place: int, left_out: int, text: tuple[int, ...], p: float) -> None:
        if place == len(clean):
            found[text] += p
            return
        y, before = clean[place], clean[place - 1] if place else k
        rest = 1.0
        if left_out < 2:
            rest -= delete[before][y]
            gap(place + 1, left_out + 1, text, p * delete[before][y])
        for other in range(k):
            if other != y:
                rest -= substitute[y][other]
                gap(place + 1, 0, (*text, other), p * substitute[y][other])
        if place + 1 < len(clean) and clean[place + 1] != y:
            z = clean[place + 1]
            rest -= swap[y][z]
            gap(place + 2, 0, (*text, z, y), p * swap[y][z])
        gap(place + 1, 0, (*text, y), p * rest)

    gap(0, 0, (), 1.0)
    return found


@pytest.mark.parametrize("clean", [(), (0,), (1, 1), (0, 1), (1, 0, 2), (0, 0, 0)])
def test_every_typed_text_has_the_probability_of_its_paths(clean: tuple[int, ...]) -> None:
    channel = random_channel(3)
    expected = typed_texts(channel, clean)
    assert sum(expected.values()) == pytest.approx(1)
    longest = max(len(text) for text in expected)
    assert longest == 3 * len(clean) + 2
    texts = sorted(expected)[:: max(1, len(expected) // 500)]
    typed = torch.tensor([[*text, *[NO_LETTER] * (longest - len(text))] for text in texts])
    found = channel.log_prob(typed, torch.tensor(clean).expand(len(texts), -1).long()).exp()
    np.testing.assert_allclose(found, [expected[text] for text in texts], rtol=1e-10)


def test_all_typed_texts_sum_to_one() -> None:
    channel, clean = random_channel(2, seed=3), torch.tensor([[1, 0]])
    texts = [text for size in range(9) for text in itertools.product(range(2), repeat=size)]
    typed = torch.tensor([[*text, *[NO_LETTER] * (8 - len(text))] for text in texts])
    assert float(channel.log_prob(typed, clean.expand(len(texts), -1)).exp().sum()) == pytest.approx(1, abs=1e-12)


def test_clean_texts_of_different_lengths_share_a_batch() -> None:
    channel = random_channel(3)
    typed = torch.tensor([[0, 1, 2], [0, 1, 2]])
    clean = torch.tensor([[0, 1, NO_LETTER, NO_LETTER], [2, 0, 1, 2]])
    alone = [channel.log_prob(typed[:1], torch.tensor([row])) for row in ([0, 1], [2, 0, 1, 2])]
    torch.testing.assert_close(channel.log_prob(typed, clean), torch.cat(alone))


def test_a_band_that_follows_the_text_changes_nothing() -> None:
    channel = light_channel(4, 0.02)
    clean = torch.randint(0, 4, (1, 40), generator=torch.Generator().manual_seed(0))
    letters = clean[0].tolist()
    typed = torch.tensor(
        [[*letters[:5], *letters[6:15], 2, 2, *letters[15:30], letters[31], letters[30], *letters[32:]]]
    )
    rows = torch.arange(1)
    paths = Paths.first(Typed(channel, typed, band=11), rows)
    for letter in clean[0]:
        paths = paths.extended(letter.view(1, 1)).chosen(rows, rows)
    torch.testing.assert_close(paths.log_finished(), channel.log_prob(typed, clean), rtol=1e-6, atol=0)


def test_fixed_positions_are_only_copied() -> None:
    channel, typed = random_channel(2), torch.tensor([[0, 1]])
    fixed = torch.tensor([[False, True]])
    assert float(channel.log_prob(typed, torch.tensor([[0, 0]]), fixed)) == -torch.inf
    whole, kept = channel.log_prob(typed, typed), channel.log_prob(typed, typed, fixed)
    assert -torch.inf < float(kept) < float(whole)


def test_too_many_errors_are_refused() -> None:
    with pytest.raises(ValueError, match="lower `error_rate`"):
        substitutions(3, 1.0)
