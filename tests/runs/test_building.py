"""A configuration from elsewhere builds no more than its weights are for."""

import dataclasses
from pathlib import Path

import pytest
from torch import nn

from unordinal.data.spec import DataSpec
from unordinal.recipes import configured
from unordinal.runs.building import build_for, limited


def test_more_weights_than_the_file_has_room_for_are_refused(tmp_path: Path) -> None:
    config, spec = configured("arm"), DataSpec("test", 5, (16,))
    weights = tmp_path / "model.safetensors"
    model = build_for(config, spec, weights)  # there is no file to compare with
    weights.write_bytes(bytes(4 * sum(p.numel() for p in model.parameters())))
    build_for(config, spec, weights)
    for name, value in (("num_blocks", 100_000), ("width", 1_000_000)):
        net = dataclasses.replace(config.model.net, **{name: value})  # type: ignore[attr-defined]
        larger = dataclasses.replace(config, model=dataclasses.replace(config.model, net=net))  # type: ignore[type-var]
        with pytest.raises(ValueError, match="is larger than its weights"):
            build_for(larger, spec, weights)
    net = dataclasses.replace(config.model.net, width=10**12)  # type: ignore[attr-defined]
    absurd = dataclasses.replace(config, model=dataclasses.replace(config.model, net=net))  # type: ignore[type-var]
    with pytest.raises(ValueError, match=r"net\.width is 1000000000000"):
        build_for(absurd, spec, weights)


def test_the_limit_ends_with_its_block() -> None:
    with pytest.raises(ValueError, match="larger than its weights"), limited(10):
        nn.Linear(4, 4)
    nn.Linear(4, 4)
