"""Map a user's text to a model's alphabet, and write changes back into the original text.

A model of text8 knows a-z and single spaces, and people write capitals, accents, digits and commas. `read` finds for
every class that the model sees the piece of the text that it stands for, so that changes can be put back there.
"""

import itertools
import unicodedata
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unordinal.data.tokens import TokenVocabulary
from unordinal.data.vocabularies import Vocabulary


@dataclass(frozen=True)
class Reading:
    """A text as a model sees it.

    Args:
        text: the text as it was given.
        x: the classes, of shape (L,).
        spans: the start and the end in the text of what each class stands for.
        is_free: whether each class may be changed, of shape (L,); False where it stands for something that the
            alphabet lacks.
        vocabulary: the alphabet.
        plain: the same text read as a-z and spaces, if the tokens of the alphabet stand for nothing else.
    """

    text: str
    x: Tensor
    spans: tuple[tuple[int, int], ...]
    is_free: Tensor
    vocabulary: Vocabulary
    plain: "Reading | None" = None

    @property
    def num_altered(self) -> int:
        """How many characters of the text are replaced by others because the model's alphabet lacks them."""
        if not self.vocabulary.symbols:  # bytes and tokens can write every text
            return 0 if self.plain is None else self.plain.num_altered
        seen = zip(self.spans, self.vocabulary.decode(self.x), strict=True)
        return sum(end - start for (start, end), symbol in seen if self.text[start:end] != symbol)

    def symbol(self, value: int) -> str:
        """Return the character of a class."""
        return self.vocabulary.decode([value])

    def in_case_of(self, old: str, new: str) -> str:
        """Return the new letter in the case of the old one, if the alphabet lacks the old one as it is."""
        if old[:1] in self.vocabulary.symbols:
            return new
        cased = new.upper() if old[:1].isupper() else new.lower() if old[:1].islower() else new
        return cased if len(cased) == len(new) else new


def read(text: str, vocabulary: Vocabulary) -> Reading:
    """Read a text in the alphabet of a model.

    A character of the alphabet is itself. Other letters count as another form of theirs that the alphabet has: capitals
    as small letters (or the other way round), letters with accents as letters without. If the alphabet has a space,
    every run of other characters counts as one space that may not be changed.

    Args:
        text: the text.
        vocabulary: the alphabet; for bytes every character of ASCII may be changed, and no other.

    >>> seen = read("Été, 1999", Vocabulary.text8())
    >>> seen.vocabulary.decode(seen.x), seen.is_free.tolist()
    ('ete ', [True, True, True, False])
    >>> seen.in_case_of("É", "a")
    'A'
    """
    if vocabulary.kind == "bytes":
        return read_bytes(text, vocabulary)
    if isinstance(vocabulary, TokenVocabulary):
        return read_tokens(text, vocabulary)
    known = {symbol: index for index, symbol in enumerate(vocabulary.symbols)}
    has_signs = any(not symbol.isalpha() and symbol != " " for symbol in known)
    counts_as: dict[str, int | None] = {}  # what each character has turned out to count as
    classes: list[int] = []
    spans: list[tuple[int, int]] = []
    is_free: list[bool] = []
    pending: int | None = None  # where a run of characters that are no letters began

    def close_run(end: int) -> None:
        nonlocal pending
        if pending is None:
            return
        if " " not in known:
            raise ValueError(f"the alphabet of this model has no {text[pending]!r}; it has {vocabulary.symbols!r}")
        classes.append(known[" "])
        spans.append((pending, end))
        is_free.append(text[pending:end] == " ")
        pending = None

    for start, end in clusters(text):
        cluster = text[start:end]
        if cluster not in counts_as:
            counts_as[cluster] = plain_form(cluster, known, has_signs=has_signs)
        found = counts_as[cluster]
        if found is None:
            pending = start if pending is None else pending
            continue
        close_run(start)
        classes.append(found)
        spans.append((start, end))
        is_free.append(True)
    close_run(len(text))
    return Reading(text, torch.tensor(classes, dtype=torch.long), tuple(spans), torch.tensor(is_free), vocabulary)


def read_bytes(text: str, vocabulary: Vocabulary) -> Reading:
    """Read a text as UTF-8 bytes, of which only those of ASCII characters may be changed."""
    spans: list[tuple[int, int]] = []
    for place, character in enumerate(text):
        size = len(character.encode("utf-8", errors="surrogatepass"))
        spans += [(place, place + 1)] + [(place + 1, place + 1)] * (size - 1)
    x = torch.tensor(list(text.encode("utf-8", errors="surrogatepass")), dtype=torch.long)
    return Reading(text, x, tuple(spans), (x >= 32) & (x < 127), vocabulary)


def read_tokens(text: str, vocabulary: TokenVocabulary) -> Reading:
    """Read a text as tokens; a character belongs to the token in which it begins.

    Tokens that were learned from a-z and spaces read other characters as a model of these letters does.
    """
    plain = read(text, Vocabulary.text8()) if vocabulary.is_plain else None
    x = vocabulary.encode(text if plain is None else plain.vocabulary.decode(plain.x))
    ends = np.cumsum(vocabulary.widths[x.numpy()]).tolist()
    spans = tuple(itertools.pairwise([0, *ends]))
    if plain is not None:
        spans = tuple((plain.spans[start][0], plain.spans[end - 1][1]) for start, end in spans)
    return Reading(text, x, spans, torch.ones(len(x), dtype=torch.bool), vocabulary, plain)


def clusters(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of each character together with the combining marks that follow it.

    >>> clusters("e\\u0301a")
    [(0, 2), (2, 3)]
    """
    starts = [i for i, character in enumerate(text) if i == 0 or not unicodedata.combining(character)]
    return list(itertools.pairwise([*starts, len(text)]))


def plain_form(cluster: str, known: dict[str, int], *, has_signs: bool) -> int | None:
    """Return the class that a character counts as; None where it is part of a run of characters that are no letters.

    In an alphabet of letters and the space, the space is part of such runs; in one that has other signs besides
    letters (`has_signs`), it is a character like others.
    """
    for form in forms_of(cluster):
        if form in known and (form != " " or has_signs):
            return known[form]
    return None


def forms_of(cluster: str) -> list[str]:
    """Return what a character may count as, the character itself first.

    >>> forms_of("É")
    ['É', 'é', 'E', 'e']
    >>> forms_of("g")
    ['g', 'G']
    """
    base = "".join(c for c in unicodedata.normalize("NFKD", cluster) if not unicodedata.combining(c))
    if not cluster[:1].isalpha():  # no digit, sign or ligature counts as something else
        base = cluster
    return list(dict.fromkeys([cluster, cluster.lower(), base, base.lower(), base.upper()]))
