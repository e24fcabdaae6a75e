"""Every recipe: built, trained and drawn from the same way, with no wait inside its loss; and a family from outside."""

import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import LEARNED, Cli, refused
from torch import Tensor, nn

from unordinal.api import fit
from unordinal.checks import sample_shape
from unordinal.config import ModelSettings, OptimConfig, Size, TrainConfig, paths_of
from unordinal.data import Data, load_data, source_of
from unordinal.data.docs import DocsSource
from unordinal.data.spec import DataSpec
from unordinal.data.streets import StreetsSource
from unordinal.data.text import TextSource
from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.experiments import DATA, EXPERIMENTS
from unordinal.model import CategoricalModel, ExactModel
from unordinal.models.diffusion import Diffusion
from unordinal.numerics import draw_categorical, sum_except_batch
from unordinal.overrides import with_settings
from unordinal.parallel.randomness import EXAMPLES, FIRST_PART, INITIALISE, TIMES, generator_of, seed_step
from unordinal.recipes import RECIPES, SIZES, Plan, Recipe, configured, suited_to
from unordinal.recipes.recipe import Task

SPECS = {"sequences": DataSpec("tiny", 5, (8,)), "maps": DataSpec("tiny", 5, (8, 16))}
EVERY = [(name, shape) for name in LEARNED for shape in RECIPES[name].takes]
# Losses that look at their values, and why.
LOOKING = {"latent-iaf-scf": "its prior is inverted by whole passes until nothing moves, which must be seen"}


def built(name: str, shape: Any, *, dropout: float = 0.0) -> CategoricalModel:
    """The recipe's model at size tiny, with dropout wherever it has any."""
    config = configured(name, "tiny", shape)
    paths = [path for path in paths_of(config.model) if path.endswith("dropout")]
    return with_settings(config, dict.fromkeys(paths, dropout)).model.build(SPECS[shape])


def test_settings_need_no_torch() -> None:
    code = "import sys, unordinal.recipes as r; r.configured('cityscapes/vae'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("name", "shape"), EVERY)
def test_a_loss_and_its_gradient_never_look_at_their_values(name: str, shape: str) -> None:
    """On the meta device a tensor has no values: what waits for one, or makes one on another device, fails."""
    with torch.device("meta"):
        model = built(name, shape)
    x = torch.zeros((4, *SPECS[shape].event_shape), dtype=torch.long, device="meta")
    if name in LOOKING:
        with pytest.raises((NotImplementedError, RuntimeError)):  # it may leave the list when this passes
            model.eval().training_loss(x).mean().backward()
        return
    for _ in range(2):  # the second step starts nothing from data any more
        loss = model.train().training_loss(x)
        assert loss.shape == (4,)
        loss.mean().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize(("name", "shape"), EVERY)
def test_scores_and_samples_do_not_depend_on_the_mode(name: str, shape: str) -> None:
    torch.manual_seed(0)
    model = built(name, shape, dropout=0.5)
    generator = torch.Generator()
    x = torch.randint(5, (2, *SPECS[shape].event_shape), generator=generator.manual_seed(0))
    model.hooks.initialise(x)
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn(parameter.shape)
    settings: dict[str, Any] = {"steps": 2} if model.denoiser else {}
    found = []
    for mode in (True, False):
        model.train(mode)
        torch.manual_seed(1)
        with torch.no_grad():
            scores = [model.elbo(x), *([] if model.times or not model.weights else [model.weights(x)])]
        drawn = model.sample(2, generator=generator.manual_seed(2), **settings)
        if model.reconstruct:
            drawn = torch.cat([drawn, model.reconstruct(x, generator=generator.manual_seed(3))])
        found.append((torch.stack(scores), drawn))
        assert model.training == mode
    torch.testing.assert_close(found[0][0], found[1][0], rtol=0, atol=0)
    assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize(("name", "shape"), EVERY)
