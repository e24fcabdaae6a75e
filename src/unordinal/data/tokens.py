"""Byte-pair tokens as classes, in the format of Hugging Face tokenizers."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unordinal.data.spec import MAX_CLASSES
from unordinal.data.vocabularies import REPLACEMENT, TEXT8_SYMBOLS, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

FEWEST_TOKENS = 256  # the bytes, from which all texts can be written
LONGEST_PIECE = 1 << 16  # characters that are encoded at a time
NEW_TOKENS = "bpe:"  # the alphabet of tokens that are learned, before their number


@dataclass(frozen=True)
class TokenVocabulary(Vocabulary):
    """Tokens, each of which stands for a few bytes of UTF-8, so that every text can be written with them.

    Args:
        kind: "tokens".
        symbols: empty.
        tokenizer: the tokenizer as JSON, as in a file tokenizer.json.
    """

    tokenizer: str = field(default="", repr=False)

    @staticmethod
    def of(tokenizer: str, where: str = "the tokenizer") -> "TokenVocabulary":
        """Return the vocabulary of a tokenizer given as JSON; raise a ValueError if it is not one of bytes."""
        found = TokenVocabulary("tokens", "", tokenizer)
        expected = "expected a tokenizer.json of byte-level tokens, such as that of GPT-2"
        try:
            pieces = found.pieces
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{where} cannot be read ({error}); {expected}") from error
        if len(pieces) > MAX_CLASSES:
            raise ValueError(f"{where} has {len(pieces):,} tokens; at most {MAX_CLASSES:,} can be classes")
        lacking = FEWEST_TOKENS - len({piece for piece in pieces if len(piece) == 1})
        if lacking:
            raise ValueError(f"{where} has no token for {lacking} of the 256 bytes; {expected}")
        return found

    @staticmethod
    def learned(texts: Iterable[str], num_tokens: int) -> "TokenVocabulary":
        """Learn a number of tokens, the 256 bytes among them, from texts: pairs that are frequent are joined."""
        import tokenizers

        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=num_tokens, initial_alphabet=alphabet, show_progress=False, max_token_length=64
        )
        tokenizer.train_from_iterator(texts, trainer)
        return TokenVocabulary.of(tokenizer.to_str())

    def to_dict(self) -> dict[str, str]:
        return {"kind": self.kind, "tokenizer": self.tokenizer}

    @cached_property
    def pieces(self) -> list[bytes]:
        """The bytes that each token stands for."""
        read = json.loads(self.tokenizer)
        tokens: dict[int, bytes] = {int(number): as_bytes(text) for text, number in read["model"]["vocab"].items()}
        tokens |= {int(added["id"]): added["content"].encode() for added in read.get("added_tokens") or ()}
        if sorted(tokens) != list(range(len(tokens))):
            raise ValueError("its tokens are not numbered from 0 without gaps")
        return [tokens[number] for number in range(len(tokens))]

    @cached_property
    def widths(self) -> np.ndarray:
        """How many characters begin in each token, (K,); their sum over a text is its number of characters."""
        return np.array([sum(byte & 0xC0 != 0x80 for byte in piece) for piece in self.pieces], np.int64)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the tokens were learned from a text of a-z and spaces, as text8 is."""
        longer = [piece for piece in self.pieces if len(piece) > 1]
        return bool(longer) and all(piece.isascii() and set(piece.decode()) <= set(TEXT8_SYMBOLS) for piece in longer)

    @property
    def description(self) -> str:
        return f"{len(self):,} byte-pair tokens"

    def __len__(self) -> int:
        return len(self.pieces)

    def __iter__(self) -> Iterator[str]:
        return (piece.decode("utf-8", errors="replace") for piece in self.pieces)

    def encode(self, text: str) -> "Tensor":
        import torch

        return torch.from_numpy(self.encode_text(text).astype(np.int64))

    def encode_text(self, text: str) -> np.ndarray:
        """Return the tokens of a text, (L,) uint16; raise a ValueError if they do not give the text back."""
        parts = list(cut_at_spaces([text]))
        found = [] if not parts else loaded(self.tokenizer).encode_batch(parts, add_special_tokens=False)
        tokens = np.array([number for part in found for number in part.ids], np.uint16)
        if b"".join(self.pieces[number] for number in tokens) != text.encode():
            raise ValueError(
                "the tokenizer does not give this text back byte for byte; expected a tokenizer that changes nothing"
            )
        return tokens

    def decode(self, classes: "Tensor | np.ndarray | list[int]") -> str:
        """Return the text of tokens; invalid classes and invalid UTF-8 become the replacement character."""
        pieces, unknown = self.pieces, REPLACEMENT.encode()
        parts = [pieces[v] if 0 <= v < len(pieces) else unknown for v in map(int, classes)]
        return b"".join(parts).decode("utf-8", errors="replace")


