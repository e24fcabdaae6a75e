"""The predictions of a network while samples are drawn: sharpened, and refused settings."""

import pytest
import torch

from unordinal.diffusion.predictor import Predictor
from unordinal.numerics import sharpened


def test_sharpened_predictions() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    assert sharpened(logits, 1.0, 1.0) is logits
    assert torch.softmax(sharpened(logits, 0.0, 1.0), -1).tolist() == [[1, 0, 0, 0]]
    squares = logits.exp().square()
    torch.testing.assert_close(torch.softmax(sharpened(logits, 0.5, 1.0), -1), squares / squares.sum())
    kept = torch.softmax(sharpened(logits, 1.0, 0.79), -1)
    torch.testing.assert_close(kept, torch.tensor([[0.625, 0.375, 0, 0]]))
    greedy = Predictor(lambda z, t: logits.expand(len(z), 1, 4), greedy_tail=0.5)
    z, t = torch.zeros(1, 1, dtype=torch.long), torch.ones(1)
    assert torch.softmax(greedy(z, t, 0.9), -1).max().item() == pytest.approx(0.5)
    assert torch.softmax(greedy(z, t, 0.5), -1).max().item() == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top_p": 0.0}, "`top_p` must be above 0"),
        ({"temperature": -1.0}, "temperature"),
        ({"greedy_tail": 2.0}, "`greedy_tail`"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Predictor(lambda z, t: z, **settings)  # type: ignore[arg-type]
