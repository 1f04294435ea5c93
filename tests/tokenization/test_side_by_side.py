"""One text in two tokenizers, and what a round trip loses."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.fixtures.reference import codec_of
from tests.fixtures.strategies import texts
from tests.fixtures.texts import AWKWARD
from tests.fixtures.tokenizers import CORE_KINDS, KINDS, LOSSLESS_KINDS
from tests.ui.tokenizers_here import named
from uag_core.errors import InputError
from uag_core.tokenization.round_trip import WHY, round_trip, visible
from uag_core.tokenization.side_by_side import MAX_CHARACTERS, rows, side_by_side


def both(text: str, target: str = "byte_level_a", assistant: str = "gemma_style") -> dict:
    return side_by_side(text, named(target), named(assistant))


def reasons(kind: str, text: str) -> list[str]:
    return [loss.reason for loss in round_trip(KINDS[kind](), codec_of(kind), text).losses]


@pytest.mark.parametrize("kind", CORE_KINDS)
@given(text=texts)
def test_tokens_cover_the_text_and_counts_agree(kind, text) -> None:
    found = both(text, kind)
    one = found["target"]
    assert one["count"] == len(one["tokens"])
    assert one["bytes"] == len(text.encode())
    ends = [token["end"] for token in one["tokens"]]
    assert ends == sorted(ends)
    if ends:
        assert ends[-1] == one["bytes"]
        assert one["chars_per_token"] == len(text) / len(ends)
    if kind in LOSSLESS_KINDS and "▁" not in text:
        assert b"".join(bytes.fromhex(t["bytes"]) for t in one["tokens"]) == text.encode()
        for token in one["tokens"]:
            part = text.encode()[token["start"] : token["end"]]
            assert bytes.fromhex(token["bytes"]) == part
            assert token["text"] in (None, part.decode("utf-8", "replace"))


@given(text=texts)
def test_a_tokenizer_shares_every_boundary_with_itself(text) -> None:
    found = both(text, "byte_level_a", "byte_level_a")
    assert found["same_tokenizer"]
    shared = found["shared_boundaries"]
    assert shared["count"] == shared["target"] == shared["assistant"]
    assert shared["percent"] == (100 if shared["count"] else None)


def test_shared_boundaries_are_counted_inside_the_text_only() -> None:
    assert both("a")["shared_boundaries"]["percent"] is None
    found = both("The capital of France")
    ends = [{t["end"] for t in found[name]["tokens"]} for name in ("target", "assistant")]
    assert found["shared_boundaries"]["count"] == len(ends[0] & ends[1]) - 1
    assert not found["same_tokenizer"]


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
def test_losses_are_told_exactly_where_the_text_does_not_come_back(kind, text) -> None:
    trip = round_trip(KINDS[kind](), codec_of(kind), text)
    assert trip.exact == (trip.text == text)
    assert trip.exact == (not trip.losses)
    for loss in trip.losses:
        assert loss.reason in WHY
        assert 0 <= loss.start <= loss.end <= len(text.encode())
        assert loss.before != loss.after


@pytest.mark.parametrize("text", AWKWARD)
def test_byte_level_keeps_everything(text) -> None:
    assert reasons("byte_level_a", text) == []


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("unigram_nfkc", "ﬁne", "normaliser"),
        ("wordpiece", "Hello", "normaliser"),
        ("wordpiece", "hello 🦙", "unknown token"),
        ("llama_style", "a▁b", "lossy decode"),
        ("unigram_nfkc", "x != y , hello !", "lossy decode"),
        ("byte_level_prefix_space", "hello", "dummy prefix"),
    ],
)
def test_each_loss_has_its_reason(kind, text, reason) -> None:
    assert reason in reasons(kind, text), round_trip(KINDS[kind](), codec_of(kind), text)


def test_too_long_or_broken_text_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="at most 20,000"):
        both("x" * (MAX_CHARACTERS + 1))
    with pytest.raises(InputError, match="surrogate"):
        both("a\ud800")


@given(text=texts)
def test_rows_for_drawing_are_cut_at_a_boundary_that_both_have(text) -> None:
    found = both(text * 3)
    shown = rows(found, 20)
    for name in ("upper", "lower"):
        for _, (start, end), _ in shown[name]:
            assert start <= end
            assert shown["cut"] is None or end <= shown["cut"] <= 20
    assert (shown["cut"] is None) == (len(found["text"].encode()) <= 20)


def test_visible_text_hides_nothing() -> None:
    assert visible("a b\t\n\r\u200b\u202e") == "a·b→⏎␍(U+200B)(U+202E)"
