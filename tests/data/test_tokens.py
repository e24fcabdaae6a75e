"""Byte-pair tokens: texts go in and come back, byte for byte."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unordinal.data.tokens import TokenVocabulary, as_bytes, cut_at_spaces, number_of_tokens, token_vocabulary
from unordinal.data.vocabularies import Vocabulary

TEXT = "the frog and the toad sat on the bank of the old pond, and the frog said: étang, пруд, 池. " * 30
TOKENS = TokenVocabulary.learned([TEXT], 300)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text: str) -> None:
    tokens = TOKENS.encode_text(text)
    assert TOKENS.decode(tokens) == text
    assert int(TOKENS.widths[tokens].sum()) == len(text)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=10))
def test_pieces_of_a_text_give_it_back(blocks: list[str]) -> None:
    assert "".join(cut_at_spaces(blocks)) == "".join(blocks)


def test_tokens_are_frequent_pieces_and_fewer_than_characters() -> None:
    assert len(TOKENS) == 300
    assert " the" in list(TOKENS)
    assert len(TOKENS.encode_text(TEXT)) < 0.5 * len(TEXT)
    assert TOKENS.description == "300 byte-pair tokens"


def test_a_cut_between_words_changes_no_token() -> None:
    text = TEXT * 40  # longer than a piece
    whole = TOKENS.encode_text(text)
    assert len(list(cut_at_spaces([text]))) > 1
    assert whole.tolist()[: len(TOKENS.encode_text(TEXT)) - 5] == TOKENS.encode_text(TEXT).tolist()[:-5]


def test_the_vocabulary_is_written_and_read_as_json() -> None:
    again = Vocabulary.from_dict(json.loads(json.dumps(TOKENS.to_dict())))
    assert again == TOKENS
    assert again.encode("the frog").tolist() == TOKENS.encode("the frog").tolist()


def test_a_class_that_is_no_token_is_shown_as_the_replacement_character() -> None:
    assert TOKENS.decode([len(TOKENS)]) == "\N{REPLACEMENT CHARACTER}"


def test_a_tokenizer_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(TOKENS.tokenizer)
    assert token_vocabulary(str(path), []) == TOKENS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "cannot be read"),
        ('{"model": {}}', "cannot be read"),
        ('{"model": {"vocab": {"a": 0}}}', "has no token for 255 of the 256 bytes"),
        ('{"model": {"vocab": {"a": 7}}}', "not numbered from 0 without gaps"),
        ('{"model": {"vocab": {"\u4f60": 0}}}', "is not one of bytes"),
    ],
)
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        token_vocabulary(str(path), [])
    assert str(path) in str(error.value)


def test_a_tokenizer_of_another_version_is_refused() -> None:
    later = TokenVocabulary.of(TOKENS.tokenizer.replace('"version":"1.0"', '"version":"9.0"'))
    assert later.tokenizer != TOKENS.tokenizer
    with pytest.raises(ValueError, match="cannot be read by the package tokenizers"):
        later.encode("frog")
    assert later.decode(TOKENS.encode("frog")) == "frog"  # which needs no package


def test_a_tokenizer_that_changes_texts_is_refused() -> None:
    read = json.loads(TOKENS.tokenizer)
    read["normalizer"] = {"type": "Lowercase"}
    with pytest.raises(ValueError, match="does not give this text back byte for byte"):
        TokenVocabulary.of(json.dumps(read)).encode("Frog")


@pytest.mark.parametrize("alphabet", ["bpe:", "bpe:255", "bpe:65537", "bpe:many"])
def test_numbers_of_tokens_have_a_range(alphabet: str) -> None:
    with pytest.raises(ValueError, match="expected a number of tokens from 256 to 65,536"):
        number_of_tokens(alphabet)


def test_bytes_of_a_token() -> None:
    assert as_bytes("Ġfrog") == b" frog"
    assert as_bytes("Ċ") == b"\n"