def test_what_a_model_lacks_is_refused_by_name(name: str, shape: str) -> None:
    model = built(name, shape)
    with pytest.raises(ValueError, match="has no setting colour"):
        model.sample(1, colour="red")
    steps, prompts = model.denoiser is not None, model.stepper is not None
    for setting, is_able in (("steps", steps), ("temperature", steps or prompts), ("prompt", prompts)):
        if not is_able:
            given: dict[str, Any] = {setting: 1}
            with pytest.raises(ValueError, match=f"has no setting {setting}"):
                model.sample(1, **given)


PARTS = ("stepper", "denoiser", "times", "orders", "weights", "reconstruct", "network")
FLOWS = {name: {"weights"} for name in RECIPES if name.startswith(("argmax", "uniform-d", "variational"))}
HAVE: dict[str, set[str]] = {
    **FLOWS,
    "multinomial": {"denoiser", "times", "weights", "reconstruct", "network"},
    "uniform": {"denoiser", "times", "reconstruct", "network"},
    "absorbing": {"denoiser", "times", "orders", "weights", "reconstruct", "network"},
    "arm": {"stepper", "network"},
    "block": {"denoiser", "times", "orders", "weights"},
    "arm-xl": {"stepper"},
    "discrete-flow": set(),
    "latent-af-af": {"weights", "reconstruct"},
    "latent-iaf-scf": {"weights", "reconstruct"},
    "categorical-nf": {"weights", "reconstruct"},
    "vae": {"weights", "reconstruct"},
}


@pytest.mark.parametrize(("name", "shape"), EVERY)
def test_every_model_has_its_parts_and_no_others(name: str, shape: str) -> None:
    model = built(name, shape)
    assert {part for part in PARTS if getattr(model, part) is not None} == HAVE[name]
    if model.stepper is not None:
        assert (model.stepper.in_order is not None) == (name == "arm-xl")
    if model.times is not None:
        assert model.times.num == {"multinomial": 1000 if shape == "sequences" else 4000}.get(name)
    if model.denoiser is not None:
        assert (model.denoiser.posterior is not None) == (name not in ("absorbing", "block"))


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_smaller_sizes_keep_the_model_they_bound(name: str) -> None:
    paper = configured(name, "paper")
    kept = ("num_steps", "flow", "surjection", "base")
    for size in ("tiny", "small"):
        config = configured(name, size)
        assert (config.preset, config.size, config.data) == (name, size, paper.data)
        assert config.train.minutes == {"tiny": 2, "small": 60}[size]
        for part in kept:
            assert getattr(config.model, part, None) == getattr(paper.model, part, None)
        widths = [path for path, _ in paths_of(config.model).items() if path.endswith("net.width")]
        for path in widths:
            assert paths_of(config.model)[path] < paths_of(paper.model)[path]


