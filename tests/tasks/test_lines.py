"""Bits of the lines of a text."""

import pytest
import torch

from unordinal import Vocabulary, configured
from unordinal.data.spec import DataSpec
from unordinal.tasks.lines import score_lines
from unordinal.tasks.surprise import bits_of


def test_lines_keep_their_numbers_and_have_the_bits_of_their_classes() -> None:
    spec = DataSpec("toy", 27, (16,), Vocabulary.text8())
    torch.manual_seed(0)
    model = configured("arm").model.build(spec)
    lines = score_lines(model, "the cat\n\n  \nSat, on", Vocabulary.text8())
    assert [(line.number, line.text, line.symbols) for line in lines] == [
        (1, "the cat", "the cat"),
        (4, "Sat, on", "sat on"),
    ]
    alone = bits_of(model, [Vocabulary.text8().encode("sat on")])[0]
    assert lines[1].bits.bits == pytest.approx(alone.bits)
    assert set(lines[0].to_dict()) == {"line", "text", "bits", "error", "bits_per_symbol"}
    with pytest.raises(ValueError, match="empty"):
        score_lines(model, "\n \n", Vocabulary.text8())
