"""Recipes of trees of columns, which are counted: the baselines of every table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from unordinal.config import ModelSettings, OptimConfig, Size, TrainConfig
from unordinal.recipes.recipe import Plan, Recipe, Task

if TYPE_CHECKING:
    from unordinal.data.spec import DataSpec
    from unordinal.models.tree import TreeModel


@dataclass(frozen=True)
class TreeSettings(ModelSettings):
    """Columns that depend on at most one other column each."""

    handles: ClassVar = ("columns",)

    edges: bool = True
    """Let columns depend on each other: the tree with the largest sum of mutual information."""

    def build(self, spec: "DataSpec") -> "TreeModel":
        from unordinal.models.tree import TreeModel

        spec.require_sequences()
        return TreeModel(spec.classes, spec.event_shape, has_edges=self.edges)

    def facts(self, model: Any) -> dict[str, Any]:
        return {}


def chow_liu(size: Size, task: Task) -> Plan:  # noqa: ARG001 (counted, whatever the size)
    return Plan(TreeSettings(), TrainConfig(steps=1, validate_examples=2000), OptimConfig(ema=0.0))


def independent(size: Size, task: Task) -> Plan:  # noqa: ARG001
    return Plan(TreeSettings(edges=False), TrainConfig(steps=1, validate_examples=2000), OptimConfig(ema=0.0))


CHOW_LIU = Recipe("tree of columns (Chow and Liu), counted, exact likelihood", TreeSettings, chow_liu)
INDEPENDENT = Recipe("independent columns, counted, exact likelihood", TreeSettings, independent)
