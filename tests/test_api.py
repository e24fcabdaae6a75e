"""Training, loading and scoring from Python: `fit`, `load` and `score`."""

import gc
import inspect
import math
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import unordinal
from unordinal.data import Data, load_data
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.model import ExactModel
from unordinal.models.diffusion import Diffusion
from unordinal.nets.transformer import TimeTransformer
from unordinal.numerics import draw_categorical
from unordinal.runs.checkpoint import latest_checkpoint
from unordinal.settings import Request, settings_of


def pairs(num: int = 400) -> np.ndarray:
    """Sequences whose second half repeats the first."""
    x = np.random.default_rng(0).integers(0, 3, (num, 4))
    return np.concatenate([x, x], axis=1)


def small_model(data: Data, seed: int = 0) -> Diffusion:
    torch.manual_seed(seed)
    net = TimeTransformer(data.spec.num_classes, width=32, num_blocks=1, global_heads=2)
    return Diffusion(net, noise=UniformNoise(3, cosine_schedule(20)), event_shape=(8,), times="stratified")


class Interrupter:
    """A logger that interrupts a run at its third step."""

    def started(self, folder: Path, settings: dict[str, Any], step: int) -> None: ...

    def logged(self, step: int, values: dict[str, float]) -> None:
        if step == 3 and "loss" in values:  # not again at a validation
            signal.raise_signal(signal.SIGINT)

    def ended(self) -> None: ...


def test_an_interrupted_fit_saves_and_then_lets_the_signal_through(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        unordinal.fit(small_model(load_data(pairs())), pairs(), out=tmp_path / "run", steps=9, logger=Interrupter())
    checkpoint = latest_checkpoint(tmp_path / "run" / "checkpoints")
    assert checkpoint is not None
    assert checkpoint.name == "step-00000003"


def test_an_interrupted_fit_goes_on_to_the_very_weights_of_one_that_was_not(tmp_path: Path) -> None:
    data = load_data(pairs())
    whole = unordinal.fit(small_model(data), data, out=tmp_path / "whole", steps=9)
    with pytest.raises(KeyboardInterrupt):
        unordinal.fit(small_model(data), data, out=tmp_path / "run", steps=9, logger=Interrupter())
    with pytest.raises(ValueError, match="already holds a run; add `resume`"):
        unordinal.fit(small_model(data), data, out=tmp_path / "run", steps=9)
    run = unordinal.fit(small_model(data, seed=1), data, out=tmp_path / "run", steps=9, resume=True)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, run.model.state_dict()[name]), name


def test_a_model_of_ones_own_trains_and_loads(tmp_path: Path) -> None:
    data = load_data(pairs())
    run = unordinal.fit(small_model(data), pairs(), out=tmp_path / "run", steps=20, optimizer="adamw", lr=1e-3)
    again = unordinal.load(tmp_path / "run", model=small_model(data, seed=1))
    x = torch.from_numpy(pairs(8))
    torch.manual_seed(0)
    first = run.model.elbo(x)
    assert unordinal.score(run).num_examples == 20  # its own test split
    assert unordinal.score(run, pairs(30) % 2).num_examples == 30  # an array is scored whole, in the run's classes
    torch.manual_seed(0)
    torch.testing.assert_close(again.model.elbo(x), first)
    with pytest.raises(ValueError, match="made in Python; pass it"):
        unordinal.load(tmp_path / "run")


def test_fit_leaves_the_callers_random_numbers_alone(tmp_path: Path) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    unordinal.fit("text8/multinomial", pairs(), out=tmp_path / "run", steps=2, width=16, num_blocks=1, global_heads=1)
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(ValueError, match="unknown setting 'stps'"):
        unordinal.fit("text8/multinomial", pairs(), out=tmp_path / "other", stps=2)


