"""The assistant's view of the text: brought up to date cheaply, and always text."""

from __future__ import annotations

import codecs
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.reference import codec_of, faithful, joined, text_ids
from tests.fixtures.strategies import any_bytes, some_text
from tests.fixtures.texts import AWKWARD
from tests.fixtures.tokenizers import CORE_KINDS, KINDS, LOSSLESS_KINDS, ORDERED_PAIRS
from uag_core.tokenization import AssistantLedger

# How far beyond the look-behind a window may reach to start at a whole character.
SLACK = 8


def seen(chunks: list[bytes]) -> str:
    """Text that is complete after these chunks: what an assistant should have read."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return "".join(decoder.decode(chunk) for chunk in chunks)


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@given(chunks=st.lists(any_bytes, max_size=8), lookbehind=st.integers(0, 12))
def test_ids_always_spell_the_text_so_far(kind: str, chunks: list[bytes], lookbehind: int) -> None:
    codec = codec_of(kind)
    prompt = codec.encode("A prompt: ")
    ledger = AssistantLedger(codec, prompt, lookbehind)
    for count, chunk in enumerate(chunks, 1):
        ledger.feed(chunk)
        ledger.sync()
        expected = b"A prompt: " + faithful(kind, seen(chunks[:count]))
        assert joined(codec, ledger.ids) == expected
        assert not any(codec.is_control(i) for i in ledger.ids)


@pytest.mark.parametrize("kind", KINDS)
@given(chunks=st.lists(any_bytes, max_size=8))
def test_sync_tells_truly_which_ids_are_unchanged(kind: str, chunks: list[bytes]) -> None:
    ledger = AssistantLedger(codec_of(kind), codec_of(kind).encode("A prompt: "), 10)
    for chunk in chunks:
        before = list(ledger.ids)
        ledger.feed(chunk)
        same = ledger.sync()
        assert ledger.ids[:same] == before[:same]
        assert same == len(before) or ledger.ids[: same + 1] != before[: same + 1]


@pytest.mark.parametrize("kind", KINDS)
@given(chunks=st.lists(some_text, min_size=1, max_size=10), lookbehind=st.integers(1, 12))
def test_sync_rewrites_only_a_short_tail(kind: str, chunks: list[str], lookbehind: int) -> None:
    ledger = AssistantLedger(codec_of(kind), codec_of(kind).encode("A prompt: "), lookbehind)
    for chunk in chunks:
        before = len(ledger.ids)
        ledger.feed(chunk.encode())
        assert ledger.sync() >= before - lookbehind - SLACK


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
def test_words_fed_one_by_one_give_the_ids_of_the_whole_text(kind: str) -> None:
    codec = codec_of(kind)
    text = "The capital of France is Paris, and the river that runs through it is called the Seine."
    ledger = AssistantLedger(codec, [], 10)
    for word in text.replace(" ", "\x1f ").split("\x1f"):
        ledger.feed(word.encode())
        ledger.sync()
    assert ledger.ids == codec.encode(text)


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@pytest.mark.parametrize("text", AWKWARD)
def test_text_fed_byte_by_byte_is_read_in_full(kind: str, text: str) -> None:
    codec = codec_of(kind)
    ledger = AssistantLedger(codec, codec.encode("x"), 10)
    for byte in text.encode():
        ledger.feed(bytes([byte]))
        ledger.sync()
    assert joined(codec, ledger.ids) == b"x" + faithful(kind, text)
    assert ledger.pending == b""


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_a_half_character_is_pending_and_not_read(kind: str) -> None:
    ledger = AssistantLedger(codec_of(kind), codec_of(kind).encode("ab"), 10)
    before = list(ledger.ids)
    ledger.feed("🦙".encode()[:3])
    ledger.sync()
    assert ledger.ids == before
    assert ledger.pending == "🦙".encode()[:3]


@pytest.mark.parametrize("kind", CORE_KINDS)
@given(st.binary(min_size=1, max_size=20))
def test_impossible_bytes_are_read_as_text(kind: str, data: bytes) -> None:
    codec = codec_of(kind)
    ledger = AssistantLedger(codec, codec.encode("ab"), 10)
    ledger.feed(data)
    ledger.feed(b" then")
    ledger.sync()
    joined(codec, ledger.ids).decode()


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_control_tokens_of_the_prompt_are_kept_and_never_reencoded(kind: str) -> None:
    codec, tokenizer = codec_of(kind), KINDS[kind]()
    prompt = [tokenizer.bos_token_id, *codec.encode("say"), tokenizer.eos_token_id]
    ledger = AssistantLedger(codec, prompt, 10)
    ledger.feed(b" hello there")
    assert ledger.sync() == len(prompt)
    assert ledger.ids[: len(prompt)] == prompt


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_a_prompt_ending_in_a_word_merges_with_its_continuation(kind: str) -> None:
    """The last token of a raw prompt may change: `wor` + `ld` is read as `world`."""
    codec = codec_of(kind)
    if not codec.is_exact:
        pytest.skip("without a byte table the prompt stays as it is")
    ledger = AssistantLedger(codec, codec.encode("the wor"), 10)
    ledger.feed(b"d again")
    ledger.sync()
    assert ledger.ids == codec.encode("the word again")


class Counting:
    """Calls an encoder and notes how long the texts are."""

    def __init__(self, encode, lengths: list[int]) -> None:
        self._encode, self._lengths = encode, lengths

    def __call__(self, text: str):
        self._lengths.append(len(text))
        return self._encode(text)

    def __getattr__(self, name: str):
        return getattr(self._encode, name)


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_cost_of_sync_does_not_grow_with_the_text(kind: str, monkeypatch) -> None:
    codec = codec_of(kind)
    ledger = AssistantLedger(codec, codec.encode("x"), 10)
    lengths: list[int] = []
    monkeypatch.setattr(codec, "encode_with_ends", Counting(codec.encode_with_ends, lengths))
    monkeypatch.setattr(ledger, "_encode", Counting(ledger._encode, lengths))
    for _ in range(300):
        ledger.feed(b" word after word")
        ledger.sync()
    assert max(lengths[150:]) <= max(lengths[:150]) <= 150


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@given(chunks=st.lists(some_text, min_size=1, max_size=6), keep=st.integers(1, 20))
def test_a_restart_keeps_the_end_of_the_text_and_goes_on(
    kind: str, chunks: list[str], keep: int
) -> None:
    codec = codec_of(kind)
    ledger = AssistantLedger(codec, codec.encode("A prompt: "), 10)
    for chunk in chunks:
        ledger.feed(chunk.encode())
        ledger.sync()
        ledger.restart(keep)
        assert len(ledger.ids) <= keep
    ledger.feed(b" the end")
    ledger.sync()
    assert joined(codec, ledger.ids).endswith(b" the end")
    text = b"A prompt: " + faithful(kind, "".join(chunks)) + b" the end"
    assert text.endswith(joined(codec, ledger.ids))


@pytest.mark.parametrize(("target", "assistant"), ORDERED_PAIRS)
@given(data=st.data())
def test_the_assistant_reads_what_the_target_committed(
    target: str, assistant: str, data: st.DataObject
) -> None:
    """Every ordered pair: target ids, one at a time, however odd, reach the assistant as text."""
    codec, reader = codec_of(target), codec_of(assistant)
    ids = data.draw(st.lists(st.sampled_from(text_ids(codec)), max_size=10))
    pieces = codec.pieces(ids)
    ledger = AssistantLedger(reader, [], 10)
    for piece in pieces:
        ledger.feed(piece)
        ledger.sync()
    if assistant in LOSSLESS_KINDS:
        assert joined(reader, ledger.ids) == faithful(assistant, seen(pieces))


@pytest.mark.parametrize(
    "text", ["½ cup ½", "5 ㎏ of ﬁne ﬂour", "ｆｕｌｌ width", "Ⅷ and Ⅸ ½½½½½½"]
)
def test_text_that_a_normaliser_expands_is_read_in_full(text: str) -> None:
    """One character may become several tokens; no window starts between them."""
    codec = codec_of("unigram_nfkc")
    for lookbehind in range(1, 8):
        ledger = AssistantLedger(codec, codec.encode("x"), lookbehind)
        for char in text:
            ledger.feed(char.encode())
            ledger.sync()
        assert joined(codec, ledger.ids).decode() == "x" + unicodedata.normalize("NFKC", text)
