"""A Transformer over blocks: what each position sees, and the cache against the whole pass."""

import pytest
import torch
from torch import Tensor

from unordinal.nets.blockwise import BlockTransformer, layout_of

K, L = 5, 11


def network(conv: int = 3, length: int | None = None, labels: tuple[int, ...] = ()) -> BlockTransformer:
    torch.manual_seed(0)
    net = BlockTransformer(K, length=length, labels=labels, width=16, num_blocks=3, num_heads=2, conv=conv).double()
    for weights in net.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    return net.eval()


def inputs(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return a clean sequence, and the same with masks."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(K, (2, L), generator=generator)
    return x, torch.where(torch.rand(2, L, generator=generator) < 0.5, K, x)


@pytest.mark.parametrize("conv", [0, 5])
@pytest.mark.parametrize("block", [1, 2, 4, 11])
def test_a_position_sees_its_own_noisy_block_and_the_clean_blocks_before(block: int, conv: int) -> None:
    net = network(conv)
    x, z = inputs()
    logits = net(z, x, block)
    for place in range(L):
        for copy in ("noisy", "clean"):
            changed = [part.clone() for part in (z, x)]
            part = changed[copy == "clean"]
            part[:, place] = (part[:, place] + 1) % K
            moved = (net(*changed, block) - logits).abs().amax(dim=(0, 2)) > 1e-9
            number = torch.arange(L) // block
            seen = number == number[place] if copy == "noisy" else number > number[place]
            assert moved.tolist() == seen.tolist(), (place, copy)


@pytest.mark.parametrize("conv", [0, 3, 5])
@pytest.mark.parametrize("block", [1, 2, 3, 4, 11])
@pytest.mark.parametrize("form", ["plain", "places", "labels"])
def test_blocks_with_a_cache_equal_the_whole_pass(form: str, block: int, conv: int) -> None:
    net = network(conv, length=L if form == "places" else None, labels=(3,) if form == "labels" else ())
    cond = torch.tensor([[1], [4]]) if form == "labels" else None
    x, z = inputs()
    whole = net(z, x, block, cond)
    state, parts = net.init_state(2, cond), []
    for start in range(0, L, block):
        parts.append(net.read(z[:, start : start + block], state))
        state = net.append(x[:, start : start + block], state)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)


def test_a_pending_block_passes_through_the_network_once() -> None:
    net = network()
    x, z = inputs()
    state, passed = net.append(x[:, :4], net.init_state(2)), []
    count = net.embed.register_forward_hook(lambda _, given, __: passed.append(given[0].shape[1]))
    for _ in range(3):
        net.read(z[:, 4:8], state)
    state = net.append(x[:, 4:8], state)
    state = net.append(x[:, 8:10], state)  # nothing was read between these two
    net.read(z[:, 10:], state)
    count.remove()
    assert passed == [8, 4, 4, 4, 3]
    assert state.place == 10


def test_rows_of_a_state_are_chosen() -> None:
    net = network(labels=(3,))
    x, z = inputs()
    cond, index = torch.tensor([[1], [4]]), torch.tensor([1, 1, 0])
    state = net.append(x[:, :4], net.init_state(2, cond))
    expected = net.read(z[:, 4:8], state)[index]
    torch.testing.assert_close(net.read(z[index, 4:8], net.select_state(state, index)), expected)


def test_gradients_reach_every_weight() -> None:
    net = network()
    x, z = inputs()
    net(z, x, 3).square().sum().backward()
    for name, weights in net.named_parameters():
        assert weights.grad is not None, name
        assert weights.grad.abs().sum() > 0, name


def test_the_last_block_may_be_shorter() -> None:
    layout = layout_of(5, 2, torch.device("cpu"))
    assert layout.same.sum(dim=1).tolist() == [2, 2, 2, 2, 1]
    assert layout.earlier.sum(dim=1).tolist() == [0, 0, 2, 2, 4]
