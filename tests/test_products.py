"""Products by oneDNN against those of torch: values, gradients of both orders, shapes, and when they are taken."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from unordinal import products
from unordinal.products import LARGE, LEAST_ROWS, linear, suits, times_transposed, uses_onednn

HAS_IT = uses_onednn("onednn")


@pytest.fixture
def by_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take oneDNN on whatever processor this is."""
    if not HAS_IT:
        pytest.skip("this build of torch has no oneDNN")
    monkeypatch.setattr(products, "uses_onednn", lambda: True)


def inputs(rows: int = 2 * LEAST_ROWS, *, bias: bool = True) -> tuple[Tensor, Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(0)
    x, weight, b = (torch.randn(shape, generator=generator) for shape in ((3, rows, 20), (70, 20), (70,)))
    return x.requires_grad_(), weight.requires_grad_(), b.requires_grad_() if bias else None


@pytest.mark.usefixtures("by_onednn")
@pytest.mark.parametrize("bias", [True, False])
def test_the_product_and_its_gradients_are_those_of_torch(bias: bool) -> None:
    x, weight, b = inputs(bias=bias)
    assert suits(x, weight)
    given = [part for part in (x, weight, b) if part is not None]
    found, expected = linear(x, weight, b), F.linear(x, weight, b)
    torch.testing.assert_close(found, expected)
    ours, theirs = (
        torch.autograd.grad(out.square().sum(), given, create_graph=True) for out in (linear(x, weight, b), expected)
    )
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, atol=1e-3, rtol=1e-4)
    second = [torch.autograd.grad(g[0].square().sum(), weight)[0] for g in (ours, theirs)]
    torch.testing.assert_close(second[0], second[1], atol=1.0, rtol=1e-4)  # of numbers near 1e6
    with torch.no_grad():
        torch.testing.assert_close(linear(x, weight, b), expected)


@pytest.mark.usefixtures("by_onednn")
def test_views_of_any_layout_are_multiplied() -> None:
    x, weight, _ = inputs()
    for part in (x[:, ::2], x.transpose(0, 1), x[:1].expand(4, -1, -1), x.view(3, -1, 4, 20)):
        torch.testing.assert_close(linear(part, weight), F.linear(part, weight))
    torch.testing.assert_close(linear(x[..., :10], weight[:, ::2]), F.linear(x[..., :10], weight[:, ::2]))


@pytest.mark.usefixtures("by_onednn")
def test_pairs_of_matrices_are_multiplied() -> None:
    a, b = torch.randn(3, 40, 20), torch.randn(3, 50, 20)
    torch.testing.assert_close(times_transposed(a, b), a @ b.mT)
    torch.testing.assert_close(times_transposed(a, b.mT[:, :20].mT[:, :, :20]), a @ b.mT)
    assert times_transposed(a[:0], b[:0]).shape == (0, 40, 50)


@pytest.mark.usefixtures("by_onednn")
def test_other_numbers_and_few_rows_are_left_to_torch() -> None:
    x, weight, _ = inputs()
    assert not suits(x.double(), weight.double())
    assert not suits(x[:1, : LEAST_ROWS - 1], weight)
    assert suits(x[:1, :1], weight.repeat(1 + LARGE // weight.numel(), 1))  # a large weight comes from memory
    assert not suits(x.to("meta"), weight.to("meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not suits(x, weight)
    assert linear(x[:0], weight).shape == (0, x.shape[1], 70)


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not uses_onednn("torch")
    assert uses_onednn("auto") == (HAS_IT and products.has_amd_avx512())
    uses_onednn.cache_clear()
    monkeypatch.setenv("UNORDINAL_PRODUCTS", "mkl")
    with pytest.raises(ValueError, match="unknown choice of UNORDINAL_PRODUCTS 'mkl'"):
        uses_onednn()
    uses_onednn.cache_clear()
