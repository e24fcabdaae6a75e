"""Data sets of tokens from text files, which are read in blocks so that they may be larger than memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from unordinal.data.source import TextSettings
from unordinal.data.spec import DataSpec
from unordinal.data.splits import Data, cut, split_sizes
from unordinal.data.storage import stored_symbols
from unordinal.data.text import TextFile, decoded
from unordinal.data.tokens import TokenVocabulary, cut_at_spaces, token_vocabulary
from unordinal.progress import Progress

DEFAULT_LENGTH = 128  # tokens, which are about as many characters as usual windows of 256, or a few more
MOST_MEASURED = 1 << 20  # tokens whose mean number of characters is stated


def load_tokens(
    file: TextFile, asked: TextSettings, given: TokenVocabulary | None, official_split: str, progress: Progress
) -> Data:
    """Load a text as tokens, which are learned from the training split; each split is encoded by itself.

    The splits are those of the characters, so that they hold the same text whatever the tokens are.
    """
    split, alphabet = official_split if asked.split is None else asked.split, asked.alphabet or ""
    found: list[TokenVocabulary] = []
    sizes: list[int] = []

    def parts(what: str, ends: tuple[int, ...]) -> Iterator[Iterator[str]]:
        """Yield the blocks of text up to each end."""
        blocks, done, held = decoded(file.blocks(progress, what), file.path), 0, ""

        def up_to(end: int) -> Iterator[str]:
            nonlocal done, held
            while done < end and (held := held or next(blocks, "")):
                taken, held = held[: end - done], held[end - done :]
                done += len(taken)
                yield taken

        return (up_to(end) for end in ends)

    def encoded() -> Iterator[np.ndarray]:
        total = sum(len(block) for block in decoded(file.blocks(progress, "Counting the characters"), file.path))
        counts = split_sizes(split, total, "characters")
        vocabulary = given or token_vocabulary(alphabet, next(parts("Learning the tokens", counts[:1])))
        found.append(vocabulary)
        for part in parts("Preparing the text", tuple(np.cumsum(counts))):
            sizes.append(0)
            for piece in cut_at_spaces(part):
                tokens = vocabulary.encode_text(piece)
                sizes[-1] += len(tokens)
                yield tokens

    def described() -> dict[str, Any]:
        return {"tokenizer": found[0].tokenizer, "sizes": sizes}

    key = {**file.key, "alphabet": alphabet, "split": split, "tokenizer": given.tokenizer if given else None}
    symbols, stored = stored_symbols(key, encoded, described, np.uint16)
    vocabulary, length = TokenVocabulary.of(stored["tokenizer"]), asked.length or DEFAULT_LENGTH
    if len(symbols) < length:
        raise ValueError(f"{file.path} has {len(symbols)} tokens, fewer than one sequence of {length}")
    train, val, test = cut(symbols, tuple(stored["sizes"]), length)
    for part in (train, val, test):
        part.widths = vocabulary.widths
    each = float(vocabulary.widths[train.symbols[:MOST_MEASURED]].mean()) if len(train.symbols) else 1.0
    spec = DataSpec(asked.name, len(vocabulary), (length,), vocabulary, stored["sha256"], tuple(stored["sizes"]))
    return Data(spec, train, val, test, (f"read as {vocabulary.description} of {each:.2f} characters each",))
