"""Discrete flows: what their settings build, against appendix C."""

import pytest

from unordinal.data.spec import DataSpec
from unordinal.models.discrete_flow import AutoregressiveModulo, BipartiteModulo
from unordinal.nets.settings import LSTM
from unordinal.recipes import RECIPES, configured
from unordinal.recipes.discrete_flow import DiscreteFlowSettings


def test_autoregressive_layers_change_their_direction() -> None:
    model = DiscreteFlowSettings(LSTM(4, 1), num_flows=3).build(DataSpec("tiny", 3, (4,)))
    layers = model.stack()
    assert all(isinstance(layer, AutoregressiveModulo) for layer in layers)
    assert [layer.is_reversed for layer in layers] == [False, True, False]


def test_bipartite_layers_take_turns() -> None:
    layers = DiscreteFlowSettings(LSTM(4, 1), "bipartite").build(DataSpec("tiny", 3, (4,))).stack()
    assert all(isinstance(layer, BipartiteModulo) for layer in layers)
    assert [layer.moves_odd for layer in layers] == [True, False]


def test_the_toy_has_one_layer_each_way() -> None:
    model = configured("toy/discrete-flow", "paper").model
    assert isinstance(model, DiscreteFlowSettings)
    assert (model.num_flows, model.flow) == (2, "ar")
    assert set(RECIPES["discrete-flow"].variants) == {"autoregressive", "bipartite"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (DiscreteFlowSettings(LSTM(4, 1), "bipartite", num_flows=1), "transforms only half the positions"),
        (DiscreteFlowSettings(LSTM(4, 1), num_flows=0), "`model.num_flows` must be at least 1, got 0"),
        (DiscreteFlowSettings(LSTM(4, 1), "bipartit"), "unknown flow 'bipartit'; did you mean bipartite"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_refused(settings: DiscreteFlowSettings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings.build(DataSpec("tiny", 3, (4,)))
