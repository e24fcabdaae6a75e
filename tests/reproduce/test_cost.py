"""Costs that are counted without training."""

import pytest
import torch
from torch import nn

from unordinal.config import Size
from unordinal.reproduce.cost import cost_of, counted
from unordinal.reproduce.jobs import Asked, Job, jobs_of, parsed_data


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.conv = nn.Linear(5, 7), nn.Conv1d(7, 3, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(self.linear(x).transpose(1, 2)).sum(dim=(1, 2))


def test_operations_are_those_of_the_formulas() -> None:
    with torch.device("meta"):
        operations, kept = counted(Layers(), torch.zeros(2, 11, 5))
    forward = 2 * (2 * 11 * 5 * 7 + 2 * 11 * 3 * 7 * 3)
    assert operations == 3 * forward
    assert kept >= 4 * (2 * 11 * 5 + 2 * 11 * 7)  # the inputs of both layers


@pytest.mark.parametrize("size", ["tiny", "paper"])
def test_the_parameters_are_those_of_the_model(size: Size) -> None:
    asked = Asked(("eight-gaussians",), size, 1.0, data=parsed_data((), "tiny"))
    for job in jobs_of(asked):
        data = job.config().data.load()
        built = job.config().model.build(data.spec)
        assert cost_of(job).parameters == sum(p.numel() for p in built.parameters())


def test_the_paper_s_budget_in_epochs_becomes_steps() -> None:
    job = Job("toy", "scores", "text8/multinomial", "text8", "docs", "paper", None)
    train, cost = job.config().train, cost_of(job)
    assert train.epochs is not None
    assert cost.steps == round(train.epochs * (90_000_000 // 256) / train.batch_size)
    assert cost.total == cost.step * cost.steps
