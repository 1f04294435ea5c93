"""Words: where a text may be cut for encoding, checked per tokenizer and never assumed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.reference import codec_of
from tests.fixtures.strategies import texts
from tests.fixtures.tokenizers import EXACT_KINDS, KINDS, byte_level_digits
from tests.fixtures.wrapping import variant
from uag_core.tokenization import TargetLedger, TokenizerCodec, reencode
from uag_core.tokenization.words import begins_word

# Text full of places where a cut could be made.
_PARTS = [
    " ",
    "a",
    "Be",
    "9",
    "10",
    ",",
    ".",
    "!",
    "\n",
    "'s",
    "é",
    "e\u0301",
    "▁",
    "中",
    "🦙",
    "the word",
    "  ",
]
dense_text = st.lists(st.sampled_from(_PARTS), max_size=30).map("".join)


@pytest.mark.parametrize("kind", EXACT_KINDS)
@given(text=st.one_of(dense_text, texts))
def test_words_in_a_row_have_the_ids_of_the_text(kind: str, text: str) -> None:
    codec = codec_of(kind)
    assert codec.word_encoder()(text) == codec.encode(text)


@pytest.mark.parametrize("kind", EXACT_KINDS)
@given(several=st.lists(dense_text, max_size=6))
def test_remembered_words_stay_the_same(kind: str, several: list[str]) -> None:
    codec = codec_of(kind)
    encode = codec.word_encoder()
    first = [encode(text) for text in several]
    assert [encode(text) for text in several] == first == [codec.encode(text) for text in several]


@given(text=st.one_of(dense_text, st.text("0123456789 ,.:x\n", max_size=30)))
def test_digits_that_are_tokens_by_themselves_are_words(text: str) -> None:
    codec = TokenizerCodec(byte_level_digits())
    assert codec.words is not None
    assert "|".join(codec.words.split("in 2024, 3.14")) == "in| 2|0|2|4|,| 3|.1|4"
    assert codec.word_encoder()(text) == codec.encode(text)


def test_digits_that_share_tokens_are_not_parted() -> None:
    words = codec_of("byte_level_b").words
    assert words is not None
    assert words.split("in 2024, 3.14") == ["in", " 2024,", " 3.14"]


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_words_that_are_one_token_are_known(kind: str) -> None:
    codec = codec_of(kind)
    assert codec.words is not None
    assert all(codec.encode(word) == [i] for word, i in codec.words.single.items())
    assert len(codec.words.single) > 50


@given(text=dense_text)
def test_a_cut_is_seen_in_bytes_where_it_is_seen_in_text(text: str) -> None:
    words = codec_of("llama_style").words
    assert words is not None
    data = text.encode()
    cuts = [index for index in range(1, len(data) - 1) if begins_word(*data[index - 1 : index + 2])]
    parts = words.split(text)
    expected = [len("".join(parts[: index + 1]).encode()) for index in range(len(parts) - 1)]
    assert cuts == expected


def test_no_text_is_encoded_twice(monkeypatch) -> None:
    codec = codec_of("byte_level_a")
    asked: list[str] = []
    plain = codec.encode
    monkeypatch.setattr(codec, "encode", lambda text: asked.append(text) or plain(text))
    encode = codec.word_encoder()
    for _ in range(3):
        encode("zyxw zyxw, and zyxw again.")
    assert sorted(asked) == sorted(set(asked))
    assert "zyxw" in "".join(asked)


def test_a_tokenizer_without_a_byte_table_has_no_words() -> None:
    codec = codec_of("wordpiece")
    assert codec.words is None
    assert codec.word_encoder()("the word after it") == codec.encode("the word after it")


def _with_token(content: str, **options: bool) -> TokenizerCodec:
    def add(document: dict[str, Any]) -> None:
        plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        token = {"id": codec_of("byte_level_a").size, "content": content, "special": False}
        document["added_tokens"].append({**token, **plain, **options})

    return TokenizerCodec(variant(KINDS["byte_level_a"](), add))


@pytest.mark.parametrize(
    ("content", "options"), [("New York", {}), ("<tag>", {"rstrip": True}), ("a. B", {})]
)
def test_a_token_across_a_cut_rules_words_out(content: str, options: dict[str, bool]) -> None:
    codec = _with_token(content, **options)
    text = f"It is {content} word, and {content} again"
    assert codec.words is None
    assert codec.word_encoder()(text) == codec.encode(text)


def test_a_token_that_ends_in_a_comma_leaves_the_cuts_at_spaces() -> None:
    codec = _with_token("end,")
    assert codec.words is not None
    assert codec.word_encoder()("the end, the end") == codec.encode("the end, the end")
    assert codec.words.split("end, the") == ["end,", " the"]


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_a_window_begins_at_the_word_that_a_draft_may_change(kind: str) -> None:
    codec = codec_of(kind)
    ids = codec.encode("the word and the hel")
    start, pieces = TargetLedger(codec, ids, 10).window(b"lo again")
    assert b"".join(pieces) == b" hel"
    assert TargetLedger(codec, ids, 10).window(b" again") == (len(ids), [])
    assert start == len(ids) - len(pieces)


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_a_window_without_a_cut_reaches_over_the_look_behind(kind: str) -> None:
    codec = codec_of(kind)
    ids = codec.encode("\n\n\n)))\n\n\n(((")
    start, _ = TargetLedger(codec, ids, 3).window(b"[")
    assert start == len(ids) - 3
    assert reencode(TargetLedger(codec, ids, 3), b"[", 9) == codec.encode("[")
