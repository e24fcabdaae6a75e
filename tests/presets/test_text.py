"""The presets at size paper against the paper's tables, written down here a second time."""

import pytest

from unordinal.model_config import MultinomialConfig
from unordinal.presets import PRESETS, SIZES, preset


@pytest.mark.parametrize(
    ("name", "num_steps", "window", "alphabet", "length"),
    [("text8/multinomial", 1000, 128, "text8", 256), ("enwik8/multinomial", 4000, 80, "bytes", 320)],
)
def test_multinomial_is_as_published(name: str, num_steps: int, window: int, alphabet: str, length: int) -> None:
    config = preset(name)
    assert config.size == "paper"
    assert (config.data.name, config.data.alphabet, config.data.length) == (name.partition("/")[0], alphabet, length)
    model = config.model
    assert isinstance(model, MultinomialConfig)
    assert (model.num_steps, model.num_blocks, model.width) == (num_steps, 12, 512)
    assert (model.global_heads, model.local_heads, model.window, model.conv) == (8, 8, window, 0)
    assert (model.schedule, model.times, model.output) == ("cosine", "importance", "leave-one-out")
    assert (config.train.batch_size, config.train.lr, config.train.epochs) == (32, 1e-4, 300)
    assert (config.optim.optimizer, config.optim.decay_per_epoch) == ("adam", 0.99)
    assert (config.optim.warmup, config.optim.weight_decay, config.optim.decay_to_zero) == (0, 0.0, False)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_smaller_sizes_keep_the_model_they_bound(name: str) -> None:
    paper = preset(name)
    for size in SIZES[:2]:
        config = preset(name, size)
        assert (config.preset, config.size, config.data) == (name, size, paper.data)
        for part in ("num_steps", "schedule", "flow", "surjection", "net", "base"):
            assert getattr(config.model, part, None) == getattr(paper.model, part, None)
        assert config.model.width < paper.model.width
    assert preset(name, "tiny").train.minutes == 2
    assert preset(name, "small").train.minutes == 60


def test_unknown_names_list_the_known() -> None:
    with pytest.raises(ValueError, match=r"unknown preset 'text8/x'.*text8/multinomial, enwik8/multinomial, text8/arg"):
        preset("text8/x")
    with pytest.raises(ValueError, match="unknown size 'big'; expected tiny, small, paper"):
        preset("text8/multinomial", "big")
