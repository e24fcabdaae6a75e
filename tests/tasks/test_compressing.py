"""Archives: what comes back, what it takes, and what happens to damaged ones."""

import io
from typing import Any

import numpy as np
import pytest
from animals import animals
from hypothesis import given, settings
from hypothesis import strategies as st

from unordinal.api import fit
from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.recipes import constructors
from unordinal.tasks.compressing import Compress, Decompress, compress, decompress

SMALL: Any = {"net.width": 8, "net.num_blocks": 1, "net.num_heads": 1}
TEXT = DataSpec("text", 27, (16,), Vocabulary.text8())


MODEL: Any = constructors.arm(27, length=16, **SMALL).eval()


@given(st.one_of(st.binary(max_size=80), st.text(" abcdefghij", max_size=200).map(str.encode)))
@settings(max_examples=15, deadline=None)
def test_any_bytes_come_back(raw: bytes) -> None:
    found = compress(MODEL, TEXT, Compress(raw), checksum="c")
    assert found.is_identical
    assert decompress(MODEL, TEXT, Decompress(found.archive), checksum="c") == raw


def test_the_size_is_that_of_the_bits() -> None:
    raw = b"the quick brown fox jumps over the lazy dog " * 60
    found = compress(MODEL, TEXT, Compress(raw))
    assert abs(found.coded_bytes - found.bits / 8) <= 0.001 * found.bits / 8 + 64
    assert found.side_bytes == found.num_outside == 0
    assert len(found.archive) < found.coded_bytes + 1000


def test_tables_of_a_trained_run_come_back(tmp_path: Any) -> None:
    frame = animals(300)
    for name in ("chow-liu", "arm"):
        run = fit(name, frame, progress=False, **({"steps": 5, **SMALL} if name == "arm" else {}))
        raw = frame.iloc[:50].to_csv(index=False).encode()
        found = run.compress(raw)
        assert run.decompress(found.archive) == raw
        assert found.num_outside == 0


def test_maps_of_a_diffusion_come_back_with_any_number_of_calls() -> None:
    diffusion = constructors.absorbing(3, height=4, width=4, **{"net.width": 8, "net.num_levels": 1}).eval()
    spec = DataSpec("maps", 3, (4, 4))
    x, stream = np.random.default_rng(0).integers(0, 3, (5, 4, 4), dtype=np.uint8), io.BytesIO()
    np.save(stream, x)
    for calls in (None, 1, 16):
        found = compress(diffusion, spec, Compress(stream.getvalue(), calls=calls))
        assert decompress(diffusion, spec, Decompress(found.archive)) == stream.getvalue()


def test_models_that_cannot_code_are_refused() -> None:
    uniform = constructors.uniform(27, length=16, **{"net.width": 8, "net.num_blocks": 1, "net.global_heads": 1})
    with pytest.raises(ValueError, match="compressing needs arm, independent or chow-liu, or absorbing"):
        compress(uniform, TEXT, Compress(b"abc"))
    with pytest.raises(ValueError, match="`calls` is for diffusions"):
        compress(MODEL, TEXT, Compress(b"abc", calls=3))
