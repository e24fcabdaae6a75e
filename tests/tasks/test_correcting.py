"""Corrections, compared with Bayes' rule on a space that can be enumerated."""

import math
from typing import Any

import pytest
import torch
from contracts import all_events
from torch import Tensor, nn

from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.diffusion import Diffusion
from unordinal.nets.classes import ClassTransformer
from unordinal.tasks.correcting import Correct, Suggestion, correct, diffusion_posterior, is_name, replaced_letters
from unordinal.tasks.reading import read

K, L = 3, 4
STATES = all_events(K, (L,))
DATA = torch.softmax(2 * torch.randn(K**L, generator=torch.Generator().manual_seed(1), dtype=torch.float64), 0)


class ExactNet(nn.Module):
    """Predicts x_0 at a position from all other positions, exactly, for data with the probabilities DATA."""

    def __init__(self, calls: list[float] | None = None):
        super().__init__()
        self.calls = [] if calls is None else calls

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        noise = time[0].double()
        self.calls.append(float(noise))
        each = torch.where(z.unsqueeze(1) == STATES, 1 - noise + noise / K, noise / K)  # (N, S, L)
        onehot = torch.nn.functional.one_hot(STATES, K).double()
        found = []
        for position in range(z.shape[1]):
            others = torch.cat([each[..., :position], each[..., position + 1 :]], -1).prod(-1)
            found.append((others * DATA) @ onehot[:, position])
        return torch.stack(found, 1).log()


def exact_model() -> Diffusion:
    return Diffusion(ExactNet(), noise=ContinuousUniformNoise(K), event_shape=(L,))


def channel(rate: float) -> Tensor:
    """q(observed | clean) for all pairs of sequences: (S clean, S observed)."""
    same = STATES.unsqueeze(1) == STATES.unsqueeze(0)
    return torch.where(same, 1 - rate, rate / (K - 1)).double().prod(-1)


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_one_pass_is_the_bayes_optimal_corrector(rate: float) -> None:
    joint = DATA.unsqueeze(1) * channel(rate)  # (clean, observed)
    posterior = joint / joint.sum(0)
    onehot = torch.nn.functional.one_hot(STATES, K).double()
    marginals = torch.einsum("co,clk->olk", posterior, onehot)
    for observed, expected in zip(STATES, marginals, strict=True):
        found = diffusion_posterior(exact_model(), observed, error_rate=rate)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_a_second_pass_combines_the_other_positions_with_what_was_observed() -> None:
    calls: list[float] = []
    model = Diffusion(ExactNet(calls), noise=ContinuousUniformNoise(K), event_shape=(L,))
    observed, rate = STATES[7], 0.2
    first = diffusion_posterior(model, observed, error_rate=rate)
    second = diffusion_posterior(model, observed, error_rate=rate, passes=2)
    seen, noise = first.argmax(-1), calls[-1]
    assert noise < calls[0]
    net_says = torch.softmax(ExactNet()(seen.unsqueeze(0), torch.tensor([noise])), -1)[0]
    likelihood = torch.where(torch.arange(K) == observed.unsqueeze(1), 1 - rate, rate / (K - 1))
    expected = net_says * likelihood / (net_says * likelihood).sum(-1, keepdim=True)
    torch.testing.assert_close(second, expected, rtol=1e-4, atol=1e-6)


def causal_model() -> AutoregressiveModel:
    torch.manual_seed(0)
    model = AutoregressiveModel(ClassTransformer(K, width=8, num_blocks=1, num_heads=1), event_shape=(L,)).double()
    nn.init.normal_(model.net.out.weight, std=1.5)
    return model.eval()


