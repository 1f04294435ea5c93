"""The `id -> bytes` tables agree with each tokenizer's own decoding."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures import tokenizers
from tests.fixtures.reference import (
    codec_of,
    decode_all,
    drops_first_space,
    faithful,
    joined,
    text_ids,
)
from tests.fixtures.texts import AWKWARD
from tests.fixtures.tokenizers import EXACT_KINDS, KINDS, LOSSLESS_KINDS
from uag_core.tokenization.byte_table import build_table


@pytest.mark.parametrize("kind", KINDS)
def test_only_wordpiece_has_no_table(kind: str) -> None:
    assert codec_of(kind).is_exact == (kind != "wordpiece")


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_bytes_of_any_ids_equal_the_tokenizers_own_decoding(kind: str, data: st.DataObject) -> None:
    codec = codec_of(kind)
    ids = data.draw(st.lists(st.sampled_from(text_ids(codec)), max_size=12))
    raw = joined(codec, ids)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return  # `decode` itself loses what is no text
    if drops_first_space(kind):
        text = text.removeprefix(" ")
    assert text == decode_all(kind, ids)


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@pytest.mark.parametrize("text", AWKWARD)
def test_encoding_keeps_every_byte(kind: str, text: str) -> None:
    codec = codec_of(kind)
    assert joined(codec, codec.encode(text)) == faithful(kind, text)


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_byte_fallback_pieces_are_single_bytes(kind: str) -> None:
    codec = codec_of(kind)
    spelt = KINDS[kind]().convert_tokens_to_ids("<0xEA>")
    if kind in ("llama_style", "metaspace_first", "gemma_style"):
        assert codec.piece(spelt) == b"\xea"
    else:
        assert spelt in (None, codec.unknown_id)


def test_a_character_in_pieces_is_joined_and_never_shown_as_replacement() -> None:
    for kind in ("llama_style", "gemma_style", "byte_level_a"):
        codec = codec_of(kind)
        pieces = codec.pieces(codec.encode("𒎗"))
        assert len(pieces) > 1
        assert b"".join(pieces) == "𒎗".encode()
        assert not any("\ufffd".encode() in piece for piece in pieces)


def test_a_table_that_disagrees_with_the_decoder_is_not_trusted() -> None:
    tokenizer = tokenizers.gemma_style()
    document = json.loads(tokenizer.backend_tokenizer.to_str())
    assert build_table(tokenizer.backend_tokenizer, document) is not None
    # The document speaks of another decoder than the tokenizer has.
    document["decoder"] = {"type": "ByteLevel"}
    assert build_table(tokenizer.backend_tokenizer, document) is None


@pytest.mark.parametrize("kind", KINDS)
def test_control_ids_add_no_text_but_keep_a_spelling(kind: str) -> None:
    codec = codec_of(kind)
    eos = KINDS[kind]().eos_token_id
    assert codec.is_control(eos)
    assert codec.piece(eos) == b""
    assert codec.spelling(eos) == KINDS[kind]().eos_token.encode()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("token_id", [-1, 10_000, 2**40])
def test_ids_outside_the_vocabulary_are_harmless(kind: str, token_id: int) -> None:
    codec = codec_of(kind)
    assert codec.is_control(token_id)
    assert codec.piece(token_id) == b""
    assert codec.spelling(token_id) == b""


def test_a_token_that_is_text_and_not_control_keeps_its_bytes() -> None:
    codec = codec_of("with_think_token")
    (token_id,) = codec.encode("<think>")
    assert not codec.is_control(token_id)
    assert codec.piece(token_id) == b"<think>"
