"""The probabilities of what may have been meant, against Bayes' rule over whole texts."""

import math

import pytest
import torch
from mistyping import causal_model, light_channel, random_channel

from unordinal.data.vocabularies import Vocabulary
from unordinal.tasks.channel import Channel
from unordinal.tasks.weighing import JUDGE_WEIGHT, Judge, Place, Scale, assembled, log_priors, padded

LETTERS = Vocabulary("chars", "abc")
TYPED = torch.tensor([0, 1, 2, 0, 1])
FREE = torch.zeros(5, dtype=torch.bool)


def joint(scale: Scale, channel: Channel, text: torch.Tensor) -> float:
    """Return log p(clean) + log q(typed | clean) of whole texts."""
    return float(scale.log_priors([text]) + channel.log_prob(TYPED.unsqueeze(0), text.unsqueeze(0)))


@pytest.mark.parametrize("judge", [None, Judge(causal_model(3, 12), LETTERS)])
def test_the_readings_of_one_place_have_the_probabilities_of_bayes_rule(judge: Judge | None) -> None:
    channel = random_channel(3)
    scale = Scale(causal_model(3, 12), channel, LETTERS, judge)
    place = Place(slice(1, 3), ((1, 2), (2, 1), (1,), (2, 2, 0), ()))
    (found,) = scale.weigh(TYPED, FREE, [place])
    scores = [joint(scale, channel, assembled(TYPED, [place], [reading])) for reading in place.readings]
    expected = torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=0).tolist()
    assert found == pytest.approx(dict(zip(place.readings, expected, strict=True)))


def test_a_place_is_weighed_with_the_likeliest_readings_of_the_others() -> None:
    channel = light_channel(3, 0.3)
    scale = Scale(causal_model(3, 12), channel, LETTERS)
    places = [Place(slice(0, 1), ((2,), (0,))), Place(slice(3, 5), ((1,), (0, 1), (2, 2)))]
    found = scale.weigh(TYPED, FREE, places)
    chosen = [max(known, key=known.__getitem__) for known in found]
    for index, known in enumerate(found):
        there = [[*chosen[:index], reading, *chosen[index + 1 :]] for reading in known]
        scores = [
            float(scale.log_priors([assembled(TYPED, places, some)])) + float(cost)
            for some, cost in zip(
                there, scale.log_channel(TYPED, FREE, Place(places[index].typed, tuple(known))).tolist(), strict=True
            )
        ]
        expected = torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=0).tolist()
        assert list(known.values()) == pytest.approx(expected)


def test_a_judge_reads_the_same_text_in_its_own_alphabet() -> None:
    own, second = causal_model(3, 12), causal_model(4, 12)
    capitals = Vocabulary("chars", "CBAX")
    scale = Scale(own, light_channel(3, 0.3), LETTERS, Judge(second, capitals))
    texts = [torch.tensor([0, 1, 2]), torch.tensor([2, 2])]
    in_capitals = log_priors(second, [torch.tensor([2, 1, 0]), torch.tensor([0, 0])])
    expected = JUDGE_WEIGHT * in_capitals + (1 - JUDGE_WEIGHT) * log_priors(own, texts)
    assert torch.allclose(scale.log_priors(texts), expected)


def test_texts_of_different_lengths_are_scored_together() -> None:
    for ends in (False, True):
        model = causal_model(3, 12, ends=ends)
        texts = [torch.tensor([0, 1, 2, 2]), torch.tensor([1])]
        assert model.stepper is not None
        for text, score in zip(texts, log_priors(model, texts).tolist(), strict=True):
            alone = model.stepper.log_probs(text.unsqueeze(0))
            assert score == pytest.approx(float(alone.sum()))
            assert math.isfinite(score)
    assert padded(texts).tolist() == [[0, 1, 2, 2], [1, -1, -1, -1]]
