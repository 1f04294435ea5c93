"""Between the assistant's tokens and the target's, while a character is half committed."""

from __future__ import annotations

import pytest

from tests.fixtures.models import tiny
from tests.fixtures.reference import codec_of, joined
from tests.fixtures.runs import FIXED, PROMPT, plain, prompt_of, raw_ids, settings_of
from uag_core.decoding.bridges import IdBridge, TextBridge
from uag_core.decoding.engines import Engines
from uag_core.decoding.proposers import AssistantProposer
from uag_core.events import Drafted
from uag_core.tokenization import TargetLedger

SIGN = "𒎗".encode()  # four byte pieces in a vocabulary with byte fallback


def half_committed(target_kind: str, assistant_kind: str, count: int = 2):
    """A ledger and a bridge after `count` bytes of a four-byte character were committed."""
    codec = codec_of(target_kind)
    bridge = TextBridge(codec_of(assistant_kind), codec_of(assistant_kind).encode("say "), 10)
    ledger = TargetLedger(codec, codec.encode("say "), 10)
    ids = codec.encode("𒎗")
    assert len(ids) == 4, "byte by byte"
    pieces = [ledger.append(i) for i in ids[:count]]
    bridge.commit(ids[:count], pieces)
    bridge.sync()
    return ledger, bridge


@pytest.mark.parametrize("assistant", ["byte_level_a", "byte_level_b", "gemma_style"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_draft_that_begins_with_the_half_character_continues_it(
    assistant: str, count: int
) -> None:
    """The assistant has not read the half: its draft repeats it, the candidates do not."""
    ledger, bridge = half_committed("llama_style", assistant, count)
    draft = codec_of(assistant).encode("𒎗 and")
    candidates = bridge.candidates(ledger, draft, bridge.pieces(draft), 20)
    assert joined(ledger.codec, candidates, ledger.ids) == SIGN[count:] + b" and"


@pytest.mark.parametrize("text", ["歪 and", "other", "🙂"])
def test_a_draft_of_another_character_is_dropped(text: str) -> None:
    ledger, bridge = half_committed("llama_style", "byte_level_a", 3)
    draft = codec_of("byte_level_a").encode(text)
    assert bridge.candidates(ledger, draft, bridge.pieces(draft), 20) == []


def test_a_draft_that_was_cut_short_is_not_whole() -> None:
    """An end of turn may follow only a draft that the candidates stand for in full."""
    codec = codec_of("gemma_style")
    ledger = TargetLedger(codec, codec.encode("say"), 10)
    bridge = TextBridge(codec_of("byte_level_a"), codec_of("byte_level_a").encode("say"), 10)
    draft = codec_of("byte_level_a").encode(" hello world")
    pieces = bridge.pieces(draft)
    full = bridge.candidates(ledger, draft, pieces, 20)
    assert bridge.is_whole(full, ledger, pieces)
    assert not bridge.is_whole(full[:-1], ledger, pieces)
    assert not bridge.is_whole(full, ledger, [*pieces, SIGN[:2]])


def test_ids_of_the_same_tokenizer_pass_as_they_are() -> None:
    codec = codec_of("byte_level_a")
    ids = codec.encode("say")
    ledger = TargetLedger(codec, ids, 10)
    bridge = IdBridge(codec, ids)
    assert bridge.candidates(ledger, [5, 6, 7], [b"", b"", b""], 2) == [5, 6]
    bridge.commit([9], [b"x"])
    assert bridge.sync() == len(ids)
    assert bridge.ids == [*ids, 9]
    assert bridge.sync() == len(ids) + 1


@pytest.mark.parametrize("path", ["text", "ids"])
def test_drafts_are_those_of_an_assistant_that_reads_everything_anew(path: str) -> None:
    """Refused drafts leave nothing in the assistant's cache."""
    target = tiny()
    kind = "byte_level_a" if path == "ids" else "gemma_style"
    assistant = tiny(kind, seed=3, padding_rows=0)
    ids, own = raw_ids(target, PROMPT), raw_ids(assistant, PROMPT)
    codec = assistant.codec
    bridge = IdBridge(codec, own) if path == "ids" else TextBridge(codec, own, 10)
    proposer = AssistantProposer(assistant, bridge, capacity=64, target_eos_id=None)
    rounds = 0
    for event in Engines(target, None).assisted(
        prompt_of(target, ids),
        settings_of(24),
        FIXED,
        exact=True,
        width=None,
        make_proposer=lambda: proposer,
    ):
        if isinstance(event, Drafted):
            fresh = plain(assistant, list(bridge.ids), settings_of(len(event.draft))).ids
            assert tuple(piece.id for piece in event.draft) == fresh
            rounds += 1
    assert rounds > 10
