"""Unknown names are refused with the nearest known one."""

import pytest

from unordinal.names import check_known, check_positive, unknown


def test_the_nearest_name_is_offered_where_one_is_near() -> None:
    known = ("train", "val", "test")
    near = "unknown split 'trian'; did you mean train? (known: train, val, test)"
    assert str(unknown("split", "trian", known)) == near
    assert str(unknown("split", "xyz", known)) == "unknown split 'xyz' (known: train, val, test)"
    assert "did you mean" in str(unknown("split", "tes_", iter(known)))
    assert "did you mean" not in str(unknown("split", "trian", known, cutoff=0.95))


def test_known_names_pass_and_others_are_refused() -> None:
    known = {"arm": 1, "argmax-ar": 2}
    check_known("recipe", "arm", known)
    check_known("recipe", "arm", (name for name in known))
    with pytest.raises(ValueError, match=r"^unknown recipe 'amr'; did you mean arm\? \(known: arm, argmax-ar\)$"):
        check_known("recipe", "amr", (name for name in known))


def test_numbers_below_one_are_refused() -> None:
    check_positive("model.num_flows", 1)
    with pytest.raises(ValueError, match=r"^`model\.num_flows` must be at least 1, got 0$"):
        check_positive("model.num_flows", 0)
