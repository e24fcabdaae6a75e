"""Causal Transformers over classes: caches, segments and memories, compared with a single pass."""

from typing import Any

import pytest
import torch
from torch import Tensor

from unordinal.nets.classes import ClassTransformer, SegmentTransformer

K, L = 5, 24
SMALL: dict[str, Any] = {"width": 16, "num_blocks": 2, "num_heads": 2, "conv": 3}


def randomised(net: ClassTransformer) -> ClassTransformer:
    generator = torch.Generator().manual_seed(0)
    for parameter in net.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return net.double().eval().requires_grad_(False)


def segments(segment: int, memory: int) -> SegmentTransformer:
    net = randomised(SegmentTransformer(K, segment=segment, memory=memory, **SMALL))
    assert isinstance(net, SegmentTransformer)
    return net


def some_classes(batch: int = 3, length: int = L) -> Tensor:
    return torch.randint(K, (batch, length), generator=torch.Generator().manual_seed(1))


def stepped(net: ClassTransformer, x: Tensor) -> Tensor:
    state, last, found = net.init_state(len(x)), None, []
    for place in range(x.shape[1]):
        logits, state = net.step(last, state)
        last = x[:, place]
        found.append(logits)
    return torch.stack(found, dim=1)


def with_sums() -> ClassTransformer:
    return randomised(ClassTransformer(K, length=L, sums=6, **SMALL))


@pytest.mark.parametrize(
    "net", [randomised(ClassTransformer(K, **SMALL)), with_sums(), segments(8, 24), segments(8, 5), segments(7, 3)]
)
def test_cached_steps_equal_one_pass(net: ClassTransformer) -> None:
    x = some_classes()
    torch.testing.assert_close(stepped(net, x), net(x), rtol=1e-5, atol=1e-5)  # rotary angles are float32


@pytest.mark.parametrize(
    "net", [randomised(ClassTransformer(K, **SMALL)), with_sums(), segments(8, 24), segments(8, 5)]
)
def test_a_position_depends_only_on_those_before_it(net: ClassTransformer) -> None:
    x = some_classes(1)
    for place in (0, 7, 8, 23):
        other = x.clone()
        other[0, place] = (other[0, place] + 1) % K
        changed = (net(x) - net(other)).abs().amax(-1)[0] > 1e-12
        assert not bool(changed[: place + 1].any())
        assert place == L - 1 or bool(changed[place + 1])


def test_a_memory_of_the_whole_sequence_gives_the_full_context() -> None:
    plain, net = randomised(ClassTransformer(K, **SMALL)), segments(6, L)
    net.load_state_dict(plain.state_dict())
    x = some_classes()
    torch.testing.assert_close(net(x), plain(x), rtol=1e-9, atol=1e-9)


def test_a_short_memory_forgets() -> None:
    net = segments(4, 2)
    x = some_classes(1)
    other = x.clone()
    other[0, 0] = (other[0, 0] + 1) % K
    changed = (net(x) - net(other)).abs().amax(-1)[0] > 1e-12
    assert bool(changed[1:5].any())
    assert not bool(changed[16:].any())  # two layers reach a few segments back, not to the beginning


def test_continuing_from_a_past_equals_one_longer_sequence() -> None:
    net = segments(6, 12)
    x = some_classes(2, 36)
    whole, _ = net.normed(x, None)
    past, found = None, []
    for part in x.split(12, dim=1):
        h, past = net.normed(part, past)
        found.append(h)
    torch.testing.assert_close(torch.cat(found, dim=1), whole, rtol=1e-9, atol=1e-9)


def test_no_gradient_flows_through_the_memory() -> None:
    net = segments(6, 6).requires_grad_(True)
    embedded: list[Tensor] = []

    def keep(_module: object, _inputs: object, out: Tensor) -> None:
        out.retain_grad()
        embedded.append(out)

    handle = net.embed.register_forward_hook(keep)
    net(some_classes(1, 12))[:, 6:].sum().backward()  # only the second segment's outputs
    handle.remove()
    assert embedded[0].grad is None or float(embedded[0].grad.abs().max()) == 0
    assert embedded[1].grad is not None
    assert float(embedded[1].grad.abs().max()) > 0


def test_impossible_segments_are_refused() -> None:
    with pytest.raises(ValueError, match="a memory of at least 2 positions; got 4 and 1"):
        SegmentTransformer(K, segment=4, memory=1, **SMALL)
