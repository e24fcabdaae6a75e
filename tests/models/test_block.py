"""One network for several sizes of blocks: its ends are an autoregressive model and a masked diffusion."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from blocks import K, L, built, condition, examples, of_all_orders
from torch import Tensor

import unordinal
from unordinal.evaluate.audit import audit
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.block import BlockModel
from unordinal.models.blockwise import BlockDiffusion
from unordinal.models.diffusion import Diffusion
from unordinal.nets.blockwise import BlockTransformer
from unordinal.nets.embeddings import rotary_angles
from unordinal.nets.sequence import make_blocks
from unordinal.nets.settings import Transformer

FORMS = ["plain", "ends", "labels", "ends and labels", "places"]


def model_of(form: str = "plain", block: int | None = 2, **settings: Any) -> BlockModel:
    small = built(form, 2)
    given: Any = {"event_shape": (L,), "ends": small.ends, "labels": small.labels}
    return BlockModel(small.net, block=block, **given, **settings).eval()


def causal_logits(net: BlockTransformer, x: Tensor) -> Tensor:
    """The same weights in causal layers, which read the classes before a position, and the mask in its place."""
    kernel = 2 * net.reach + 1
    sizes = Transformer(net.width, len(net.blocks), 2, conv=kernel)
    causal = make_blocks(sizes, is_causal=True).double()
    state = copy.deepcopy(net.blocks.state_dict())
    for name, weight in state.items():
        if name.endswith("conv.weight"):  # what lies ahead of the centre is gone
            state[name] = F.pad(weight[..., : kernel // 2 + 1], (kernel // 2, 0))
    causal.load_state_dict(state)
    found = []
    for place in range(x.shape[1]):
        read = torch.cat([x[:, :place], torch.full((len(x), 1), net.mask)], dim=1)
        h = net.embed(read)
        cos, sin = (a.double() for a in rotary_angles(place + 1, net.head_channels, x.device))
        for layer in causal:
            h = layer(h, cos, sin)
        found.append(net.out(F.layer_norm(h, h.shape[-1:]))[:, -1])
    return torch.stack(found, dim=1)


@torch.no_grad()
def test_at_block_1_the_score_is_that_of_a_causal_model() -> None:
    model, x = model_of("plain", 1), examples("plain")
    log_p = torch.log_softmax(causal_logits(model.net, x), dim=-1).gather(2, x.unsqueeze(2)).squeeze(2)
    torch.testing.assert_close(model.elbo(x), log_p.sum(dim=1))


@torch.no_grad()
@pytest.mark.parametrize("form", FORMS)
def test_the_autoregressive_end_is_exact(form: str) -> None:
    model, x = model_of(form, 1), examples(form)
    assert model.is_exact
    log_p = model.log_prob(x, **({} if "labels" not in form else {"cond": torch.tensor([1, 2]).expand(len(x), -1)}))
    torch.testing.assert_close(log_p.exp().sum(), torch.tensor(1.0, dtype=torch.float64))
    blockwise = built(form, 1)
    torch.testing.assert_close(log_p, blockwise.log_prob_of_order(x, torch.arange(L), **condition(form)))
    assert model.stepper is not None
    cond = condition(form).get("cond")
    steps = model.stepper.log_probs(x, None if cond is None else cond.expand(len(x), -1))
    torch.testing.assert_close(steps.sum(dim=1), log_p)
    state, before, total = model.stepper.first_state(len(x), cond), None, torch.zeros(len(x), dtype=torch.float64)
    for place in range(L):
        found, state = model.stepper.next_log_probs(before, state)
        before = x[:, place]
        if "ends" not in form:
            total += found.gather(1, before.unsqueeze(1)).squeeze(1)
    if "ends" not in form:
        torch.testing.assert_close(total, log_p)


@torch.no_grad()
def test_the_other_end_is_a_masked_diffusion() -> None:
    model, x = model_of("plain", None), examples("plain")
    whole = model.at("all")
    assert isinstance(whole, Diffusion)
    assert model.orders is not None
    for order in (torch.arange(L), torch.tensor([3, 0, 4, 2, 1])):
        torch.testing.assert_close(model.orders(x, order), built("plain", L).log_prob_of_order(x, order))
    drawn = model.sample(20, known=torch.tensor([1, -1, -1, 0, -1]))
    assert drawn[:, [0, 3]].tolist() == [[1, 0]] * 20


def test_every_size_shares_the_weights() -> None:
    model = model_of("plain", 2)
    kinds = {1: AutoregressiveModel, 2: BlockDiffusion, L: Diffusion}
    for size, kind in kinds.items():
        other = model.at(size)
        assert isinstance(other, kind)
        assert {id(p) for p in other.parameters()} == {id(p) for p in model.parameters()}
        assert model.at(size) is other
    assert isinstance(model_of("ends", 2).at("all"), BlockDiffusion)
    copied = copy.deepcopy(model)
    for weights in copied.parameters():
        torch.nn.init.zeros_(weights)
    assert {id(p) for p in copied.at(1).parameters()} == {id(p) for p in copied.parameters()}
    assert not any(name.startswith("others") for name in model.state_dict())


@torch.no_grad()
@pytest.mark.parametrize("form", ["plain", "ends"])
def test_training_draws_sizes_by_their_shares(form: str) -> None:
    model, x = model_of(form, 2, mixture=[(2, 0.75), (1, 0.25)]), examples(form)
    torch.manual_seed(0)
    draws = [model.hooks.draw(4) for _ in range(400)]
    assert all(draw is not None and len(draw[:, 1].unique()) == 1 for draw in draws)
    share = sum(float(draw[0, 1]) == 1 for draw in draws if draw is not None) / 400
    assert abs(share - 0.25) < 0.1
    torch.manual_seed(0)
    losses = torch.stack([model.training_loss(x) for _ in range(1500)])
    expected = 0.75 * of_all_orders(built(form, 2), x, form).mean(dim=0)
    expected = -(expected + 0.25 * of_all_orders(built(form, 1), x, form).mean(dim=0))
    error = losses.std(dim=0) / len(losses) ** 0.5
    assert float(((losses.mean(dim=0) - expected).abs() / error).max()) < 5


def test_a_run_is_scored_and_sampled_at_other_sizes() -> None:
    x = torch.randint(3, (120, 6), generator=torch.Generator().manual_seed(0))
    small: Any = {"net.width": 8, "net.num_blocks": 1, "net.num_heads": 1, "progress": False}
    run = unordinal.fit("block", x, steps=4, **small)
    assert [run.score().kind, run.at(1).score().kind, run.at("all").score().kind] == ["elbo", "exact", "elbo"]
    assert run.at(1).sample(2, prompt=[1, 2])[:, :2].tolist() == [[1, 2]] * 2
    assert run.at("all").sample(2, known=[-1, -1, -1, -1, 2, 1])[:, 4:].tolist() == [[2, 1]] * 2
    other = unordinal.fit("arm", x, steps=1, **small)
    with pytest.raises(ValueError, match="`block` is for models of blocks"):
        other.at(1)


@pytest.mark.parametrize("block", [1, 2, None])
def test_the_audit_passes(block: int | None) -> None:
    found = audit(model_of("plain", block), draws=200, num_samples=4000)
    assert found.passed, found


@pytest.mark.parametrize("block", [0, L + 1, "some", True])
def test_wrong_sizes_are_refused(block: Any) -> None:
    with pytest.raises(ValueError, match=f"`block` must be between 1 and {L}, the length of an example, or all; got"):
        model_of("plain", block)
    with pytest.raises(ValueError, match="`block` must be between 1"):
        model_of("plain", 2).at(block)
    with pytest.raises(ValueError, match="must be above 0"):
        model_of("plain", 2, mixture=[(2, 1.0), (1, 0.0)])
    assert K == 2
