"""Encoding text that continues another text; telling tokenizers apart; not touching them."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given

from tests.fixtures import tokenizers
from tests.fixtures.reference import codec_of, faithful, joined
from tests.fixtures.strategies import texts
from tests.fixtures.texts import AWKWARD, CONTROL_SPELLINGS
from tests.fixtures.tokenizers import KINDS, LOSSLESS_KINDS
from uag_core.errors import UnsupportedModelError
from uag_core.tokenization import TokenizerCodec


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@given(text=texts)
def test_any_text_comes_back_byte_for_byte(kind: str, text: str) -> None:
    codec = codec_of(kind)
    assert joined(codec, codec.encode(text)) == faithful(kind, text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", " ", "hello", " hello", "\n", "x y"])
def test_encoding_adds_no_special_token(kind: str, text: str) -> None:
    codec = codec_of(kind)
    assert not any(codec.is_control(i) for i in codec.encode(text))


@pytest.mark.parametrize(
    "kind", ["llama_style", "metaspace_first", "byte_level_prefix_space", "unigram_nfkc"]
)
def test_encoding_puts_no_dummy_space_in_front(kind: str) -> None:
    codec = codec_of(kind)
    assert joined(codec, codec.encode("return")) == b"return"
    assert joined(codec, codec.encode(" return")) == b" return"
    assert codec.encode("return") != codec.encode(" return")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spelling", CONTROL_SPELLINGS)
def test_control_strings_typed_as_text_stay_text(kind: str, spelling: str) -> None:
    codec = codec_of(kind)
    for text in (spelling, f"a{spelling}b", f"a {spelling} b", spelling * 2):
        ids = codec.encode(text)
        assert not {i for i in ids if codec.is_control(i)} - {codec.unknown_id}
        if kind in LOSSLESS_KINDS:
            assert joined(codec, ids) == text.encode()


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
def test_ends_grow_and_reach_the_end_of_the_text(kind: str, text: str) -> None:
    codec = codec_of(kind)
    ids, ends = codec.encode_with_ends(text)
    assert ids == codec.encode(text)
    assert len(ends) == len(ids)
    assert ends == sorted(ends)
    if ids:
        assert ends[-1] == len(text.encode())


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@given(text=texts)
def test_ends_are_where_the_bytes_of_each_token_end(kind: str, text: str) -> None:
    codec = codec_of(kind)
    text = text.replace("▁", "_")  # which SentencePiece styles cannot tell from a space
    ids, ends = codec.encode_with_ends(text)
    for count, end in enumerate(ends, 1):
        assert joined(codec, ids[:count]) == text.encode()[:end]


@pytest.mark.parametrize("kind", ["wordpiece", "unigram_nfkc"])
@pytest.mark.parametrize("text", ["the word 'social'", "x != y", "hello !", "do n't"])
def test_clean_up_never_removes_a_space(kind: str, text: str) -> None:
    codec = codec_of(kind)
    assert KINDS[kind]().clean_up_tokenization_spaces
    ids = codec.encode(text)
    assert joined(codec, ids).count(b" ") >= text.count(" ")
    if kind == "unigram_nfkc":
        assert joined(codec, ids) == text.encode()


@pytest.mark.parametrize("kind", KINDS)
def test_the_tokenizer_itself_is_not_changed(kind: str) -> None:
    tokenizer = KINDS[kind]()
    backend = tokenizer.backend_tokenizer
    before = backend.to_str(), backend.encode_special_tokens
    codec = TokenizerCodec(tokenizer)
    codec.encode("a<|im_end|>b")
    codec.pieces(codec.encode("hello world"))
    assert (backend.to_str(), backend.encode_special_tokens) == before


def test_truncation_and_padding_of_the_tokenizer_do_not_reach_the_codec() -> None:
    tokenizer = tokenizers.variant(tokenizers.byte_level_a(), lambda document: None)
    tokenizer.backend_tokenizer.enable_truncation(max_length=4)
    tokenizer.backend_tokenizer.enable_padding(length=64)
    codec = TokenizerCodec(tokenizer)
    text = "The capital of France is Paris, and more."
    assert joined(codec, codec.encode(text)) == text.encode()
    assert codec.fingerprint == codec_of("byte_level_a").fingerprint


def test_a_codec_serves_many_threads_at_once() -> None:
    codec = TokenizerCodec(tokenizers.byte_level_a())
    expected = {text: codec.encode(text) for text in AWKWARD}
    failures: list[object] = []

    def work() -> None:
        try:
            for index in range(200):
                text = AWKWARD[index % len(AWKWARD)]
                if codec.encode(text) != expected[text]:
                    failures.append(text)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []


def test_equal_tokenizers_have_equal_fingerprints() -> None:
    copy = tokenizers.variant(tokenizers.byte_level_a(), lambda document: None)
    assert TokenizerCodec(copy).fingerprint == codec_of("byte_level_a").fingerprint


@pytest.mark.parametrize(
    "other",
    [
        tokenizers.same_size_other_ids,
        tokenizers.renamed_added_token,
        tokenizers.with_think_token,
        tokenizers.byte_level_b,
        tokenizers.gemma_style,
    ],
)
def test_different_tokenizers_have_different_fingerprints(other) -> None:
    assert TokenizerCodec(other()).fingerprint != codec_of("byte_level_a").fingerprint


def test_equal_size_does_not_make_tokenizers_equal() -> None:
    left, right = tokenizers.byte_level_a(), tokenizers.same_size_other_ids()
    assert len(left) == len(right)
    assert TokenizerCodec(left).fingerprint != TokenizerCodec(right).fingerprint


def test_the_way_a_prompt_is_padded_does_not_make_tokenizers_different() -> None:
    """A post-processor adds BOS to prompts; text in the middle is encoded alike."""

    def change(document) -> None:
        document["post_processor"] = None

    other = tokenizers.variant(tokenizers.gemma_style(), change)
    assert TokenizerCodec(other).fingerprint == codec_of("gemma_style").fingerprint


def test_a_slow_tokenizer_is_refused_with_a_reason() -> None:
    class Slow:
        pass

    with pytest.raises(UnsupportedModelError, match="no fast version"):
        TokenizerCodec(Slow())


@pytest.mark.parametrize("kind", KINDS)
def test_has_unknown_tells_kinds_without_byte_fallback(kind: str) -> None:
    assert codec_of(kind).has_unknown == (kind in ("unigram_nfkc", "wordpiece"))
