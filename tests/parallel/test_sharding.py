"""What of a run can be sharded; that it then learns the same is shown by test_distributed."""

import pytest
import torch

from unordinal.config import OptimConfig, TrainConfig
from unordinal.model import TrainingHooks
from unordinal.parallel.sharding import check_strategy, is_spread, local, restored, whole


class Shardable(TrainingHooks):
    can_shard = True


FSDP = TrainConfig(steps=1, strategy="fsdp")


def test_what_cannot_be_sharded_is_refused() -> None:
    check_strategy(FSDP, OptimConfig(), Shardable())
    check_strategy(TrainConfig(steps=1), OptimConfig(optimizer="muon"), TrainingHooks())
    with pytest.raises(ValueError, match="for the diffusions and for arm without n-grams"):
        check_strategy(FSDP, OptimConfig(), TrainingHooks())
    with pytest.raises(ValueError, match="muon needs whole matrices"):
        check_strategy(FSDP, OptimConfig(optimizer="muon"), Shardable())
    with pytest.raises(ValueError, match="`compile` does not go with"):
        check_strategy(TrainConfig(steps=1, strategy="fsdp", compile=True), OptimConfig(), Shardable())


def test_what_is_whole_stays_as_it_is() -> None:
    x = torch.ones(2)
    assert not is_spread(x)
    assert local(x) is x
    assert whole({"a": [x, 1]})["a"][0] is x
    assert restored({"a": x, "b": 1}, {"a": torch.zeros(2)})["a"] is x