@lru_cache(maxsize=4)
def loaded(tokenizer: str) -> Any:
    """Return the tokenizer of the package that encodes."""
    import tokenizers

    try:
        return tokenizers.Tokenizer.from_str(tokenizer)
    except Exception as error:  # whatever the package raises, such as for the format of a later version
        raise ValueError(f"the tokenizer cannot be read by the package tokenizers: {error}") from error


@lru_cache(maxsize=1)
def byte_letters() -> dict[str, int]:
    """Return the byte that each character of a byte-level token stands for: printable ones themselves."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + place): byte for place, byte in enumerate(others)}


def as_bytes(token: str) -> bytes:
    """Return the bytes of a token as a byte-level tokenizer writes it.

    >>> as_bytes("Ġthe")
    b' the'
    """
    letters = byte_letters()
    if any(letter not in letters for letter in token):
        raise ValueError(f"its token {token!r} is not one of bytes")
    return bytes(letters[letter] for letter in token)


def cut_at_spaces(blocks: Iterable[str]) -> Iterator[str]:
    """Yield pieces of a text that are encoded one by one; a cut before a space between words changes no token.

    >>> text = "two words " * 20_000
    >>> "".join(cut_at_spaces([text])) == text
    True
    """
    held = ""
    for block in blocks:
        held, start = held + block, 0
        while len(held) - start > LONGEST_PIECE:
            end = start + LONGEST_PIECE
            cut = held.rfind(" ", start + 1, end)
            while cut > start and not held[cut - 1].isalnum():
                cut = held.rfind(" ", start + 1, cut)
            cut = end if cut <= start else cut
            yield held[start:cut]
            start = cut
        held = held[start:]
    if held:
        yield held


def is_tokens(alphabet: str | None) -> bool:
    """Return whether an alphabet is one of tokens: bpe:N, or the path of a tokenizer.json."""
    return alphabet is not None and (alphabet.startswith(NEW_TOKENS) or alphabet.endswith(".json"))


def token_vocabulary(alphabet: str, texts: Iterable[str]) -> TokenVocabulary:
    """Return the vocabulary that an alphabet names; new tokens are learned from texts."""
    if not alphabet.startswith(NEW_TOKENS):
        path = Path(alphabet).expanduser()
        if not path.is_file():
            raise ValueError(f"there is no file {path}; expected a tokenizer.json")
        return TokenVocabulary.of(path.read_text(encoding="utf-8", errors="replace"), str(path))
    return TokenVocabulary.learned(texts, number_of_tokens(alphabet))


def number_of_tokens(alphabet: str) -> int:
    """Return N of an alphabet bpe:N.

    >>> number_of_tokens("bpe:1024")
    1024
    """
    digits = alphabet.removeprefix(NEW_TOKENS).replace(",", "")
    if not digits.isdecimal() or not FEWEST_TOKENS <= int(digits) <= MAX_CLASSES:
        raise ValueError(
            f"expected a number of tokens from {FEWEST_TOKENS} to {MAX_CLASSES:,} as bpe:N; got {alphabet}"
        )
    return int(digits)
