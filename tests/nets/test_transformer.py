"""The Transformer: attention compared with a plain implementation, receptive fields, and refused settings."""

import math
from typing import Any

import pytest
import torch

from unordinal.nets.embeddings import rotary_angles, rotate
from unordinal.nets.transformer import Attention, DepthwiseConv, TimeTransformer, window_mask


def net(**settings: int) -> TimeTransformer:
    torch.manual_seed(0)
    sizes: Any = {"width": 16, "num_blocks": 2, "global_heads": 1, "local_heads": 1, "window": 3, **settings}
    made = TimeTransformer(5, **sizes)
    for p in made.parameters():  # no weight is zero, so that every part has an influence
        torch.nn.init.normal_(p, std=0.3)
    return made.double()


@pytest.mark.parametrize(("global_heads", "local_heads"), [(2, 0), (0, 2), (1, 1)])
@torch.no_grad()
def test_attention_equals_its_formula(global_heads: int, local_heads: int) -> None:
    torch.manual_seed(0)
    length, width, window = 9, 8, 2
    layer = Attention(width, global_heads=global_heads, local_heads=local_heads, window=window).double()
    h = torch.randn(2, length, width, dtype=torch.float64)
    cos, sin = (a.double() for a in rotary_angles(length, 4, h.device))
    q, k, v = layer.qkv(h).view(2, length, 3, 2, 4).unbind(2)
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    out = torch.zeros(2, length, 2, 4, dtype=torch.float64)
    for head in range(2):
        for i in range(length):
            seen = [j for j in range(length) if head < global_heads or abs(i - j) <= window]
            score = torch.stack([(q[:, i, head] * k[:, j, head]).sum(-1) / math.sqrt(4) for j in seen], -1)
            weight = torch.softmax(score, -1)
            out[:, i, head] = sum(weight[:, n, None] * v[:, j, head] for n, j in enumerate(seen))
    torch.testing.assert_close(layer(h, cos, sin), layer.out(out.reshape(2, length, width)))


@torch.no_grad()
def test_convolution_equals_its_formula() -> None:
    torch.manual_seed(0)
    layer, h = DepthwiseConv(4, 5), torch.randn(2, 10, 4)
    padded = torch.nn.functional.pad(h, (0, 0, 2, 2))
    expected = sum(padded[:, i : i + 10] * layer.weight[:, 0, 0, i] for i in range(5))
    torch.testing.assert_close(layer(h), expected)


def test_window_mask_is_symmetric_and_has_the_given_reach() -> None:
    mask = window_mask(10, 3, torch.device("cpu"))
    assert mask.sum(1).tolist() == [4, 5, 6, 7, 7, 7, 7, 6, 5, 4]
    assert torch.equal(mask, mask.T)


@torch.no_grad()
def test_local_heads_read_only_their_window() -> None:
    made = net(global_heads=0, local_heads=2, num_blocks=1)
    z = torch.zeros(1, 20, dtype=torch.long)
    changed = z.clone()
    changed[0, 10] = 1
    moved = (made(z, torch.tensor([0.5])) - made(changed, torch.tensor([0.5]))).abs().sum(-1)[0] > 1e-9
    assert moved.nonzero().flatten().tolist() == list(range(7, 14))


@torch.no_grad()
def test_every_position_and_the_time_matter_at_any_length() -> None:
    made = net(conv=3)
    for length in (1, 2, 7, 50):
        z = torch.randint(5, (1, length))
        base = made(z, torch.tensor([0.3]))
        assert base.shape == (1, length, 5)
        assert (made(z, torch.tensor([0.4])) - base).abs().max() > 1e-6
        for position in (0, length - 1):
            other = z.clone()
            other[0, position] = (other[0, position] + 1) % 5
            assert (made(other, torch.tensor([0.3])) - base).abs().amin(-1).min() > 1e-12


@torch.no_grad()
def test_examples_of_a_batch_do_not_mix() -> None:
    made, z, time = net(), torch.randint(5, (3, 12)), torch.tensor([0.1, 0.5, 0.9])
    alone = torch.cat([made(z[i : i + 1], time[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(made(z, time), alone)


def test_a_new_network_predicts_uniformly() -> None:
    made = TimeTransformer(7, width=16, num_blocks=2, global_heads=2)
    assert made(torch.randint(7, (2, 9)), torch.tensor([0.1, 1.0])).abs().max() == 0


@torch.no_grad()
def test_noise_may_have_a_class_more_than_data() -> None:
    made = net(num_input_classes=6)
    z = torch.tensor([[0, 5, 2], [0, 4, 2]])
    out = made(z, torch.tensor([0.5, 0.5]))
    assert out.shape == (2, 3, 5)
    assert float((out[0] - out[1]).abs().max()) > 1e-6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 15}, "`width` 15 must be a multiple of twice the number of heads, 2"),
        ({"conv": 4}, "must be odd"),
        ({"global_heads": 0, "local_heads": 0}, "heads, 0"),
    ],
)
def test_impossible_networks_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        net(**settings)


@pytest.mark.slow
def test_the_network_compiles_whole() -> None:
    made = net(conv=3).float()
    compiled = torch.compile(made, fullgraph=True)
    z, time = torch.randint(5, (2, 12)), torch.tensor([0.2, 0.7])
    torch.testing.assert_close(compiled(z, time), made(z, time), rtol=1e-4, atol=1e-4)
