"""Draft bytes become target candidates without touching what is committed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.reference import codec_of, faithful, joined, text_ids
from tests.fixtures.strategies import any_bytes, ids_of, some_text
from tests.fixtures.texts import CONTROL_SPELLINGS
from tests.fixtures.tokenizers import CORE_KINDS, KINDS, LOSSLESS_KINDS, ORDERED_PAIRS
from uag_core.tokenization import TargetLedger, reencode
from uag_core.tokenization.ledger import complete_text

NO_LIMIT = 10_000
# Kinds that write rare characters as single bytes.
SENTENCEPIECE = ("llama_style", "metaspace_first", "gemma_style")


def ledger_of(kind: str, committed: str | list[int], lookbehind: int = 10) -> TargetLedger:
    codec = codec_of(kind)
    ids = codec.encode(committed) if isinstance(committed, str) else committed
    return TargetLedger(codec, ids, lookbehind)


def proposed(kind: str, committed: str | list[int], draft: str | bytes) -> bytes:
    data = draft.encode() if isinstance(draft, str) else draft
    ledger = ledger_of(kind, committed)
    return joined(ledger.codec, reencode(ledger, data, NO_LIMIT), ledger.ids)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_committed_ids_are_never_rewritten(kind: str, data: st.DataObject) -> None:
    codec = codec_of(kind)
    ids = data.draw(ids_of(codec.size))
    ledger = TargetLedger(codec, ids, data.draw(st.integers(0, 12)))
    reencode(ledger, data.draw(any_bytes), NO_LIMIT)
    assert ledger.ids == ids


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_candidates_are_ids_of_text_whatever_is_proposed(kind: str, data: st.DataObject) -> None:
    codec = codec_of(kind)
    ids = data.draw(ids_of(codec.size))
    limit = data.draw(st.integers(0, 8))
    candidates = reencode(TargetLedger(codec, ids, 10), data.draw(any_bytes), limit)
    assert len(candidates) <= limit
    assert all(0 <= i < codec.size and not codec.is_control(i) for i in candidates)
    assert codec.unknown_id not in candidates


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@given(committed=some_text, draft=some_text)
def test_candidates_spell_the_draft_behind_any_text(kind: str, committed: str, draft: str) -> None:
    assert proposed(kind, committed, draft) == faithful(kind, draft)


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@given(data=st.data())
def test_candidates_spell_the_draft_behind_any_ids(kind: str, data: st.DataObject) -> None:
    """Committed ids need not be what the tokenizer would choose, nor even be text."""
    codec = codec_of(kind)
    ids = data.draw(ids_of(codec.size))
    draft = data.draw(any_bytes)
    whole = complete_text(draft)
    candidates = joined(codec, reencode(TargetLedger(codec, ids, 10), draft, NO_LIMIT), ids)
    committed = joined(codec, ids)
    if not whole:
        # Only bytes that finish a committed character may be proposed, and none are needed.
        assert draft.startswith(candidates)
        complete_text(committed + candidates)
    else:
        assert candidates == faithful(kind, whole.decode())


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@given(text=some_text, cut=st.integers(0, 400), committed=some_text)
def test_an_unfinished_character_at_the_end_is_held_back(
    kind: str, text: str, cut: int, committed: str
) -> None:
    data = text.encode()
    data = data[: cut % (len(data) + 1)]
    whole = data.decode("utf-8", "ignore")
    assert proposed(kind, committed, data) == faithful(kind, whole)


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@pytest.mark.parametrize("char", ["歪", "🦙", "🦙🏿", "ጠ", "𒎗", "é"])
def test_a_draft_of_half_a_character_proposes_no_replacement(kind: str, char: str) -> None:
    data = char.encode()
    for cut in range(1, len(data)):
        result = proposed(kind, "Repeat: ", data[:cut])
        assert "\ufffd".encode() not in result
        assert data.startswith(result)


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
def test_a_complete_replacement_character_may_be_proposed(kind: str) -> None:
    assert proposed(kind, "x", "\ufffdy") == "\ufffdy".encode()


@pytest.mark.parametrize("kind", SENTENCEPIECE)
@pytest.mark.parametrize("char", ["🦙", "𒎗", "ጠ"])
def test_a_committed_half_character_is_finished_with_byte_pieces(kind: str, char: str) -> None:
    """Byte-fallback vocabularies write rare characters byte by byte: nothing stands in the way."""
    codec = codec_of(kind)
    tokens = [codec.encode("hello"), codec.encode(char)]
    pieces = codec.pieces(tokens[1])
    for count in range(1, len(pieces)):
        ids = [*tokens[0], *tokens[1][:count]]
        rest = b"".join(pieces[count:])
        assert proposed(kind, ids, rest + b" and more") == rest + b" and more"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spelling", CONTROL_SPELLINGS)
def test_control_strings_in_a_draft_stay_text(kind: str, spelling: str) -> None:
    codec = codec_of(kind)
    draft = f"{spelling} and".encode()
    candidates = reencode(ledger_of(kind, "it says "), draft, NO_LIMIT)
    assert not any(codec.is_control(i) for i in candidates)
    if kind in LOSSLESS_KINDS:
        assert joined(codec, candidates) == draft


@pytest.mark.parametrize(
    ("committed", "draft"),
    [
        ("def f():\n", "    return 1"),
        ("def f():", "\n    return 1"),
        ("", "hello"),
        ("", " hello"),
        ("word", " hello"),
        ("word ", " hello"),
        ("line\r", "\nnext"),
        ("line\r\n", "\r\n\r\n"),
        ("tab\t", "\tx"),
        ("many    ", "    spaces"),
        ("e", "\u0301 accent"),
        ("\u0301", "\u0302"),
        ("❤", "\ufe0f!"),
        ("👩‍", "👩‍👧"),
        ("hel", "lo"),
        ("\n", "\n"),
        (" ", " "),
    ],
)
@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
def test_nothing_is_lost_or_added_at_the_seam(kind: str, committed: str, draft: str) -> None:
    assert proposed(kind, committed, draft) == draft.encode()


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
def test_ids_that_are_not_canonical_stay_and_are_followed(kind: str) -> None:
    """`hel` + `lo` is never turned into `hello`."""
    codec = codec_of(kind)
    ids = [*codec.encode("the hel"), *codec.encode("lo")]
    assert ids != codec.encode("the hello")
    ledger = TargetLedger(codec, ids, 10)
    assert joined(codec, reencode(ledger, b" world again", NO_LIMIT), ids) == b" world again"
    assert ledger.ids == ids


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
@given(text=some_text, share=st.floats(0, 1))
def test_canonical_text_is_continued_as_the_tokenizer_would(
    kind: str, text: str, share: float
) -> None:
    """A perfect draft, cut at a token boundary, gives back the canonical ids, if they are whole."""
    codec = codec_of(kind)
    ids, ends = codec.encode_with_ends(text)
    count = int(share * len(ids))
    data = text.encode()
    end = ends[count - 1] if count else 0
    if "▁" in text or complete_text(data[:end]) != data[:end] or not ids[count:]:
        return
    window = TargetLedger(codec, ids[:count], len(ids))  # wide enough to see everything
    assert reencode(window, data[end:], NO_LIMIT) == ids[count:]


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
def test_a_merge_across_the_seam_is_found_in_a_short_window(kind: str) -> None:
    codec = codec_of(kind)
    text = "The capital of France is Paris, and the river that runs through it"
    ids, ends = codec.encode_with_ends(text)
    for count in range(1, len(ids)):
        ledger = TargetLedger(codec, ids[:count], 10)
        assert reencode(ledger, text.encode()[ends[count - 1] :], NO_LIMIT) == ids[count:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lookbehind", [0, 1, 10])
def test_any_look_behind_and_any_prompt_length_works(kind: str, lookbehind: int) -> None:
    codec = codec_of(kind)
    words = codec.encode("the cat in the end is a word and then some more of them and so on")
    for count in range(13):
        ledger = TargetLedger(codec, words[:count], lookbehind)
        candidates = reencode(ledger, b" and then", NO_LIMIT)
        assert joined(codec, candidates, ledger.ids).strip() == b"and then"


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_work_does_not_grow_with_the_text(kind: str) -> None:
    """The window stays as short for a long text as for a short one."""
    codec = codec_of(kind)
    sizes = []
    for repeats in (1, 200):
        ids = codec.encode("the word and more of it. " * repeats)
        start, pieces = TargetLedger(codec, ids, 10).window()
        assert start == len(ids) - len(pieces)
        sizes.append(len(pieces))
    assert max(sizes) <= 14


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_the_window_never_reaches_across_a_control_token(kind: str) -> None:
    codec = codec_of(kind)
    eos = KINDS[kind]().eos_token_id
    ledger = TargetLedger(codec, [*codec.encode("one two"), eos, *codec.encode("a b")], 10)
    start, _ = ledger.window()
    assert eos not in ledger.ids[start:]
    ledger.append(eos)
    assert ledger.window()[1] == []


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_appending_gives_the_same_ledger_as_starting_with_the_ids(kind: str) -> None:
    codec = codec_of(kind)
    ids = codec.encode("The word 'social' and 歪 and x != y  and more")
    grown = TargetLedger(codec, ids[:3], 10)
    data = b"".join(grown.append(i) for i in ids[3:])
    fresh = TargetLedger(codec, ids, 10)
    assert grown.ids == fresh.ids
    assert grown.window() == fresh.window()
    assert data == joined(codec, ids[3:], ids[:3])


@pytest.mark.parametrize(("target", "assistant"), ORDERED_PAIRS)
@given(data=st.data())
def test_drafts_of_any_tokenizer_become_candidates_of_any_other(
    target: str, assistant: str, data: st.DataObject
) -> None:
    """Every ordered pair: drafted ids, cut anywhere, are re-encoded as the text they stand for."""
    codec, drafter = codec_of(target), codec_of(assistant)
    committed = data.draw(some_text)
    draft_ids = data.draw(st.lists(st.sampled_from(text_ids(drafter)), min_size=1, max_size=8))
    draft = joined(drafter, draft_ids)
    ledger = TargetLedger(codec, codec.encode(committed), 10)
    candidates = reencode(ledger, draft, NO_LIMIT)
    assert not any(codec.is_control(i) for i in candidates)
    if target in LOSSLESS_KINDS and complete_text(draft):
        expected = faithful(target, complete_text(draft).decode())
        assert joined(codec, candidates) == expected
