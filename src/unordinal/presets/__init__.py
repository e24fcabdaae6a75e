"""Presets: functions from a size to a run's whole configuration."""

from collections.abc import Callable
from difflib import get_close_matches

from unordinal.config import RunConfig, Size
from unordinal.presets.flows import FLOW_PRESETS, toy_eight_gaussians
from unordinal.presets.maps import MAP_PRESETS
from unordinal.presets.others import OTHER_PRESETS
from unordinal.presets.text import enwik8_multinomial, text8_multinomial

PRESETS: dict[str, Callable[[Size], RunConfig]] = {
    "text8/multinomial": text8_multinomial,
    "enwik8/multinomial": enwik8_multinomial,
    **FLOW_PRESETS,
    "toy/eight-gaussians": toy_eight_gaussians,
    **OTHER_PRESETS,
    **MAP_PRESETS,
}
SIZES: tuple[Size, ...] = ("tiny", "small", "paper")


def preset(name: str, size: str = "paper") -> RunConfig:
    """The configuration a preset gives at a size.

    >>> preset("text8/multinomial").model.num_steps
    1000
    """
    if name not in PRESETS:
        near = get_close_matches(name, PRESETS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"unknown preset {name!r}{hint} (known: {', '.join(PRESETS)})")
    if size not in SIZES:
        raise ValueError(f"unknown size {size!r}; expected {', '.join(SIZES)}")
    return PRESETS[name](size)