def test_names_and_shapes() -> None:
    assert EXPERIMENTS["toy/eight-gaussians"] == ("argmax-ar", "toy")
    assert {task for _, task in EXPERIMENTS.values()} == set(DATA)
    assert len(EXPERIMENTS) == 35
    assert {name: configured(name).data.shape for name in ("cityscapes/vae", "text8/arm", "toy/discrete-flow")} == {
        "cityscapes/vae": "maps",
        "text8/arm": "sequences",
        "toy/discrete-flow": "sequences",
    }
    assert [configured("multinomial", "tiny", s).model.net.__class__.__name__ for s in ("sequences", "maps")] == [  # type: ignore[attr-defined]
        "DiffusionTransformer",
        "UNet",
    ]
    for call, message in (
        (lambda: configured("text8/amr"), "unknown experiment 'text8/amr'; did you mean text8/arm"),
        (lambda: configured("amr"), "unknown model 'amr'; did you mean arm"),
        (lambda: configured("cityscapes/arm"), "the paper did not run arm on cityscapes"),
        (lambda: configured("arm", "big"), "unknown size 'big'; expected tiny, small, paper"),
        (lambda: configured("arm", "tiny", "maps"), "arm is a model of sequences, but the data are maps"),
        (lambda: configured("arm", data=source_of("streets")), "arm is a model of sequences, but the data are maps"),
        (lambda: configured("vae", data=source_of("docs")), "vae is a model of maps, but the data are sequences"),
        (
            lambda: configured("text8/arm", data=source_of("streets")),
            "text8/arm takes sequences, but streets gives maps; use a text or an array of sequences",
        ),
        (
            lambda: configured("cityscapes/vae", data=source_of("docs")),
            "cityscapes/vae takes maps, but docs gives sequences; use streets, cityscapes or maps:PATH",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_data_of_ones_own_take_the_settings_of_the_experiment_that_their_format_has() -> None:
    plain = configured("arm", data=source_of("docs"))
    assert plain.data == DocsSource()  # a model by name leaves data as they are
    assert configured("text8/arm", data=source_of("docs")).data == DocsSource(alphabet="text8", length=256)
    assert configured("enwik8/arm", data=source_of("text:a.txt")).data.adapted(path="a") == TextSource(
        "a", alphabet="bytes", length=320
    )
    assert configured("cityscapes/vae", data=source_of("streets")).data == StreetsSource(flips=True)
    rows = source_of([[0, 1], [1, 0]])
    assert configured("arm", data=rows).data is rows


# --- a family from outside the package: its class, its settings and one line -----------------------------------------


class Histogram(ExactModel):
    """Independent positions with learned class probabilities."""

    def __init__(self, num_classes: int, event_shape: tuple[int, ...], spread: float):
        super().__init__(num_classes, event_shape)
        self.logits = nn.Parameter(spread * torch.randn(*event_shape, num_classes))

    def unchecked_log_prob(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        log_p = torch.log_softmax(self.logits, -1).expand(*x.shape, -1)
        return sum_except_batch(log_p.gather(-1, x.unsqueeze(-1)))

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.unchecked_log_prob(x)

    def sample(
        self,
        num_samples: int,
        *,
        generator: torch.Generator | None = None,
        event_shape: tuple[int, ...] | None = None,
        **settings: Any,
    ) -> Tensor:
        sample_shape(self, num_samples, event_shape, settings)
        return draw_categorical(self.logits.detach().expand(num_samples, *self.logits.shape), generator)


@dataclass(frozen=True)
class HistogramSettings(ModelSettings):
    """Independent positions."""

    spread: float = 0.1  # of the first logits

    def build(self, spec: DataSpec) -> CategoricalModel:
        return Histogram(spec.num_classes, spec.event_shape, self.spread)


def plan(size: Size, task: Task) -> Plan:
    return Plan(HistogramSettings(), TrainConfig(steps=4, batch_size=8, lr=0.1), OptimConfig())


def test_a_family_from_outside_is_trained_resumed_scored_and_sampled(
    cli: Cli, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, "histogram", Recipe("independent positions", HistogramSettings, plan))
    own = ["--data", f"text:{book}", "--alphabet", "text8", "--length", "16", "--size", "tiny"]
    words = ["train", "histogram", *own, "--model.spread", "0.2", "--out", "run", "--json"]
    first = cli(*words)
    assert first.code == 0, first.err
    assert first.json["steps"] == 4
    longer = cli(*words, "--steps", 200, "--resume")
    assert longer.json["steps"] == 200
    scored = cli("evaluate", "run", "--json")
    assert scored.json["kind"] == "exact"
    assert scored.json["bits_per_dim"] < 4.5  # log2(27) is 4.75, and the letters of the book are not alike
    sampled = cli("sample", "run", "--num", 3, "--json")
    assert [len(text) for text in sampled.json["samples"]] == [16] * 3
    assert "histogram" in cli("presets", "--json").json["models"]
    refused(cli("sample", "run", "--steps", 3), "--steps is for diffusions")
    refused(cli(*words, "--model.sprad", 1), "--model.spread")


def test_sizes_are_those_of_the_configuration() -> None:
    assert SIZES == ("tiny", "small", "paper")


MANY_CLASSES = """
import resource, sys, tempfile
from dataclasses import replace
from pathlib import Path
import numpy as np, torch
from unordinal.data import load_data
from unordinal.recipes import configured
from unordinal.train.loop import Loop
from unordinal.runs.folder import RunFolder

config = configured(sys.argv[1])
x = np.random.default_rng(0).integers(0, 50_257, (32, 256))
x[0, 0] = 50_256
data = load_data({"train": x, "val": x[:4], "test": x[:4]})
with tempfile.TemporaryDirectory() as folder:
    train = replace(config.train, steps=2, minutes=None)
    loop = Loop(config.model.build(data.spec), data, train, config.optim, RunFolder(Path(folder)), torch.device("cpu"))
    loop.train_step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multinomial", "arm", "argmax-ar"])
def test_a_step_with_50257_classes_takes_less_than_8_gigabytes(name: str) -> None:
    out = subprocess.run([sys.executable, "-c", MANY_CLASSES, name], check=True, capture_output=True, text=True).stdout
    assert float(out) < 8


def example_data(shape: str) -> Data:
    """Pairs of equal symbols, or blocks of equal pixels."""
    rng = np.random.default_rng(0)
    if shape == "sequences":
        return load_data(rng.integers(0, 4, (1000, 4)).repeat(2, axis=1))
    return load_data(rng.integers(0, 4, (200, 2, 4)).repeat(4, axis=1).repeat(4, axis=2))


FAMILIES = [("multinomial", "sequences"), ("arm", "sequences"), ("argmax-ar", "sequences"), ("vae", "maps")]


@pytest.mark.parametrize(
    ("name", "shape"), [case if case in FAMILIES else pytest.param(*case, marks=pytest.mark.slow) for case in EVERY]
)
def test_a_loop_of_ones_own_reaches_what_fit_reaches(name: str, shape: Any, tmp_path: Path) -> None:
    """`model.training_loss(x).mean()` is all it takes, with the same optimiser, schedule, batches and random numbers.

    The times of a diffusion are drawn as `fit` draws them, so that a few steps lead to the same weights. The loss is in
    bits per dimension, as in `fit`: straight-through gradients of discrete flows jump with the rounding of another
    unit.
    """
    data, num_steps, seed, lr = example_data(shape), 10, 3, 3e-3
    optim: dict[str, Any] = {"optimizer": "adam", "ema": 0.0, "clip": None, "warmup": 0, "decay_to_zero": False}
    train: dict[str, Any] = {"steps": num_steps, "batch_size": 16, "lr": lr, "seed": seed, "keep": "last"}
    run = fit(name, data, out=tmp_path / "run", progress=False, accumulate=1, beta2=0.999, **train, **optim)
    torch.manual_seed(seed)
    model = suited_to(configured(name, "tiny", shape), data)[0].model.build_for(data.spec)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(num_steps):
        x, _ = data.train.crops(16, generator_of(seed, step, EXAMPLES))
        if step == 0:
            seed_step(seed, step, INITIALISE)
            model.training_loss(x)  # what starts from data starts here
        seed_step(seed, step, TIMES)
        draw = model.hooks.draw(len(x))
        seed_step(seed, step, FIRST_PART)
        model.hooks.progressed(step / num_steps)  # fit weighs the KL of latent flows by how far it is
        loss = model.training_loss(x, draw).sum() * (1 / (math.log(2) * x[0].numel())) / len(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x, _ = data.test.crops(50, torch.Generator().manual_seed(0))
    scores = []
    for trained in (run.model, model):
        torch.manual_seed(1)  # bounds with the same draws
        scores.append(float(torch.stack([trained.bits_per_dim(x).detach() for _ in range(4)]).mean()))
    assert scores[0] == pytest.approx(scores[1], rel=0.03)


def test_importance_of_times_is_learned_in_a_loop_of_ones_own() -> None:
    torch.manual_seed(0)
    config = with_settings(configured("multinomial"), {"times": "importance", "num_steps": 5})
    model = config.model.build(SPECS["sequences"])
    assert isinstance(model, Diffusion)
    x = torch.randint(5, (64, 8))
    flat = model.time_sampler.probabilities()
    model.eval().training_loss(x)
    assert not model.time_sampler.count.any()  # a score teaches nothing
    for _ in range(6):
        model.train().training_loss(x).mean().backward()
    assert int(model.time_sampler.count.sum()) == 6 * 64
    assert not torch.allclose(model.time_sampler.probabilities(), flat)


def long_text(length: int) -> Data:
    return load_data(np.arange(50_000) % 5, length=length)


def test_batches_of_short_examples_are_larger() -> None:
    usual = configured("arm").train.batch_size
    for name, size, length, expected in (
        ("arm", "tiny", 28, round(usual * 256 / 28)),
        ("arm", "tiny", 2, 256),  # the most
        ("arm", "tiny", 1000, usual),
        ("arm", "paper", 28, configured("arm", "paper").train.batch_size),
        ("text8/arm", "tiny", 28, usual),
    ):
        config, note = suited_to(configured(name, size), long_text(length))
        assert config.train.batch_size == expected
        assert note == ""
    chosen, _ = suited_to(with_settings(configured("arm"), {"batch_size": 7}), long_text(28), ["batch_size"])
    assert chosen.train.batch_size == 7


def test_rows_of_places_are_regularised_and_validated_as_a_whole() -> None:
    data = load_data(np.arange(8000).reshape(1000, 8) % 3)
    config, note = suited_to(configured("arm"), data)
    assert config.train.batch_size == 256
    assert config.train.validate_examples == 50
    assert config.train.patience == 3
    assert (config.model.net.width, config.model.net.dropout) == (64, 0.1)  # type: ignore[attr-defined]
    many = load_data(np.arange(48_000).reshape(6000, 8) % 3)
    more = suited_to(configured("arm"), many)[0].model.net  # type: ignore[attr-defined]
    assert (more.width, more.dropout) == (128, 0.1)
    assert note.startswith("chosen for 900 rows of 8 places: batch size 256, ")
    config, _ = suited_to(configured("arm"), data, ["net.dropout", "patience"])
    assert config.model.net.dropout == 0.0  # type: ignore[attr-defined]
    few = load_data(np.random.default_rng(0).integers(0, 2, (100, 60)), split="80,10,10")
    least, note = suited_to(configured("arm"), few)
    assert (least.model.sums, least.train.batch_size) == (128, 40)  # type: ignore[attr-defined]
    assert "sums 128" in note
    both = with_settings(configured("arm"), {"order": "both"})
    assert suited_to(both, few)[0].train.batch_size == 160
    assert suited_to(configured("absorbing"), data)[0].model.net.dropout == 0.0  # type: ignore[attr-defined]
    assert config.train.patience is None
    assert suited_to(configured("argmax-ar"), data)[0].train.patience == 3


def test_the_dropout_of_absorbing_reaches_its_network() -> None:
    config = with_settings(configured("absorbing"), {"net.dropout": 0.25})
    model = config.model.build(DataSpec("letters", 3, (8,)))
    rates = [part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)]
    assert set(rates) == {0.25}
    assert len(rates) == 1 + config.model.net.num_blocks  # type: ignore[attr-defined]


def test_default_schedules_have_draws_of_finite_variance() -> None:
    """Near time 0 the noise of a linear schedule grows as t, whose bound has draws of infinite variance."""
    early = torch.tensor([1e-4])
    for noise in (AbsorbingNoise(3), ContinuousUniformNoise(3)):
        assert float(noise.schedule.noise(early)) < 1e-7
    for name in ("uniform", "absorbing"):
        assert configured(name).model.schedule == "cosine"  # type: ignore[attr-defined]
