"""Multinomial diffusion at size paper against the paper's tables, written down here a second time."""

import math
from dataclasses import replace

import pytest
import torch

from unordinal.data.cityscapes import CityscapesSource
from unordinal.data.download import Text8Source
from unordinal.data.spec import DataSpec
from unordinal.diffusion.uniform import UniformNoise
from unordinal.nets.settings import DiffusionTransformer, UNet
from unordinal.recipes import configured
from unordinal.recipes.diffusion import MultinomialSettings


@pytest.mark.parametrize(
    ("name", "num_steps", "window", "alphabet", "length"),
    [("text8/multinomial", 1000, 128, "text8", 256), ("enwik8/multinomial", 4000, 80, "bytes", 320)],
)
def test_text_is_as_published(name: str, num_steps: int, window: int, alphabet: str, length: int) -> None:
    config = configured(name, "paper")
    assert config.size == "paper"
    assert isinstance(config.data, Text8Source)  # or enwik8, which is one too
    assert (config.data.name, config.data.alphabet, config.data.length) == (name.partition("/")[0], alphabet, length)
    model = config.model
    assert isinstance(model, MultinomialSettings)
    assert isinstance(model.net, DiffusionTransformer)
    assert (model.num_steps, model.net.num_blocks, model.net.width) == (num_steps, 12, 512)
    assert (model.net.global_heads, model.net.local_heads, model.net.window, model.net.conv) == (8, 8, window, 0)
    assert (model.times, model.output) == ("importance", "leave-one-out")
    assert (config.train.batch_size, config.train.lr, config.train.epochs) == (32, 1e-4, 300)
    assert (config.optim.optimizer, config.optim.decay_per_epoch) == ("adam", 0.99)
    assert (config.optim.warmup, config.optim.weight_decay, config.optim.decay_to_zero) == (0, 0.0, False)
    assert config.optim.ema == 0


def test_the_noise_follows_the_cosine_of_the_paper_at_every_size() -> None:
    spec, t = DataSpec("tiny", 3, (8,)), torch.arange(1001)
    for size in ("tiny", "small", "paper"):
        settings = configured("text8/multinomial", size).model
        assert isinstance(settings, MultinomialSettings)
        noise = replace(settings, net=DiffusionTransformer(16, 1, 1, 0)).build(spec).noise
        assert isinstance(noise, UniformNoise)
        expected = torch.cos((t / 1000 + 0.008) / 1.008 * math.pi / 2)
        left = noise.schedule.log_alpha(t).exp()
        torch.testing.assert_close(left, (expected / expected[0]).double(), rtol=0, atol=1e-4)
        assert left[-1] > 0


def test_maps_are_trained_as_appendix_b2_says() -> None:
    config = configured("cityscapes/multinomial", "paper")
    model = config.model
    assert isinstance(model, MultinomialSettings)
    assert isinstance(model.net, UNet)
    assert (model.num_steps, model.net.width, model.net.num_levels) == (4000, 64, 4)  # the authors' code's
    assert (config.train.batch_size, config.train.lr, config.train.epochs) == (64, 1e-3, 2000)
    assert (config.optim.optimizer, config.optim.decay_per_epoch, config.optim.ema) == ("adamax", 0.995, 0.0)
    assert config.optim.warmup == 391  # ten epochs of 2500 maps in batches of 64
    assert isinstance(config.data, CityscapesSource)
    assert config.data.flips  # the one model for which section 6.2 speaks of augmentation
