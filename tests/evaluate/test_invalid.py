"""The mass on codes that mean no class, of models where it is known."""

import pytest
import torch

from unordinal.evaluate.invalid import invalid_mass
from unordinal.flows.density import StandardLogistic, StandardNormal
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.surjections.cartesian import BinaryProduct


def coins(num_classes: int, length: int) -> ArgmaxFlow:
    """Signs of independent normals: every code has the same probability."""
    bits = (num_classes - 1).bit_length()
    model = ArgmaxFlow(
        BinaryProduct(num_classes, StandardLogistic((length, bits))),
        StandardNormal((length, bits)),
        event_shape=(length,),
    )
    model.register_parameter("any", torch.nn.Parameter(torch.zeros(1)))  # a device to live on
    return model


def test_invalid_mass_of_a_known_model() -> None:
    """Three classes in two bits: a quarter of the codes means nothing."""
    mass = invalid_mass(coins(3, 4), 2000, seed=1)
    assert abs(mass.per_position - 0.25) < 4.5 * mass.per_position_error
    assert abs(mass.per_sequence - (1 - 0.75**4)) < 4.5 * mass.per_sequence_error
    assert 0.002 < mass.per_position_error < 0.01
    never = invalid_mass(coins(4, 4), 100)
    assert never.per_sequence == 0
    assert never.per_sequence_error == pytest.approx(0.005)
    assert "% of positions" in str(mass)
    with pytest.raises(ValueError, match="at least 2 samples, got 1"):
        invalid_mass(coins(4, 3), 1)
