"""What a report says of two tokenizers, from the tokenizers alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.fixtures import tokenizers
from tests.fixtures.strategies import some_text
from tests.fixtures.tokenizers import CORE_KINDS, KINDS, LOSSLESS_KINDS, byte_level_a
from tests.fixtures.wrapping import variant
from uag_core.tokenization import TokenizerCodec
from uag_core.tokenization.hazards import hazards, round_trip
from uag_core.tokenization.overlap import boundaries, fertility, vocabulary
from uag_core.tokenization.pair_report import MAX_TEXT, control_tokens, differences, pair_report


def found(kind: str, text: str = "") -> dict[str, str]:
    tokenizer = KINDS[kind]()
    return {h.kind: h.level for h in hazards(tokenizer, TokenizerCodec(tokenizer), text)}


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_a_tokenizer_is_the_same_as_itself(kind: str) -> None:
    report = pair_report(KINDS[kind](), KINDS[kind]())
    assert report["same_tokenizer"]
    assert report["differences"] == []
    assert report["fertility"]["target_per_assistant"] == 1
    assert report["vocabulary"]["share_of_target"] == 1
    assert report["boundaries"]["share_of_target"] == 1


def test_equal_sizes_are_no_sameness() -> None:
    other = tokenizers.same_size_other_ids()
    report = pair_report(byte_level_a(), other)
    assert len(other) == len(byte_level_a())
    assert not report["same_tokenizer"]
    assert "equally large" in report["differences"][0]
    # The pieces are all the same; only their ids are not.
    assert report["vocabulary"]["share_of_target"] == 1


def test_one_renamed_token_is_named_as_a_difference() -> None:
    lines = differences(byte_level_a(), tokenizers.renamed_added_token())
    assert any("1 entries are only the target's" in line for line in lines)


def test_other_splitting_is_a_difference_although_the_vocabulary_is_not() -> None:
    def change(document):
        document["pre_tokenizer"]["add_prefix_space"] = True

    other = variant(byte_level_a(), change)
    assert differences(byte_level_a(), other) == ["They divide text into words in different ways."]


def test_pieces_are_compared_by_what_they_stand_for() -> None:
    """`Ġthe` and `▁the` are the same piece."""
    left, right = (TokenizerCodec(KINDS[kind]()) for kind in ("byte_level_a", "gemma_style"))
    shared = vocabulary(left, right, " the the the")
    assert shared["shared"] > 150
    assert shared["weighted_target"] == 1


def test_weights_follow_the_text() -> None:
    left, right = (TokenizerCodec(KINDS[kind]()) for kind in ("byte_level_a", "wordpiece"))
    assert vocabulary(left, right, "🦙🦙🦙🦙")["weighted_target"] == 0
    assert vocabulary(left, right, " the the")["weighted_target"] == 1


def test_a_text_without_tokens_has_no_shares() -> None:
    left, right = (TokenizerCodec(KINDS[kind]()) for kind in ("byte_level_a", "gemma_style"))
    assert vocabulary(left, right, "")["weighted_target"] is None
    assert fertility(left, "") == {
        "tokens": 0,
        "tokens_per_character": None,
        "tokens_per_word": None,
    }
    assert boundaries(left, right, "a")["share_of_target"] is None


def test_fertility_counts_tokens_per_character_and_word() -> None:
    codec = TokenizerCodec(byte_level_a())
    text = "the river runs"
    count = len(codec.encode(text))
    assert fertility(codec, text) == {
        "tokens": count,
        "tokens_per_character": count / 14,
        "tokens_per_word": count / 3,
    }


@given(text=some_text)
def test_shares_are_shares_and_counts_agree_in_both_directions(text: str) -> None:
    left, right = (TokenizerCodec(KINDS[kind]()) for kind in ("byte_level_a", "llama_style"))
    there, back = boundaries(left, right, text), boundaries(right, left, text)
    assert there["shared"] == back["shared"]
    assert there["share_of_target"] == back["share_of_assistant"]
    words = vocabulary(left, right, text)
    for name, value in {**words, **there}.items():
        if name.startswith(("share_", "weighted_")) and value is not None:
            assert 0 <= value <= 1


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
def test_lossless_kinds_lose_nothing(kind: str) -> None:
    assert "loss" not in found(kind).values()


@pytest.mark.parametrize(
    ("kind", "hazard", "level"),
    [
        ("wordpiece", "case", "loss"),
        ("wordpiece", "accents", "loss"),
        ("wordpiece", "decoding", "watch"),
        ("wordpiece", "clean-up", "handled"),
        ("unigram_nfkc", "compatibility characters", "loss"),
        ("unigram_nfkc", "rare characters", "loss"),
        ("unigram_nfkc", "dummy prefix", "handled"),
        ("llama_style", "dummy prefix", "handled"),
        ("metaspace_first", "dummy prefix", "handled"),
        ("byte_level_prefix_space", "dummy prefix", "handled"),
        ("llama_style", "added tokens", "handled"),
        ("gemma_style", "the metaspace", "watch"),
    ],
)
def test_hazards_of_each_kind(kind: str, hazard: str, level: str) -> None:
    assert found(kind)[hazard] == level


@pytest.mark.parametrize(
    ("kind", "hazard"),
    [
        ("byte_level_a", "dummy prefix"),
        ("byte_level_a", "added tokens"),
        ("byte_level_a", "clean-up"),
        ("gemma_style", "dummy prefix"),
        ("byte_level_b", "the metaspace"),
    ],
)
def test_hazards_that_are_not_there(kind: str, hazard: str) -> None:
    assert hazard not in found(kind)


def test_what_is_said_of_a_hazard_shows_it() -> None:
    tokenizer = KINDS["wordpiece"]()
    case = next(h for h in hazards(tokenizer, TokenizerCodec(tokenizer)) if h.kind == "case")
    assert "'Upper CASE'" in case.example
    assert "upper case" in case.example


def test_the_text_itself_is_tried() -> None:
    codec = TokenizerCodec(KINDS["gemma_style"]())
    assert round_trip(codec, "a▁b") == "a b"
    assert found("gemma_style", "a▁b")["the text"] == "loss"
    assert "the text" not in found("gemma_style", "a b")


def test_control_tokens_by_role() -> None:
    roles = control_tokens(byte_level_a(), TokenizerCodec(byte_level_a()))
    assert roles["bos"] == {"token": "<|im_start|>", "id": 1}
    assert roles["eos"] == roles["pad"] == roles["end_of_turn"]
    assert roles["eos"] == {"token": "<|im_end|>", "id": 2}
    assert roles["unk"] is None
    assert roles["chat_template"]


def test_without_a_template_there_are_no_turns() -> None:
    def same(document):
        pass

    bare = variant(byte_level_a(), same)
    bare.chat_template = None
    roles = control_tokens(bare, TokenizerCodec(bare))
    assert not roles["chat_template"]
    assert roles["end_of_turn"] is None


def test_a_long_text_is_shortened_and_says_so() -> None:
    report = pair_report(byte_level_a(), byte_level_a(), "word " * MAX_TEXT)
    assert report["text"] == {"given": True, "characters": MAX_TEXT, "shortened": True}


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_without_a_text_a_sample_is_used(text) -> None:
    report = pair_report(byte_level_a(), KINDS["gemma_style"](), text)
    assert not report["text"]["given"]
    assert report["fertility"]["target"]["tokens"] > 100


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_a_report_is_plain_values(kind: str) -> None:
    report = pair_report(KINDS[kind](), byte_level_a())
    assert json.loads(json.dumps(report, allow_nan=False)) == report
