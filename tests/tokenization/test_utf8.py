"""Bytes that may end inside a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.strategies import any_bytes, some_text
from uag_core.tokenization.ledger import complete_text
from uag_core.tokenization.utf8 import StreamingText, incomplete_tail, is_boundary


@given(st.lists(any_bytes, max_size=6))
def test_streaming_in_chunks_equals_decoding_at_once(chunks: list[bytes]) -> None:
    stream = StreamingText()
    text = "".join(stream.feed(chunk) for chunk in chunks) + stream.close()
    assert text == b"".join(chunks).decode("utf-8", "replace")


@given(any_bytes)
def test_incomplete_tail_is_what_a_decoder_would_hold_back(data: bytes) -> None:
    stream = StreamingText()
    stream.feed(data)
    assert incomplete_tail(data) == len(stream.pending)


@pytest.mark.parametrize("char", ["é", "歪", "🦙", "ጠ", "𒎗"])
def test_every_prefix_of_a_character_is_held_back(char: str) -> None:
    data = char.encode()
    for cut in range(1, len(data)):
        assert incomplete_tail(b"ok" + data[:cut]) == cut
        assert complete_text(b"ok" + data[:cut]) == b"ok"
    assert complete_text(b"ok" + data) == b"ok" + data


@pytest.mark.parametrize("data", [b"\x80", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5"])
def test_impossible_bytes_are_not_awaited(data: bytes) -> None:
    assert incomplete_tail(data) == 0
    assert complete_text(b"ok" + data + b"more") == b"ok"


@given(any_bytes)
def test_complete_text_is_a_decodable_prefix(data: bytes) -> None:
    text = complete_text(data)
    assert data.startswith(text)
    text.decode()


@given(some_text, st.integers(0, 200))
def test_boundaries_are_where_characters_begin(text: str, offset: int) -> None:
    data = text.encode()
    offset %= len(data) + 1
    starts = {len(text[:index].encode()) for index in range(len(text) + 1)}
    assert is_boundary(data, offset) == (offset in starts)
