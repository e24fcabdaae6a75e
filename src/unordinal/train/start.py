"""From a configuration to a model in its folder, new or gone on with."""

import torch

from unordinal.config import RunConfig, differences
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel
from unordinal.models import build_model
from unordinal.train.checks import check_settings
from unordinal.train.run import RunFolder

# What may change between a run and its continuation: how long, how fast, and how often it is saved.
CHANGEABLE = (
    "train.steps",
    "train.minutes",
    "train.epochs",
    "train.lr",
    "train.checkpoint_every",
    "train.compile",
)


def start_run(
    config: RunConfig, spec: DataSpec, folder: RunFolder, *, resume: bool, model: CategoricalModel | None = None
) -> CategoricalModel:
    """Make the folder, or check that what it holds is this very run; return a freshly seeded model."""
    check_settings(config.train, config.optim)
    old_config = config
    if resume and folder.is_run:
        old_config, old_spec = folder.read()
        check_same_run(old_config, config, folder)
        if old_spec.fingerprint != spec.fingerprint or old_spec.split_sizes != spec.split_sizes:
            raise ValueError(f"cannot resume {folder.path}: the data {spec.name} are not those it was trained on")
    torch.manual_seed(config.train.seed)
    made = build_model(config.model, spec) if model is None else model
    if not (resume and folder.is_run):
        folder.create(config, spec)
    elif old_config != config:
        folder.write_config(config, spec)
    return made


def check_same_run(old: RunConfig, new: RunConfig, folder: RunFolder) -> None:
    """Refuse to go on with a run under settings that would make it another."""
    changed = differences(old, new, ignore=CHANGEABLE)
    if changed:
        raise ValueError(f"cannot resume {folder.path} with other settings: {'; '.join(changed)}")
