"""Train a configured run in its folder; Python and the command line both start here."""

import os
from contextlib import nullcontext

import torch

from unordinal.config import RunConfig, differences
from unordinal.data.spec import DataSpec
from unordinal.data.splits import Data
from unordinal.model import CategoricalModel
from unordinal.names import unknown
from unordinal.parallel.group import current_group
from unordinal.parallel.sharding import check_precision, check_strategy
from unordinal.runs.folder import RunFolder
from unordinal.runs.lock import locked
from unordinal.runs.warm import WarmStart
from unordinal.train.counting import fit_by_counting
from unordinal.train.log import Reporter, SilentReporter
from unordinal.train.running import Outcome, train

# What may change between a run and its continuation: how long, how fast, how often it is saved, and where the data
# are, as long as they are the same.
CHANGEABLE = (
    "train.steps",
    "train.minutes",
    "train.epochs",
    "train.lr",
    "train.checkpoint_every",
    "train.compile",
    "train.recompute",
    "train.strategy",
    "data.path",
)


def train_run(
    config: RunConfig,
    data: Data,
    folder: RunFolder,
    *,
    resume: bool = False,
    model: CategoricalModel | None = None,
    warm: WarmStart | None = None,
    device: torch.device | str = "cpu",
    reporter: Reporter | None = None,
) -> Outcome:
    """Train the configured model, or one's own, in its folder; with `resume`, continue the run found there.

    With `warm`, the weights start as those of another run.
    """
    data.require("train", "val")
    check_precision(config.train, torch.device(device))
    reporter = reporter or SilentReporter()
    group = current_group()
    with locked(folder.path) if group.is_first else nullcontext(lambda: None) as claim:
        with group.one_first():  # the others need no folder
            if group.is_first:
                made = start_run(config, data.spec, folder, resume=resume, model=model)
            else:
                made = build_model(config, data.spec, model)
        if warm is not None:
            warm.transfer(made, data.spec)
        claim()
        if group.is_first:
            reporter.built(made)
        if made.hooks.is_counted:
            return fit_by_counting(made, data, config.train, folder, reporter)
        return train(made, data, config.train, config.optim, folder, device=device, reporter=reporter, group=group)


def start_run(
    config: RunConfig, spec: DataSpec, folder: RunFolder, *, resume: bool, model: CategoricalModel | None = None
) -> CategoricalModel:
    """Create the folder, or check that it holds a run with these settings; return a model with random weights."""
    old_config = config
    if resume and folder.is_run:
        old_config, old_spec = folder.read()
        check_same_run(old_config, config, folder)
        if old_spec.fingerprint != spec.fingerprint or old_spec.split_sizes != spec.split_sizes:
            raise ValueError(f"cannot resume {folder.path}: the data {spec.name} are not those it was trained on")
    made = build_model(config, spec, model)
    if not (resume and folder.is_run):
        folder.create(config, spec)
    elif old_config.to_dict() != config.to_dict():  # data that were given in Python cannot be compared
        folder.write_config(config, spec)
    return made


def build_model(config: RunConfig, spec: DataSpec, model: CategoricalModel | None) -> CategoricalModel:
    """Return the configured model with new random weights, or one's own."""
    torch.manual_seed(config.train.seed)
    made = config.model.build_for(spec) if model is None else model
    check_strategy(config.train, config.optim, made.hooks)
    freeze(made, config.train.freeze)
    return made


def freeze(model: CategoricalModel, parts: tuple[str, ...]) -> None:
    """Keep the weights whose names begin with one of some texts as they are; raise a ValueError for unknown names."""
    names = [name for name, _ in model.named_parameters()]
    for part in parts:
        if not any(name == part or name.startswith(f"{part}.") for name in names):
            known = list(dict.fromkeys(".".join(name.split(".")[:2]) for name in names))
            raise unknown("part of the model", part, known)
    for name, weights in model.named_parameters():
        if any(name == part or name.startswith(f"{part}.") for part in parts):
            weights.requires_grad_(False)
    if parts and not any(weights.requires_grad for weights in model.parameters()):
        raise ValueError("`freeze` leaves nothing to train; freeze fewer parts")


def check_same_run(old: RunConfig, new: RunConfig, folder: RunFolder) -> None:
    """Raise a ValueError if a run would be continued with settings that make it another run."""
    changed = differences(old, new, ignore=CHANGEABLE)
    if changed:
        raise ValueError(f"cannot resume {folder.path} with other settings: {'; '.join(changed)}")


def device_named(name: str | torch.device) -> torch.device:
    """Return a device by its name; auto takes cuda, then mps, then the CPU, the first that is here."""
    has_mps = torch.backends.mps.is_available() and os.environ.get("WORLD_SIZE", "1") == "1"  # gloo cannot reach it
    available = {"cuda": torch.cuda.is_available(), "mps": has_mps, "cpu": True}
    kind = str(name).partition(":")[0]
    if kind == "auto":
        return torch.device(next(name for name, is_there in available.items() if is_there))
    if not available.get(kind, kind == "meta"):
        there = [name for name, is_there in available.items() if is_there]
        raise ValueError(f"no device {name} here; available: {', '.join(there)}")
    return torch.device(name)