class Histogram(ExactModel):
    """Independent positions with learned class probabilities."""

    def __init__(self, length: int = 8) -> None:
        super().__init__(3, (length,))
        self.logits = nn.Parameter(torch.zeros(length, 3))

    def unchecked_log_prob(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        log_p = torch.log_softmax(self.logits, -1).expand(len(x), -1, -1)
        return log_p.gather(-1, x.unsqueeze(-1)).sum((1, 2))

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.unchecked_log_prob(x)

    def sample(self, num_samples: int, *, generator: torch.Generator | None = None, **settings: Any) -> Tensor:
        return draw_categorical(self.logits.expand(num_samples, -1, 3), generator)


def skewed(num: int = 600) -> np.ndarray:
    return np.random.default_rng(0).choice(3, (num, 8), p=[0.7, 0.2, 0.1])


def test_what_is_fitted_is_the_histogram_of_the_data_and_scores_are_its_cross_entropy(tmp_path: Path) -> None:
    """The maximum of the likelihood is known: the frequency of each class at each position."""
    x = skewed()
    parts = {"train": x[:400], "val": x[400:500], "test": x[500:]}
    run = unordinal.fit(
        Histogram(),
        parts,
        out=tmp_path / "run",
        steps=400,
        batch_size=256,
        lr=0.05,
        decay_to_zero=True,
        validate_every=400,
    )
    assert isinstance(run.model, Histogram)
    p = torch.softmax(run.model.logits.detach().double(), -1).numpy()
    frequency = np.stack([(parts["train"] == k).mean(axis=0) for k in range(3)], axis=1)
    assert abs(p - frequency).max() < 0.02
    score = unordinal.score(run)
    bits = -np.log2(p[np.arange(8), parts["test"]])
    assert score.bits_per_dim == pytest.approx(bits.mean(), rel=1e-5)
    assert score.standard_error == pytest.approx(bits.mean(axis=1).std(ddof=1) / math.sqrt(100), rel=1e-4)
    assert (score.kind, score.split, score.num_examples) == ("exact", "test", 100)
    assert unordinal.score(run, split="val").num_examples == 100
    assert unordinal.score(run, load_data(parts), split="train").num_examples == 400
    again = unordinal.score(run, parts["test"]).per_example
    assert again == pytest.approx(score.per_example, rel=1e-6)


def test_a_loaded_run_finds_its_data_again_and_refuses_others(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, skewed())
    fitted = unordinal.fit(Histogram(), f"array:{path}", out=tmp_path / "run", steps=2)
    expected = unordinal.score(fitted)
    loaded = unordinal.load(tmp_path / "run", model=Histogram())
    assert loaded.data is None
    assert unordinal.score(loaded).per_example == expected.per_example
    assert unordinal.score(loaded, f"array:{path}", split="test").per_example == expected.per_example
    assert unordinal.score(loaded, str(path)).num_examples == 10 * expected.num_examples * 2  # all of it
    np.save(tmp_path / "four.npy", skewed() + 1)
    for other, message in (
        (f"array:{tmp_path / 'four.npy'}", "has class 3, but num_classes is 3"),
        (np.full((5, 8), 7), "has class 7, but num_classes is 3"),
        (np.zeros((5, 2, 4), int), "takes sequences, but array gives maps"),
        ("eight-gaussians", "has 91 classes"),
        ("streets", "takes sequences, but streets gives maps"),
        ("strets", "did you mean streets"),
    ):
        with pytest.raises(ValueError, match=message):
            unordinal.score(loaded, other)
    with pytest.raises(ValueError, match="`split` must be one of train, val, test, exact, got 'tset'"):
        unordinal.score(loaded, split="tset")
    np.save(path, 2 - skewed())
    with pytest.raises(ValueError, match=r"has changed since .*run was trained on it; give it with `data`"):
        unordinal.score(loaded)
    path.unlink()
    with pytest.raises(ValueError, match=r"no file .*; or give the data to score with `data`"):
        unordinal.score(loaded)


def test_an_array_from_python_must_be_given_again(tmp_path: Path) -> None:
    unordinal.fit(Histogram(), skewed(), out=tmp_path / "run", steps=2)
    loaded = unordinal.load(tmp_path / "run", model=Histogram())
    with pytest.raises(ValueError, match="was trained on an array from Python; give the data to score"):
        unordinal.score(loaded)
    assert unordinal.score(loaded, skewed(30)).num_examples == 30


def test_models_and_experiments_are_found_by_name_and_data_must_have_their_shape(tmp_path: Path) -> None:
    small: dict[str, Any] = {"steps": 2, "net.width": 8, "num_blocks": 1, "num_heads": 1}
    run = unordinal.fit("arm", torch.from_numpy(skewed()), out=tmp_path / "run", **small)
    assert (run.config.preset, run.config.recipe, run.config.size) == ("arm", "arm", "tiny")
    again = unordinal.load(tmp_path / "run")
    x = torch.from_numpy(skewed(8))
    assert torch.equal(again.model.elbo(x), run.model.elbo(x))
    maps = np.random.default_rng(0).integers(0, 3, (40, 4, 4))
    for name, data, message in (
        ("arm", maps, "arm is a model of sequences, but the data are maps"),
        ("arm", "streets", "arm is a model of sequences, but the data are maps"),
        ("text8/arm", "streets", "text8/arm takes sequences, but streets gives maps"),
        ("cityscapes/multinomial", "docs", "cityscapes/multinomial takes maps, but docs gives sequences"),
        ("argmax-softplus", skewed(), "argmax-softplus is a model of maps, but the data are sequences"),
        ("amr", skewed(), "unknown model 'amr'; did you mean arm"),
    ):
        with pytest.raises(ValueError, match=message):
            unordinal.fit(name, data, out=tmp_path / "other")
    with pytest.raises(ValueError, match="unknown size 'large'"):
        unordinal.fit("arm", skewed(), out=tmp_path / "other", size="large")
    assert not (tmp_path / "other").exists()


def test_a_run_can_do_what_one_would_guess(book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings: dict[str, Any] = {"length": 16, "net.width": 16, "net.num_blocks": 1, "net.num_heads": 2}
    run = unordinal.fit("arm", book, out=tmp_path / "run", steps=3, progress=False, **settings)
    assert capsys.readouterr().err == ""  # quiet, as asked
    texts = run.sample(3, prompt="the fox", seed=1)
    assert [len(text) for text in texts] == [16] * 3
    assert all(text.startswith("the fox") for text in texts)
    assert run.sample(3, prompt="the fox", seed=1) == texts
    assert run.score().unit == "bits per character"
    assert len(repr(run).splitlines()) == 3
    assert "validation" in repr(run)
    run.save(tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    again = unordinal.load(tmp_path / "copy")
    assert again.sample(3, prompt="the fox", seed=1) == texts
    assert again.score(book, split="test").bits_per_dim == run.score().bits_per_dim
    with pytest.raises(ValueError, match="already holds a run"):
        run.save(tmp_path / "copy")
    assert run.sample(1, prompt="Äh! ")[0].startswith("ah ")  # read as the model reads texts
    with pytest.raises(ValueError, match="`steps` is for diffusions"):
        run.sample(steps=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        run.sample(colour=1)


def test_fit_says_how_far_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unordinal.fit(Histogram(), skewed(), out=tmp_path / "run", steps=3)
    assert "validation" in capsys.readouterr().err


def test_a_bare_model_is_scored(tmp_path: Path) -> None:
    """A model of uniform classes costs log2(3) bits a position, whatever the data."""
    model = Histogram()
    model.logits.data.zero_()
    score = unordinal.score(model, skewed(50))
    assert score.bits_per_dim == pytest.approx(math.log2(3))
    assert score.num_examples == 50
    with pytest.raises(ValueError, match="a bare model is scored on an array"):
        unordinal.score(model)


def test_a_run_corrects_fills_and_measures(book: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"length": 16, "net.width": 16, "net.num_blocks": 1, "net.num_heads": 2}
    run = unordinal.fit("arm", book, out=tmp_path / "arm", steps=3, progress=False, **settings)
    assert len(run.correct("the qxick fox").text) == 13
    filled = run.fill("the _uick fox", num=2)
    assert filled.text == filled.proposals[0].text
    short, array = run.bits(["the fox", torch.zeros(4, dtype=torch.long)])
    assert short.positions is not None
    assert sum(short.positions) == pytest.approx(short.bits)
    assert array.num_symbols == 4
    assert [line.num_symbols for line in run.bits("the fox\nruns")] == [7, 4]
    with pytest.raises(ValueError, match="x has class 99"):
        run.bits([torch.tensor([99])])
    codes = unordinal.fit("arm", torch.randint(5, (300, 8)), out=tmp_path / "codes", steps=2, progress=False)
    with pytest.raises(ValueError, match="`correct` is for text; the classes of array have no characters"):
        codes.correct("the fox")
    with pytest.raises(ValueError, match="expected an exact model over the same alphabet"):
        run.fill("the _ox", judge=codes)
    assert len(codes.bits(torch.randint(5, (3, 8)))) == 3


def test_public_names_are_shown() -> None:
    assert {"fit", "load", "score", "Run", "Diffusion", "coupling_flow", "RECIPES"} <= set(dir(unordinal))
    for name in dir(unordinal):
        assert getattr(unordinal, name) is not None


def test_two_runs_are_compared_on_the_same_examples(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 3, (200, 6))
    settings: dict[str, Any] = {"progress": False, "net.width": 16, "net.num_blocks": 1, "net.num_heads": 2}
    first, second = (unordinal.fit("arm", x, out=tmp_path / str(steps), steps=steps, **settings) for steps in (1, 40))
    result = unordinal.compare(first, second)
    assert result.difference == pytest.approx(second.score().bits_per_dim - first.score().bits_per_dim, abs=1e-6)
    assert result.kinds == ("exact", "exact")
    other = np.random.default_rng(1).integers(0, 3, (30, 6))
    assert unordinal.compare(first, second, other).num_examples == 30
    assert "30 examples of the array" in repr(unordinal.compare(first.model, second.model, other))
    assert repr(first.score()) == str(first.score())
    with pytest.raises(ValueError, match="a bare model is scored on an array"):
        unordinal.compare(first.model, second.model)


# What cannot be shown in a line or two: interfaces, settings, and what needs a trained run.
WITHOUT_EXAMPLE = {"CategoricalModel", "Comparison", "ExactModel", "ModelSettings", "OptimConfig", "TrainConfig"}
WITHOUT_EXAMPLE |= {"Sampler", "TrainingHooks", "compare", "fit", "load", "Source", "Times"}
WITHOUT_EXAMPLE |= {"Denoiser", "Orders", "Stepper", "Weights"}
CONSTRUCTORS = {name.replace("-", "_") for name in unordinal.RECIPES}  # which all have the same arguments


def test_public_names_are_documented() -> None:
    for name in dir(unordinal):
        value = getattr(unordinal, name)
        text = inspect.getdoc(value) or ""
        if isinstance(value, type) and issubclass(value, Request):  # shown by the methods of `Run`
            declared: Any = value
            for setting in settings_of(declared).values():
                assert setting.text.endswith("."), f"{name}.{setting.name} has no documentation"
        elif callable(value) and name not in WITHOUT_EXAMPLE | CONSTRUCTORS:
            assert ">>>" in text, f"{name} has no example"
        if inspect.isfunction(value):
            assert "Args:" in text, f"{name} does not say what its arguments are"
            assert "Returns:" in text, f"{name} does not say what it returns"


def test_a_run_without_a_folder_trains_in_a_temporary_one(tmp_path: Path) -> None:
    """The folder is there as long as the run, and what is saved stays."""
    run = unordinal.fit(Histogram(), skewed(), steps=2, progress=False)
    folder = run.folder.path
    assert folder.is_dir()
    assert unordinal.score(run).num_examples == 30
    run.save(tmp_path / "kept")
    kept = unordinal.load(tmp_path / "kept", model=Histogram())
    assert torch.equal(kept.model.state_dict()["logits"], run.model.state_dict()["logits"])
    del run
    gc.collect()
    assert not folder.exists()
    assert (tmp_path / "kept" / "model.safetensors").exists()


def test_steps_and_minutes_may_be_given_together(tmp_path: Path) -> None:
    run = unordinal.fit(Histogram(), skewed(), out=tmp_path / "run", steps=4, minutes=5, progress=False)
    assert run.folder.published_step == 4


def test_settings_of_other_formats_are_refused() -> None:
    for settings, message in (
        ({"alphabet": "chars"}, "unknown setting 'alphabet'"),
        ({"strategy": "ddp"}, "unknown strategy 'ddp'"),
        ({"lr": -1.0}, "`lr` must be a number above 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            unordinal.fit(Histogram(), skewed(), steps=2, **settings)


def test_an_array_is_scored_by_a_model_of_text_as_its_classes(book: Path) -> None:
    settings: dict[str, Any] = {"length": 16, "net.width": 16, "net.num_blocks": 1, "net.num_heads": 2}
    run = unordinal.fit("arm", book, steps=1, progress=False, **settings)
    x = np.random.default_rng(0).integers(0, 27, (5, 16))
    score = run.score(x)
    with torch.no_grad():
        expected = -run.model.elbo(torch.from_numpy(x)).double().mean() / (16 * math.log(2))
    assert score.bits_per_dim == pytest.approx(float(expected), rel=1e-5)
    assert score.split == "the array"


@pytest.mark.parametrize("num", [2.5, 0, "3"])
def test_a_number_of_samples_is_whole(num: Any) -> None:
    model = unordinal.arm(num_classes=3, length=4)
    with pytest.raises((ValueError, TypeError), match="whole number"):
        model.sample(num)
    run = unordinal.fit("arm", np.zeros((40, 4), int) + np.arange(4) % 3, steps=1, progress=False)
    with pytest.raises(ValueError, match="`num` must be a whole number"):
        run.sample(num)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_here_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="no device cuda here; available: cpu"):
        unordinal.fit("arm", np.zeros((40, 4), int) + np.arange(4) % 3, steps=1, device="cuda", progress=False)