def test_suggestions_name_the_place_the_symbols_and_the_confidence() -> None:
    reading = read("Cab, c", Vocabulary("chars", " abc"))

    def posterior(x: Tensor, is_fixed: Tensor) -> Tensor:
        p = torch.nn.functional.one_hot(x, 4).double()
        p[0], p[3], p[4] = (torch.tensor(v).double() for v in ([0, 0.9, 0, 0.1], [0, 1, 0, 0], [0, 0.4, 0.3, 0.3]))
        return p

    first, second = replaced_letters(reading, ~reading.is_free, posterior)  # the comma is protected
    assert (first.start, first.old, first.new) == (0, "C", "A")
    assert first.confidence == pytest.approx(0.9)
    assert (second.start, second.old, second.new, second.confidence) == (5, "c", "a", pytest.approx(0.4))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"error_rate": 0.0}, "`error_rate` must be above 0 and below 0.667, got 0"),
        ({"error_rate": 1.0}, "must be above 0 and below 0.667, got 1"),
        ({"error_rate": math.nan}, "got nan"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        diffusion_posterior(exact_model(), STATES[0], **settings)  # type: ignore[arg-type]


SPEC = DataSpec("letters", K, (L,), Vocabulary("chars", "abc"))
SPACED = DataSpec("words", K, (L,), Vocabulary("chars", " ab"))


def test_a_request_is_answered_by_what_the_model_can_do() -> None:
    """The text of the likeliest symbols, from one pass of a diffusion or from a search."""
    text = SPEC.text_vocabulary("correct").decode(STATES[7])
    p = diffusion_posterior(exact_model(), STATES[7], error_rate=0.3)
    expected = "".join("abc"[v] for v in torch.where(p.max(-1).values >= 0.5, p.argmax(-1), STATES[7]).tolist())
    found = correct(exact_model(), SPEC, Correct(text, error_rate=0.3))
    assert found.text == expected
    model = causal_model()
    joint = model.log_prob(STATES) + channel(0.3)[:, 7].log()  # this alphabet has a channel of substitutions
    expected = "".join("abc"[v] for v in STATES[int(joint.argmax())])
    for method in (None, "beam"):
        asked = Correct(text, error_rate=0.3, threshold=0.0, method=method, beam=81)
        assert correct(model, SPEC, asked).text == expected
    for nothing in ("1, 2", "\n"):
        assert correct(causal_model(), SPACED, Correct(nothing)).text == nothing
    for given, asked, message in (
        (model, Correct(text, method="pass"), "needs a diffusion with uniform noise"),
        (exact_model(), Correct(text, method="beam"), "`method` beam needs an autoregressive model"),
        (model, Correct(text, error_rate=0.7), "must be above 0 and below 0.667, got 0.7"),
        (model, Correct(text, error_rate=5e-324), "of a search must be at least 1e-12, got 4.94"),
    ):
        with pytest.raises(ValueError, match=message):
            correct(given, SPEC, asked)
    with pytest.raises(ValueError, match="`correct` is for text; the classes of codes have no characters"):
        correct(model, DataSpec("codes", K, (L,)), Correct(text))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"passes": 0}, "`passes` must be a whole number of at least 1, got 0"),
        ({"threshold": 2.0}, "`threshold` must be a number between 0 and 1, got 2"),
        ({"threshold": math.nan}, "`threshold` must be a number between 0 and 1, got nan"),
        ({"error_rate": 0.0}, "`error_rate` must be a number above 0 and below 1, got 0"),
        ({"error_rate": 1.0}, "`error_rate` must be a number above 0 and below 1, got 1"),
        ({"beam": 0}, "`beam` must be a whole number of at least 1, got 0"),
        ({"method": "bem"}, "`method` must be one of beam, pass, got 'bem'"),
        ({"text": 5}, "`text` must be a text"),
        ({"text": ""}, "`text` must be a text with a length of at least 1, got ''"),
    ],
)
def test_impossible_requests_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Correct(**{"text": "abc", **settings})


def test_names_and_code_are_known_by_their_form() -> None:
    text = "The cat. Then Ada saw x_tol, tol(3) and NumPy"
    found = {word: is_name(text, Suggestion(text.index(word), word, "", 1.0)) for word in ("The", "cat", "Then", "saw")}
    assert not any(found.values())
    assert all(is_name(text, Suggestion(text.index(word), word, "", 1.0)) for word in ("Ada", "tol", "NumPy"))
