"""Learning rate and optimisers."""

import copy

import pytest
import torch
from torch import nn

from unordinal.config import OptimConfig
from unordinal.nets.classes import ClassTransformer
from unordinal.nets.conv import MapConv
from unordinal.nets.densenet import DenseNet
from unordinal.nets.ngrams import NgramEmbedding
from unordinal.nets.transformer import TimeTransformer
from unordinal.nets.unet import UNet
from unordinal.train.optim import build_optimizer, clip_gradients, inner_matrices, learning_rate_factor, orthogonalised


def factor(config: OptimConfig, step: int, steps_per_epoch: int = 10, total: int = 1000) -> float:
    return learning_rate_factor(config, step=step, fraction=step / total, epoch=step / steps_per_epoch)


def test_warmup_and_decay_compose() -> None:
    """The official code's two schedulers overwrite each other's learning rate; here each step has both factors."""
    both = OptimConfig(warmup=40, decay_per_epoch=0.9)
    for step in range(200):
        warmup, decay = factor(OptimConfig(warmup=40), step), factor(OptimConfig(decay_per_epoch=0.9), step)
        assert factor(both, step) == pytest.approx(warmup * decay)
    assert factor(both, 19) == pytest.approx(0.5 * 0.9**1.9)
    assert factor(both, 100) == pytest.approx(0.9**10)


def test_decay_per_epoch_is_once_per_epoch() -> None:
    config = OptimConfig(decay_per_epoch=0.99)
    assert factor(config, 300 * 10) == pytest.approx(0.99**300)


def test_decay_to_zero_follows_the_budget_and_multiplies_the_rest() -> None:
    config = OptimConfig(decay_to_zero=True, warmup=10, decay_per_epoch=0.9)
    assert factor(config, 500) == pytest.approx(0.5 * 0.9**50)
    assert learning_rate_factor(config, step=99, fraction=1.0, epoch=0) == 0


def test_orthogonalised_matrices_have_singular_values_near_one() -> None:
    torch.manual_seed(0)
    for shape in ((2, 24, 24), (3, 16, 48), (1, 48, 16)):
        g = torch.randn(shape, dtype=torch.float64)
        o = orthogonalised(g)
        values = torch.linalg.svdvals(o)
        assert values.min() > 0.3
        assert values.max() < 1.3
        u, _, v = torch.linalg.svd(g, full_matrices=False)
        assert torch.nn.functional.cosine_similarity(o.flatten(1), (u @ v).flatten(1)).min() > 0.9
    assert torch.isfinite(orthogonalised(torch.zeros(1, 3, 4))).all()


def test_inner_matrices_are_those_of_the_blocks() -> None:
    net = TimeTransformer(5, width=16, num_blocks=2, global_heads=2)
    found = {id(p) for p in inner_matrices(net)}
    names = {name for name, p in net.named_parameters() if id(p) in found}
    layers = ("attention.qkv", "attention.out", "up", "down")
    assert names == {f"blocks.{i}.{layer}.weight" for i in range(2) for layer in layers}


def test_inner_matrices_of_maps() -> None:
    net = UNet(5, width=8, num_levels=2, deep_blocks=2, num_heads=2)
    names = {name for name, p in net.named_parameters() if any(p is found for found in inner_matrices(net))}
    assert {"down.0.0.first.weight", "shrink.0.weight", "attention.0.qkv.weight", "up.0.0.second.weight"} <= names
    assert not {name for name in names if "modulation" in name or "bias" in name or "embed" in name or "time" in name}
    assert "out.weight" not in names
    assert len(inner_matrices(DenseNet(4, 4, width=8, depth=2))) == 2  # its convolutions


def test_a_convolutions_step_is_its_gradient_orthogonalised() -> None:
    net = nn.ModuleDict({"blocks": MapConv(3, 4)})
    conv = net["blocks"]
    assert isinstance(conv, MapConv)
    before = conv.weight.detach().clone()
    optimizer = build_optimizer(net, OptimConfig(optimizer="muon", matrix_lr=0.1), lr=0.0)
    conv.weight.grad = torch.randn_like(before)
    conv.bias.grad = torch.zeros(4)  # type: ignore[union-attr]
    optimizer.step()
    step = ((before - conv.weight.detach()) / 0.1).flatten(1)  # (4, 27): a filter is a row
    expected = orthogonalised(conv.weight.grad.flatten(1).unsqueeze(0))[0]
    torch.testing.assert_close(step, expected, rtol=1e-3, atol=1e-3)
    assert float((torch.linalg.svdvals(step) - 1).abs().max()) < 0.4


