"""Bits of the lines of a text, or of the examples of an array."""

from typing import Any

import numpy as np
import pytest
import torch

from unordinal import Vocabulary, configured
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel
from unordinal.tasks.lines import Measure, measure
from unordinal.tasks.surprise import bits_of, order_1_bits, typical_bits, xz_bits

SPEC = DataSpec("toy", 27, (16,), Vocabulary.text8())


def made(name: str = "arm", seed: int = 0) -> CategoricalModel:
    torch.manual_seed(seed)
    model = configured(name).model.build(SPEC)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return model


def test_lines_keep_their_numbers_and_have_the_bits_of_their_classes() -> None:
    model = made()
    lines = measure(model, SPEC, Measure("the cat\n\n  \nSat, on"))
    assert [(line.number, line.text, line.symbols) for line in lines] == [
        (1, "the cat", "the cat"),
        (4, "Sat, on", "sat on"),
    ]
    assert [line.bits.num_altered for line in lines] == [0, 3]  # S, the comma and the space behind it
    alone = bits_of(model, [Vocabulary.text8().encode("sat on")])[0]
    assert lines[1].bits.bits == pytest.approx(alone.bits)
    assert lines[1].score == pytest.approx(alone.per_symbol)
    assert set(lines[0].to_dict()) == {
        *("line", "text", "bits", "error", "bits_per_symbol", "score", "symbols", "num_altered", "positions")
    }
    nothing: list[Any] = ["\n \n", " ", []]
    for empty in nothing:
        with pytest.raises(ValueError, match="empty"):
            measure(model, SPEC, Measure(empty))


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_examples_may_be_texts_or_classes(kind: Any) -> None:
    model, rows = made(), [[1, 2, 3, 4], [5, 6, 7, 8]]
    lines = measure(model, SPEC, Measure(kind(rows)))
    assert [line.symbols for line in lines] == ["abcd", "efgh"]
    texts = measure(model, SPEC, Measure(["abcd", "efgh"]))
    assert [line.bits.bits for line in lines] == pytest.approx([line.bits.bits for line in texts])
    mixed = measure(model, SPEC, Measure(["abcd", torch.tensor([5, 6, 7, 8])]))
    assert [line.bits.bits for line in mixed] == pytest.approx([line.bits.bits for line in texts])
    with pytest.raises(ValueError, match="x has class 99"):
        measure(model, SPEC, Measure([[1, 99]]))
    with pytest.raises(ValueError, match="`bits` is for text; the classes of codes have no characters"):
        measure(model, DataSpec("codes", 27, (16,)), Measure("abcd"))


def test_references_are_subtracted_and_typical_lines_are_near_what_the_model_expects() -> None:
    model, text = made(), "the cat sat\non the mat\naaaaaaaaaaaaaaaaaaaaaaaa"
    plain = measure(model, SPEC, Measure(text))
    examples = [Vocabulary.text8().encode(line) for line in text.splitlines()]
    other = made(seed=1)
    expected = {
        "counts": order_1_bits(examples, 27),
        "xz": [xz_bits(x) for x in examples],
        "run": [b.bits for b in bits_of(other, examples)],
    }
    for against, reference in expected.items():
        found = measure(model, SPEC, Measure(text, against=against), other if against == "run" else None)
        for line, before, bits in zip(found, plain, reference, strict=True):
            assert line.bits == before.bits
            assert line.score == pytest.approx((before.bits.bits - bits) / before.bits.num_symbols)
    typical = measure(model, SPEC, Measure(text, typical=True, seed=3))
    usual = typical_bits(model, 3)
    first = abs(plain[0].bits.bits - float(usual[:11].sum())) / 11
    assert typical[0].score == pytest.approx(first)
    assert all(line.score >= 0 for line in typical)
    with pytest.raises(ValueError, match="`typical` needs an autoregressive model"):
        measure(made("absorbing"), SPEC, Measure(text, typical=True))
    with pytest.raises(ValueError, match="give `against` or `typical`, not both"):
        Measure(text, against="xz", typical=True)
