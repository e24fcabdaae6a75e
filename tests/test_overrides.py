"""Settings are changed by name, by dotted name, and together."""

import pytest

from unordinal.overrides import changed_settings, path_of, with_settings
from unordinal.recipes import configured


def test_a_name_is_enough_where_one_setting_has_it() -> None:
    config = with_settings(configured("arm"), {"lr": 0.5, "net.width": 64, "model.net.num_heads": 2})
    assert (config.train.lr, config.model.net.width, config.model.net.num_heads) == (0.5, 64, 2)  # type: ignore
    assert path_of(configured("arm"), "matrix_lr") == "optim.matrix_lr"
    with pytest.raises(ValueError, match="unknown setting 'widht'"):
        with_settings(configured("latent-af-af"), {"widht": 1})


def test_settings_that_are_checked_together_are_changed_together() -> None:
    net = configured("arm").model.net  # type: ignore[attr-defined]
    changed = changed_settings(net, {"width": 30, "num_heads": 5})  # 128 channels have no five heads
    assert (changed.width, changed.num_heads) == (30, 5)


def test_a_given_budget_replaces_that_of_the_recipe() -> None:
    config = with_settings(configured("arm"), {"steps": 7})
    assert (config.train.steps, config.train.minutes) == (7, None)
