"""A module is initialised from its first batch only once, also after its weights were loaded or copied."""

import copy

import torch

from unordinal.flows.actnorm import ActNorm
from unordinal.flows.bijection import Chain


def batch(seed: int) -> torch.Tensor:
    return 3 * torch.randn(64, 5, 2, generator=torch.Generator().manual_seed(seed)) + seed


def test_the_flag_equals_the_buffer() -> None:
    norm = ActNorm(2).train()
    assert norm.init_flag.is_pending
    assert not bool(norm.is_started)
    norm(batch(0))
    assert not norm.init_flag.is_pending
    assert bool(norm.is_started)


def test_loaded_weights_set_the_flag() -> None:
    """Inside another module, for both values of the flag, and also where the loaded tensors replace the old ones."""
    norm, other = ActNorm(2).train(), ActNorm(2).train()
    chain = Chain([other]).train()
    unused = copy.deepcopy(chain.state_dict())
    norm(batch(0))
    started = Chain([norm]).state_dict()
    for assign in (False, True):
        chain.load_state_dict(copy.deepcopy(started), assign=assign)
        chain(batch(1))  # is not initialised again
        assert torch.equal(other.shift, norm.shift)
        chain.load_state_dict(copy.deepcopy(unused), assign=assign)
        z, _ = chain(batch(1))  # is initialised
        torch.testing.assert_close(z.mean((0, 1)), torch.zeros(2), atol=1e-5, rtol=0)


def test_copies_are_initialised_independently() -> None:
    norm = ActNorm(2).train()
    other = copy.deepcopy(norm)
    norm(batch(0))
    assert other.init_flag.is_pending
    z, _ = other(batch(1))
    torch.testing.assert_close(z.mean((0, 1)), torch.zeros(2), atol=1e-5, rtol=0)
    again = copy.deepcopy(norm)
    again(batch(1))
    assert torch.equal(again.shift, norm.shift)
    again.load_state_dict(ActNorm(2).state_dict())
    assert again.init_flag.is_pending
    assert not norm.init_flag.is_pending
