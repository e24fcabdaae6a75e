"""A start from the first batch is taken once, and known after weights were loaded or copied."""

import copy

import torch

from unordinal.flows.actnorm import ActNorm
from unordinal.flows.bijection import Chain


def batch(seed: int) -> torch.Tensor:
    return 3 * torch.randn(64, 5, 2, generator=torch.Generator().manual_seed(seed)) + seed


def test_the_flag_says_what_the_buffer_says() -> None:
    norm = ActNorm(2).train()
    assert norm.init_flag.is_pending
    assert not bool(norm.is_started)
    norm(batch(0))
    assert not norm.init_flag.is_pending
    assert bool(norm.is_started)


def test_loaded_weights_say_whether_they_have_started() -> None:
    """Inside another module, in both directions, and also where the tensors themselves are taken over."""
    norm, other = ActNorm(2).train(), ActNorm(2).train()
    chain = Chain([other]).train()
    unused = copy.deepcopy(chain.state_dict())
    norm(batch(0))
    started = Chain([norm]).state_dict()
    for assign in (False, True):
        chain.load_state_dict(copy.deepcopy(started), assign=assign)
        chain(batch(1))  # does not start again
        assert torch.equal(other.shift, norm.shift)
        chain.load_state_dict(copy.deepcopy(unused), assign=assign)
        z, _ = chain(batch(1))  # does
        torch.testing.assert_close(z.mean((0, 1)), torch.zeros(2), atol=1e-5, rtol=0)


def test_copies_start_on_their_own() -> None:
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
