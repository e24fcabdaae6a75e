"""Labels, lengths and classes of columns that come with arrays: what is read, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unordinal.api import fit
from unordinal.data import load_data
from unordinal.data.labels import parted
from unordinal.data.spec import DataSpec, Label

X = np.random.default_rng(0).integers(0, 2, (60, 4))
SMALL: dict[str, Any] = {"steps": 1, "progress": False, "net.width": 8, "net.num_blocks": 1, "net.num_heads": 1}


def test_classes_of_columns_are_read_from_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", train=X[:40], val=X[40:50], test=X[50:], num_categories=np.array([2, 3, 2, 5]))
    data = load_data(tmp_path / "rows.npz")
    assert data.spec.columns == data.spec.classes == (2, 3, 2, 5)
    assert data.spec.num_classes == 5
    assert data.spec.has_places
    assert data.notes == ()
    assert load_data(X, num_classes=(2, 3, 2, 5)).spec.columns == (2, 3, 2, 5)
    assert load_data(X, num_classes=[2, 2, 2, 2]).spec.columns == ()  # all alike
    assert load_data(X, places=False).spec.has_places is False
    assert load_data(X.reshape(-1), length=4).spec.has_places is False  # crops of one long sequence
    again = DataSpec.from_dict(data.spec.to_dict())
    assert again == data.spec


def test_labels_are_read_with_each_split(tmp_path: Path) -> None:
    y = np.arange(60) % 3
    np.savez(
        tmp_path / "x.npz", train=X[:40], val=X[40:50], test=X[50:],
        train_label=y[:40], val_label=y[40:50], test_label=np.where(y[50:] == 2, -1, y[50:]),
    )  # fmt: skip
    data = load_data(tmp_path / "x.npz")
    assert data.spec.labels == (Label("label", ("0", "1", "2"), (14, 13, 13)),)
    given = data.test.given(np.arange(10))
    assert given is not None
    assert given[:, 0].tolist() == [3 if v == 2 else v for v in y[50:].tolist()]  # 3 is a missing label
    assert data.train.given([0, 5]).tolist() == [[0], [2]]  # type: ignore[union-attr]


def test_no_array_of_a_file_is_dropped_silently(tmp_path: Path) -> None:
    y = np.arange(60) % 3
    np.savez(tmp_path / "x.npz", x=X, x_label=y, weight=np.ones(60))
    data = load_data(tmp_path / "x.npz")
    assert data.spec.labels == (Label("label", ("0", "1", "2"), (18, 18, 18)),)
    assert data.notes == ("ignored arrays: weight", "label label of 3 values, 0 missing")


@pytest.mark.parametrize(
    ("labels", "names", "values"),
    [
        (np.arange(60) % 2, ["label"], [("0", "1")]),
        (np.array(["frog", "toad", ""] * 20), ["label"], [("frog", "toad")]),
        (["frog", "toad"] * 30, ["label"], [("frog", "toad")]),
        (np.stack([np.arange(60) % 2, np.arange(60) % 4], axis=1), ["label1", "label2"], [("0", "1"), tuple("0123")]),
        (
            {"kind": np.arange(60) % 2, "colour": ["red", "blue"] * 30},
            ["kind", "colour"],
            [("0", "1"), ("blue", "red")],
        ),
    ],
)
def test_labels_are_given_in_python(labels: Any, names: list[str], values: list[tuple[str, ...]]) -> None:
    run = fit("arm", X, labels=labels, **SMALL)
    assert [label.name for label in run.spec.labels] == names
    assert [label.values for label in run.spec.labels] == values
    assert run.model.labels == tuple(map(len, values))
    first = {names[0]: values[0][0]}
    assert run.sample(3, label=first).shape == (3, 4)
    assert run.sample(3, label=[f"{names[0]}={values[0][0]}"]).tolist() == run.sample(3, label=first).tolist()


def test_lengths_end_the_rows() -> None:
    lengths = np.arange(60) % 5
    data = load_data({"x": X, "lengths": lengths}, split="0.5,0.25,0.25")
    assert data.spec.ends
    assert not data.spec.has_places
    assert data.train.examples(np.arange(5)).tolist() == [
        [*X[i, :n].tolist(), *[2] * (4 - n)] for i, n in enumerate(lengths[:5].tolist())
    ]
    assert data.spec.lengths == (tuple(np.bincount(lengths[:30], minlength=5).tolist()),)
    assert data.mean_symbols == lengths[:30].mean()
    assert data.spec.show(data.train[2]) == " ".join(map(str, X[2, :2]))
    with_labels = load_data({"x": X, "lengths": lengths, "label": np.arange(60) % 2}, split="0.5,0.25,0.25")
    assert len(with_labels.spec.lengths) == 3  # for each class, and for a missing label
    assert np.sum(with_labels.spec.lengths[0]) == 15
    assert with_labels.spec.lengths[2] == data.spec.lengths[0]


def test_lengths_of_pieces_of_the_rows_are_not_those_of_examples() -> None:
    """As in files in which all pieces of music stand one after another."""
    examples, given, ignored = parted({"x": X, "lengths": np.array([20, 40])}, "file")
    assert given.lengths == {}
    assert ignored == ["lengths"]
    assert len(examples[""]) == 60


@pytest.mark.parametrize(
    ("arrays", "settings", "message"),
    [
        ({"x": X}, {"num_classes": (2, 3)}, r"`num_classes` has 2 numbers, but examples have shape \(4,\)"),
        ({"x": X + 2}, {"num_classes": (5, 5, 3, 5)}, r"has class 3 in row \d+, column 2, which has 3 classes"),
        ({"x": X, "label": np.zeros(59, int)}, {}, "the array label has 59 entries, but there are 60 examples"),
        ({"x": X, "lengths": np.full(60, 5)}, {}, "the length of row 0 is 5; expected 0 to 4"),
        ({"x": X, "lengths": np.full(60, -1)}, {}, "the length of row 0 is -1; expected 0 to 4"),
        ({"x": X, "lengths": np.full(60, 1.5)}, {}, r"lengths are float64 of shape \(60,\); expected one integer"),
        ({"x": X, "x_label": np.zeros(7, int)}, {}, "the array x_label has 7 entries, but there are 60 examples"),
        ({"x": X, "lengths": np.full(7, 1)}, {}, "the array lengths has 7 entries, but there are 60 examples"),
        ({"x": X, "label": np.full(60, -1)}, {}, "the label label is missing everywhere"),
        ({"x": X, "label": np.zeros(60)}, {}, "the label label holds floats; expected integers or texts"),
        ({"x": np.zeros((60, 4, 4), int) + 1, "lengths": np.full(60, 3)}, {}, "lengths are for rows of symbols"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(arrays: Any, settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        load_data(arrays, **settings)
    assert "\n" not in str(error.value)


def test_a_label_that_was_never_seen_is_refused_with_the_nearest() -> None:
    run = fit("arm", X, labels=["frog", "toad"] * 30, **SMALL)
    with pytest.raises(ValueError, match=r"unknown value of the label label 'frogg'; did you mean frog\?"):
        run.sample(2, label={"label": "frogg"})
    with pytest.raises(ValueError, match=r"unknown label 'lable'; did you mean label\?"):
        run.sample(2, label={"lable": "frog"})
    with pytest.raises(ValueError, match="unknown value of the label label 'newt'"):
        run.score({"x": X[:6], "label": ["newt"] * 6})
    plain = fit("arm", X, **SMALL)
    with pytest.raises(ValueError, match="`label` is for models that were trained with labels"):
        plain.sample(2, label={"label": "frog"})
    with pytest.raises(ValueError, match="`cond` is for models that were trained with labels"):
        plain.model.log_prob(plain.data.test[0].unsqueeze(0), cond=np.zeros((1, 1), int))  # type: ignore


def test_other_data_are_scored_with_their_own_labels_as_the_run_numbers_them() -> None:
    y = np.array(["frog", "toad"] * 30)
    run = fit("arm", np.where(y[:, None] == "frog", 0, X), labels=y, **{**SMALL, "steps": 200, "lr": 1e-2})
    ours = run.score({"x": np.zeros((6, 4), int), "label": ["toad"] * 6}).bits_per_dim
    frogs = run.score({"x": np.zeros((6, 4), int), "label": ["frog"] * 6}).bits_per_dim
    assert frogs < 0.5 * ours
    missing = run.score(np.zeros((6, 4), int)).bits_per_dim
    assert frogs != missing