def test_muons_other_weights_follow_adamw() -> None:
    """With no matrices inside blocks, every step equals torch's AdamW."""
    torch.manual_seed(0)
    nets = [nn.Linear(4, 3) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    ours = build_optimizer(nets[0], OptimConfig(optimizer="muon", beta2=0.99, weight_decay=0.1), lr=0.01)
    theirs = torch.optim.AdamW(nets[1].parameters(), 0.01, betas=(0.9, 0.99), weight_decay=0.1)
    for _ in range(20):
        x = torch.randn(8, 4)
        for net, optimizer in zip(nets, (ours, theirs), strict=True):
            optimizer.zero_grad()
            net(x).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(nets[0].weight, nets[1].weight)


@pytest.mark.parametrize("name", ["adam", "adamw", "adamax", "muon"])
def test_every_optimiser_lowers_a_loss_and_restores_exactly(name: str) -> None:
    def made() -> tuple[TimeTransformer, torch.optim.Optimizer]:
        torch.manual_seed(0)
        net = TimeTransformer(5, width=16, num_blocks=1, global_heads=2)
        return net, build_optimizer(net, OptimConfig(optimizer=name), lr=1e-2)  # type: ignore[arg-type]

    z = torch.randint(5, (4, 10), generator=torch.Generator().manual_seed(1))
    time = torch.full((4,), 0.5)

    def step(net: TimeTransformer, optimizer: torch.optim.Optimizer) -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(z, time).flatten(0, 1), z.flatten())
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    net, optimizer = made()
    losses = [step(net, optimizer) for _ in range(15)]
    assert losses[-1] < losses[0] - 0.3
    other, other_optimizer = made()
    other.load_state_dict(net.state_dict())
    other_optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))  # it would share the tensors
    assert [step(net, optimizer) for _ in range(3)] == [step(other, other_optimizer) for _ in range(3)]


def test_tables_of_ngrams_are_updated_by_row_as_adam_would() -> None:
    torch.manual_seed(0)
    ngrams = NgramEmbedding(6, 16, orders=(3,), rows=40, row_width=4)
    net = ClassTransformer(5, width=16, num_blocks=1, num_heads=2, ngrams=ngrams)
    torch.nn.init.normal_(net.out.weight)
    table = ngrams.tables[0].get_parameter("weight")
    x = torch.randint(5, (2, 6))
    net(x).square().sum().backward()
    assert table.grad is not None
    assert not table.grad.is_sparse  # any optimiser of torch can take it
    dense = nn.Parameter(table.detach().clone())
    dense.grad = table.grad.clone()
    torch.optim.Adam([dense], lr=0.1, betas=(0.9, 0.95)).step()
    net.zero_grad()
    optimizer = build_optimizer(net, OptimConfig(optimizer="muon", beta2=0.95), lr=0.1)
    net(x).square().sum().backward()
    assert table.grad.is_sparse
    rows = table.grad.coalesce().indices()[0]
    untouched = [row for row in range(40) if row not in rows.tolist()]
    optimizer.step()
    assert untouched
    assert not table[untouched].any()
    assert torch.allclose(table[rows], dense[rows], atol=1e-5)


def with_ngrams(is_sparse: bool) -> ClassTransformer:
    """A network with tables of n-grams after a backward pass, whose tables have nearly all of the gradient."""
    torch.manual_seed(0)
    ngrams = NgramEmbedding(5, 16, orders=(2, 3), rows=40, row_width=4)
    net = ClassTransformer(4, width=16, num_blocks=1, num_heads=2, ngrams=ngrams)
    torch.nn.init.normal_(net.out.weight)
    with torch.no_grad():
        ngrams.merge.weight.mul_(50)
    if is_sparse:
        build_optimizer(net, OptimConfig(optimizer="muon"), lr=0.1)
    x = torch.randint(4, (3, 8), generator=torch.Generator().manual_seed(1))
    net(x).square().sum().backward()
    return net


def gradients_of(net: nn.Module) -> torch.Tensor:
    grads = [p.grad for p in net.parameters() if p.grad is not None]
    return torch.cat([(g.to_dense() if g.is_sparse else g).flatten() for g in grads])


@pytest.mark.parametrize("most", [None, 1e-3, 1.0, 1e9])
def test_clipping_counts_sparse_tables_like_dense_ones(most: float | None) -> None:
    sparse, dense = with_ngrams(is_sparse=True), with_ngrams(is_sparse=False)
    assert any(p.grad is not None and p.grad.is_sparse for p in sparse.parameters())
    before = gradients_of(dense)
    torch.testing.assert_close(gradients_of(sparse), before)
    grads = [p.grad for p in sparse.parameters() if p.grad is not None]
    table = torch.cat([grad.to_dense().flatten() for grad in grads if grad.is_sparse])
    assert float(table.norm()) > 0.5 * float(before.norm())
    norms = [float(clip_gradients(net.parameters(), most)) for net in (sparse, dense)]
    assert norms[0] == pytest.approx(float(before.norm()), rel=1e-5)
    assert norms[1] == pytest.approx(norms[0], rel=1e-5)
    expected = before if most is None else before * min(1.0, most / float(before.norm()))
    for net in (sparse, dense):
        torch.testing.assert_close(gradients_of(net), expected, rtol=1e-4, atol=1e-8)


def test_parameters_without_a_gradient_are_left_out() -> None:
    net = nn.Linear(3, 2)
    assert float(clip_gradients(net.parameters(), 1.0)) == 0
    net.weight.grad = torch.full((2, 3), 3.0)
    assert float(clip_gradients(net.parameters(), 1.0)) == pytest.approx(54**0.5)
    assert float(net.weight.grad.norm()) == pytest.approx(1.0, rel=1e-4)
