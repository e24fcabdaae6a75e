"""The page that plays a chain."""

import json
import re

import torch

from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.evaluate.chain_page import chain_page, settled_at


def data_of(page: str) -> dict[str, object]:
    found = re.search(r"const data = (.*);\n", page)
    assert found
    return json.loads(found[1])


def test_a_text_is_played_with_what_has_settled() -> None:
    spec = DataSpec("</script><b>", num_classes=27, event_shape=(3,), vocabulary=Vocabulary.text8())
    chain = [(1.0, torch.tensor([27, 27, 27])), (0.5, torch.tensor([27, 1, 27])), (0, torch.tensor([3, 1, 20]))]
    page = chain_page(chain, spec)
    assert data_of(page) == {
        "times": ["1", "0.5", "0"],
        "settled": [2, 1, 2],
        "frames": [["·", "·", "·"], ["·", "a", "·"], ["c", "a", "t"]],
    }
    assert page.count("</script>") == 1  # nothing of the data ends the script
    assert "http" not in page


def test_a_map_is_played_in_its_colours() -> None:
    spec = DataSpec("maps", num_classes=2, event_shape=(2, 2))
    chain = [(1.0, torch.full((2, 2), 2)), (0, torch.tensor([[0, 1], [1, 0]]))]
    found = data_of(chain_page(chain, spec))
    assert found["frames"] == [[[2, 2], [2, 2]], [[0, 1], [1, 0]]]
    assert len(found["colours"]) == 3  # type: ignore[arg-type]


def test_settled_positions_stay_until_the_end() -> None:
    frames = [torch.tensor(row) for row in ([0, 1, 2], [5, 1, 0], [0, 1, 2])]
    assert settled_at(frames) == [2, 0, 2]
