"""The text of Python's docstrings."""

import re

import numpy as np

from unordinal.data import load_data
from unordinal.data.docs import as_text8, split_by_module


def test_both_forms_have_enough_text_in_every_split() -> None:
    for alphabet, classes in (("text8", 27), ("chars", None)):
        data = load_data("docs", alphabet=alphabet)
        train, val, test = data.spec.split_sizes
        assert train > 1_000_000
        assert min(val, test) > 0.03 * train
        assert max(val, test) < 0.12 * train
        assert data.spec.num_classes == classes or 90 <= data.spec.num_classes <= 130
        assert data.notes == ()


def test_27_symbol_form_has_single_spaces() -> None:
    data = load_data("docs", alphabet="text8")
    assert data.spec.vocabulary is not None
    text = data.spec.vocabulary.decode(np.asarray(data.test.symbols))
    assert not re.search("  ", text)
    assert as_text8("Don't PANIC: 42\n\ntimes!") == "don t panic times"


def test_splits_share_no_module() -> None:
    found = {f"m{i}": [f"text of {i} " * 30] for i in range(300)}
    parts = split_by_module(found)
    owners = [set(parts[name]) for name in ("train", "val", "test")]
    assert len(owners[0] | owners[1] | owners[2]) == 300
    assert sum(map(len, owners)) == 300
    assert len(owners[1]) >= 14
    assert len(owners[2]) >= 14
