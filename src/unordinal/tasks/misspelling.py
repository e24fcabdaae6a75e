"""The channel of people who type, with the probabilities of edits that were counted in a list of misspellings."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

from unordinal.data.vocabularies import Vocabulary
from unordinal.tasks.channel import Channel, substitutions

LETTERS_OF_A_LANGUAGE = 20  # an alphabet with a space and at least this many of a-z is one that people type
OTHER_SIGNS = 0.1  # weight of edits that the counts do not cover, relative to an average letter
MERGED = 0.1  # weight of a space that is left out


def typing_channel(vocabulary: Vocabulary, error_rate: float) -> Channel:
    """Return the channel of people who type, with this many edits per letter.

    Its probabilities are proportional to counts in a list of misspellings (see typing.json). An alphabet that people do
    not type, such as that of DNA, has a channel of substitutions.
    """
    symbols = symbols_of(vocabulary)
    k = len(symbols)
    known = counted_edits()
    place = {letter: index for index, letter in enumerate(known["letters"])}
    code = [place.get(symbol.lower(), -1) for symbol in symbols]  # of a letter in the counts
    if " " not in symbols or len(set(code)) <= LETTERS_OF_A_LANGUAGE:
        return substitutions(k, error_rate)
    first = len(place)  # the row of the beginning of a word
    rows = torch.tensor([first if c < 0 else c for c in (*code, -1)])
    columns = torch.tensor([max(c, 0) for c in code])
    is_letter = torch.tensor([c >= 0 for c in code])
    is_upper = torch.tensor([symbol.isupper() for symbol in symbols])
    same_case = is_upper.unsqueeze(1) == is_upper

    def spread(name: str, is_counted: Tensor, other: float) -> Tensor:
        table = torch.tensor(known[name], dtype=torch.float64)
        table = table[rows.clamp(max=len(table) - 1)][:, columns][: len(is_counted)]
        return torch.where(is_counted, table, other)

    both = is_letter.unsqueeze(1) & is_letter & same_case
    after = torch.cat([same_case | ~is_letter.unsqueeze(1), torch.ones(1, k, dtype=torch.bool)]) & is_letter
    apart = 1 - torch.eye(k, dtype=torch.float64)
    insert = spread("insert", after, OTHER_SIGNS / k)
    delete = spread("delete", is_letter.expand(k + 1, k), OTHER_SIGNS)
    delete[:, symbols.index(" ")] = MERGED
    substitute, swap = spread("substitute", both, OTHER_SIGNS / k) * apart, spread("swap", both, OTHER_SIGNS) * apart
    if vocabulary.kind == "bytes":  # parts of longer characters are only copied
        is_character = torch.tensor([symbol.isascii() and symbol.isprintable() for symbol in symbols])
        delete, substitute = delete * is_character, substitute * is_character.unsqueeze(1)
        swap = swap * (is_character & is_character.unsqueeze(1))
    total = substitute.sum(dim=1) + swap.max(dim=1).values + delete.max(dim=0).values  # the largest sum of weights
    r, each = error_rate, (error_rate / (1 + error_rate * total)).unsqueeze(1)  # each sum stays below 1
    insert = r * insert / (1 + r * insert.sum(dim=1, keepdim=True))
    return Channel(insert, delete * each.T, substitute * each, swap * each)


def symbols_of(vocabulary: Vocabulary) -> str:
    """Return the character of every class; bytes are those of Latin-1, of which only ASCII counts."""
    return vocabulary.symbols if vocabulary.kind != "bytes" else "".join(map(chr, range(256)))


@cache
def counted_edits() -> dict[str, Any]:
    """Return how often each edit occurs in a list of misspellings, relative to the edits of an average letter."""
    found: dict[str, Any] = json.loads((files("unordinal") / "tasks" / "typing.json").read_text(encoding="utf-8"))
    return found
