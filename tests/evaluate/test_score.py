"""What a score says: its bits in several units, and the bits that a likelihood has at least."""

import json
import math

import pytest

from unordinal.evaluate.score import LeastBits, Score


def score(**settings: object) -> Score:
    given: dict[str, object] = {"bits_per_dim": 2.0, "standard_error": 0.1, "kind": "elbo", "split": "test"}
    given |= {"num_examples": 10, "seconds": 1.0, "method": "1 draw per example"}
    return Score(**(given | settings))  # type: ignore[arg-type]


def test_bits_of_an_example_are_those_of_all_its_positions() -> None:
    found = score(dimensions=8.0, tokens=4.0)
    assert found.bits_per_example == 16
    assert found.nats_per_example == pytest.approx(16 * math.log(2))
    assert found.bits_per_token == 4
    assert "= 4.0000 bits per token" in str(found)


def test_an_upper_bound_is_printed_only_where_the_draws_are_even() -> None:
    trusted = LeastBits(1.9, 0.1, 250.0, 0.03, 0)
    assert "1.9000 ± 0.1000 (effective number of draws at least 250, largest weight 3 %" in str(trusted)
    assert "passing this check is no proof" in str(trusted)
    uneven = LeastBits(None, None, 3.2, 0.5, 2)
    assert str(uneven).startswith("none, the draws of 2 examples are too uneven")
    assert "needed 100 and at most 5 %" in str(uneven)
    for least in (trusted, uneven):
        found = score(least=least)
        assert str(least) in str(found)
        assert json.loads(json.dumps(found.to_dict()))["least"]["num_uneven"] == least.num_uneven
    assert "upper bound on the likelihood of these tokens" in str(score(least=trusted, tokens=3.0))
    assert score().to_dict()["least"] is None
    assert "at least" not in str(score())
