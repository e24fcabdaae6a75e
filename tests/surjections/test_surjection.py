"""Every surjection: its support, ties, log q as a normalised density, and draws compared with log q."""

import math
from collections.abc import Callable

import pytest
import torch
from contracts import chi_square_p_value
from torch import Tensor, nn

from unordinal.flows.density import ConditionalNormal, Density, StandardLogistic
from unordinal.surjections.argmax import GumbelArgmax, SoftplusArgmax
from unordinal.surjections.cartesian import BinaryProduct, CartesianProduct, num_digits
from unordinal.surjections.rounding import OneHotRounding, OrdinalRounding
from unordinal.surjections.surjection import Surjection

H = 2


def noise(num_channels: int, scale: float = 0.7) -> Density:
    torch.manual_seed(num_channels)
    net = nn.Linear(H, 2 * num_channels)
    net.weight.data *= scale
    return ConditionalNormal(net)


def gumbel(num_classes: int, noise: Density | None = None) -> GumbelArgmax:
    torch.manual_seed(7)
    made = GumbelArgmax(num_classes, nn.Linear(H, num_classes), noise)
    made.offset.data += torch.randn(num_classes)
    return made


SURJECTIONS: dict[str, Callable[[int], Surjection]] = {
    "softplus": lambda k: SoftplusArgmax(k, noise(k)),
    "gumbel": gumbel,
    "gumbel-threshold": lambda k: gumbel(k, noise(k)),
    "binary": lambda k: BinaryProduct(k, noise(num_digits(k, 2))),
    "round-uniform": OneHotRounding,
    "round-variational": lambda k: OneHotRounding(k, noise(k)),
    "ordinal-uniform": OrdinalRounding,
    "ordinal-variational": lambda k: OrdinalRounding(k, noise(1)),
    "softplus base 2": lambda k: CartesianProduct(k, 2, lambda m: SoftplusArgmax(m, noise(m))),
    "gumbel base 2": lambda k: CartesianProduct(k, 2, gumbel),
    "gumbel-threshold base 2": lambda k: CartesianProduct(k, 2, lambda m: gumbel(m, noise(m))),
    "round-variational base 2": lambda k: CartesianProduct(k, 2, lambda m: OneHotRounding(m, noise(m))),
}


