"""The optional parts of models: none unless a model has them."""

from typing import Any

import pytest
import torch
from torch import Tensor

from unordinal import configured
from unordinal.abilities import TrainingHooks
from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.model import CategoricalModel

PARTS = ("stepper", "denoiser", "times", "orders", "weights", "reconstruct", "network")


class Plain(CategoricalModel):
    """A model that has nothing but what every model must have."""

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.elbo(x)

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        return torch.full((len(x),), -2.0)

    def sample(self, num_samples: int, **settings: Any) -> Tensor:
        return torch.zeros(num_samples, *self.event_shape, dtype=torch.long)


def test_a_model_without_parts_has_none() -> None:
    model = Plain(3, (2,))
    for part in PARTS:
        assert getattr(model, part) is None
    assert not model.has_invalid_codes
    assert type(model.hooks) is TrainingHooks


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("arm", {"stepper", "network"}),
        ("arm-xl", {"stepper"}),
        ("multinomial", {"denoiser", "times", "weights", "reconstruct", "network"}),
        ("uniform", {"denoiser", "times", "reconstruct", "network"}),
        ("absorbing", {"denoiser", "times", "orders", "weights", "reconstruct", "network"}),
        ("argmax-ar", {"weights"}),
        ("latent-af-af", {"weights", "reconstruct"}),
        ("discrete-flow", set()),
    ],
)
def test_the_parts_of_the_models(name: str, parts: set[str]) -> None:
    model = configured(name).model.build(DataSpec("toy", 27, (16,), Vocabulary.text8()))
    assert {part for part in PARTS if getattr(model, part) is not None} == parts
    assert model.has_invalid_codes == (name == "argmax-ar")  # 32 codes for 27 classes