def context_of(x: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """A context that depends on x."""
    return torch.stack([torch.sin(x.to(dtype)), torch.cos(2 * x.to(dtype))], dim=-1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("num_classes", [2, 3, 27])
@pytest.mark.parametrize("name", SURJECTIONS)
def test_every_draw_quantises_to_x(name: str, num_classes: int, dtype: torch.dtype) -> None:
    surjection = SURJECTIONS[name](num_classes).to(dtype)
    torch.manual_seed(0)
    with torch.no_grad():
        for _ in range(4 if num_classes == 3 else 1):
            x = torch.randint(num_classes, (250 if num_classes == 3 else 20, 1000))
            v, log_q = surjection.lift(x, context_of(x, dtype))
            assert v.shape == (*x.shape, surjection.num_channels)
            assert torch.equal(surjection.quantize(v), x)  # 1e6 draws for K = 3
            assert bool(torch.isfinite(log_q).all())


class Wide(StandardLogistic):
    """Standard logistic noise multiplied by a large factor."""

    def __init__(self, num_channels: int, spread: float):
        super().__init__((num_channels,))
        self.spread = spread

    def draw(self, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        return self.spread * super().draw(shape, generator)


@pytest.mark.parametrize("spread", [30.0, 1000.0])
@pytest.mark.parametrize("name", SURJECTIONS)
def test_ties_and_underflows_go_to_x(name: str, spread: float) -> None:
    """With noise this large, float32 rounds the differences between elements to zero."""
    surjection = SURJECTIONS[name](5).float()
    for part in surjection.inner() if isinstance(surjection, CartesianProduct) else [surjection]:
        if isinstance(part.noise, ConditionalNormal):
            part.noise.log_scale = math.log(spread)
        else:
            part.noise = Wide(part.num_channels, spread)
    torch.manual_seed(0)
    x = torch.randint(5, (50, 200))
    with torch.no_grad():
        v, _ = surjection.lift(x, context_of(x, torch.float32))
    assert torch.equal(surjection.quantize(v), x)


def grid(low: float, high: float, num: int, channels: int) -> tuple[Tensor, float]:
    """Midpoints of a regular grid over a cube, and the volume of a cell."""
    width = (high - low) / num
    side = low + width * (torch.arange(num, dtype=torch.float64) + 0.5)
    return torch.cartesian_prod(*([side] * channels)).view(-1, channels), width**channels


class Recording(Density):
    """A density whose draws are set from outside, so that log q can be computed at any v."""

    def __init__(self, inner: Density):
        super().__init__()
        self.inner = inner
        self.noise = torch.empty(0)

    def log_prob(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        return self.inner.log_prob(v, cond)

    def sample(
        self,
        num: int,
        cond: Tensor | None = None,
        *,
        event_shape: tuple[int, ...] | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        return self.noise, self.inner.log_prob(self.noise, cond)


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("name", ["softplus", "gumbel-threshold", "binary", "round-variational", "ordinal-variational"])
def test_log_q_integrates_to_one_over_its_region(name: str, num_classes: int) -> None:
    """The sum of q(v) |dv| over the images of a grid of noise, with |dv| by autodiff."""
    surjection = SURJECTIONS[name](num_classes).double()
    recorder = Recording(surjection.noise)  # type: ignore[arg-type]
    surjection.noise = recorder
    for label in range(num_classes):
        _, mass = pushed_grid(surjection, recorder, label, {1: 2000, 2: 300, 3: 60}[surjection.num_channels])
        assert abs(float(mass.sum()) - 1) < 5e-3, (name, label)


def pushed_grid(surjection: Surjection, recorder: Recording, label: int, num: int) -> tuple[Tensor, Tensor]:
    """Images (N, C) of a grid of noise, and q(v) of each times the volume of its cell, by autodiff."""
    channels = surjection.num_channels
    u, cell = grid(-9, 9, num, channels)
    x = torch.full((len(u), 1), label)
    recorder.noise = u.unsqueeze(1).clone().requires_grad_()
    v, log_q = surjection.lift(x, context_of(x))
    rows = [torch.autograd.grad(v[:, 0, c].sum(), recorder.noise, retain_graph=True)[0][:, 0] for c in range(channels)]
    volume = torch.linalg.det(torch.stack(rows, dim=1)).abs() * cell
    return v[:, 0].detach(), (log_q.exp() * volume).detach()


@pytest.mark.parametrize("name", SURJECTIONS)
def test_draws_follow_log_q(name: str) -> None:
    """Draws are compared with log q by importance sampling.

    For any bounded region A of v, E_q[1_A(v) r(v) / q(v)] is the r-mass of A, known for a simple r.
    """
    num_classes = 3
    surjection = SURJECTIONS[name](num_classes).double()
    torch.manual_seed(1)
    x = torch.ones(200_000, 1, dtype=torch.long)
    with torch.no_grad():
        v, log_q = surjection.lift(x, context_of(x))
    v = v[:, 0]
    centre, width = v.median(dim=0).values, 0.8 * v.std(dim=0)
    low, high = centre - width, centre + width  # a box; r is uniform on it
    inside = ((v > low) & (v < high)).all(dim=-1)
    weight = inside.double() * torch.exp(-log_q) / (high - low).prod()
    # the part of the box that belongs to x, by quadrature
    cells = (grid(0, 1, {1: 4000, 2: 400, 3: 80, 4: 24}[v.shape[1]], v.shape[1])[0]) * (high - low) + low
    expected = float((surjection.quantize(cells.unsqueeze(1))[:, 0] == 1).double().mean())
    error = float(weight.std()) / len(weight) ** 0.5
    assert float(inside.double().mean()) > 0.01
    assert abs(float(weight.mean()) - expected) < 4.5 * error + 0.02 * expected


@pytest.mark.parametrize("name", ["softplus", "ordinal-variational", "binary"])
def test_histogram_against_density(name: str) -> None:
    """The histogram of the first channel of v, compared by chi-square with the quadrature of q(v | x)."""
    surjection = SURJECTIONS[name](2).double()
    torch.manual_seed(2)
    x = torch.ones(40_000, 1, dtype=torch.long)
    with torch.no_grad():
        v, _ = surjection.lift(x, context_of(x))
    recorder = Recording(surjection.noise)  # type: ignore[arg-type]
    surjection.noise = recorder
    places, mass = pushed_grid(surjection, recorder, 1, 4000 if surjection.num_channels == 1 else 800)
    edges = torch.quantile(v[:, 0, 0], torch.linspace(0.02, 0.98, 25, dtype=torch.float64))
    counts = torch.bincount(torch.bucketize(v[:, 0, 0].contiguous(), edges), minlength=26).double()
    expected = torch.zeros(26, dtype=torch.float64).index_add(
        0, torch.bucketize(places[:, 0].contiguous(), edges), mass / mass.sum()
    )
    assert chi_square_p_value(counts, expected) > 1e-4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OneHotRounding(1), "at least 2 classes, got 1"),
        (
            lambda: SoftplusArgmax(3, noise(2)).double().lift(torch.zeros(4, 5).long(), context_of(torch.zeros(4, 5))),
            r"SoftplusArgmax of 3 classes needs noise of shape \(4, 5, 3\), but its noise has shape \(4, 5, 2\)",
        ),
    ],
)
def test_impossible_surjections_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
