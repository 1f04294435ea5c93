"""Events are plain values: they can be written, read back, pickled and compared."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, fields
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uag_core import events
from uag_core.events import (
    Drafted,
    Event,
    Finished,
    Notice,
    Piece,
    Started,
    Verified,
    from_json,
    to_json,
)

seconds = st.floats(0, 1e6, allow_nan=False)
counts = st.integers(0, 10**6)
words = st.text(max_size=12)
pieces = st.builds(
    Piece, id=counts, data=st.binary(max_size=6).map(bytes.hex), control=st.booleans()
)
tuples_of_pieces = st.lists(pieces, max_size=4).map(tuple)
optional_count = st.none() | counts

started = st.builds(
    Started,
    engine=words,
    num_prompt_tokens_target=counts,
    num_prompt_tokens_assistant=optional_count,
    max_new_tokens=counts,
    width=optional_count,
    cache_length=optional_count,
    exact=st.booleans(),
    seed=optional_count,
    path=st.sampled_from([None, "text", "ids"]),
    notices=st.lists(words, max_size=3).map(tuple),
)
drafted = st.builds(
    Drafted,
    round=counts,
    draft=tuples_of_pieces,
    confidences=st.lists(st.floats(0, 1), max_size=4).map(tuple),
    candidates=tuples_of_pieces,
    source=words,
    draft_s=seconds,
    reencode_s=seconds,
    t=seconds,
)
verified = st.builds(
    Verified,
    round=counts,
    tokens=tuples_of_pieces,
    origins=st.lists(st.sampled_from(get_args(events.Origin)), max_size=4).map(tuple),
    text=words,
    num_draft_tokens=counts,
    num_candidates=counts,
    num_accepted=counts,
    draft_s=seconds,
    reencode_s=seconds,
    verify_s=seconds,
    other_s=seconds,
    t=seconds,
)
finished = st.builds(
    Finished,
    finish_reason=st.sampled_from(get_args(events.FinishReason)),
    token_ids=st.lists(counts, max_size=5).map(tuple),
    text=words,
    num_target_forwards=counts,
    prefill_s=seconds,
    draft_s=seconds,
    reencode_s=seconds,
    verify_s=seconds,
    other_s=seconds,
    wall_s=seconds,
    ttft_s=st.none() | seconds,
    t=seconds,
    top2_gap=st.none() | seconds,
)
notices = st.builds(Notice, message=words, t=seconds)
every_event = st.one_of(started, drafted, verified, finished, notices)


@given(every_event)
def test_json_gives_the_same_event_back(event: Event) -> None:
    text = json.dumps(to_json(event), allow_nan=False)
    assert from_json(json.loads(text)) == event


@given(every_event)
def test_pickle_gives_the_same_event_back(event: Event) -> None:
    assert pickle.loads(pickle.dumps(event)) == event


@given(every_event)
def test_json_names_the_type_and_every_field(event: Event) -> None:
    data = to_json(event)
    assert data["type"] == type(event).__name__
    assert set(data) == {"type", *(field.name for field in fields(event))}


@given(every_event)
def test_reading_does_not_change_the_document(event: Event) -> None:
    data = json.loads(json.dumps(to_json(event)))
    before = json.dumps(data)
    from_json(data)
    assert json.dumps(data) == before


@pytest.mark.parametrize(
    "data", [{}, {"type": "Nonsense"}, {"type": "Notice"}, {"type": "Notice", "colour": "red"}]
)
def test_documents_that_are_no_events_are_refused(data: dict) -> None:
    with pytest.raises((KeyError, TypeError)):
        from_json(data)


def test_keys_of_a_later_version_are_left_out() -> None:
    piece = {"id": 1, "data": "61", "control": False, "shade": 1}
    data = to_json(Verified(0, (Piece(1, "61"),), ("prefill",), "a", 0, 0, 0, 0, 0, 0, 0, 0))
    assert from_json({**data, "tokens": [piece], "later": 1}) == from_json(data)


def test_events_cannot_be_changed() -> None:
    event = Notice("something")
    with pytest.raises((FrozenInstanceError, TypeError, AttributeError)):
        event.message = "else"


def test_a_piece_holds_bytes_that_are_no_text() -> None:
    piece = Piece(7, b"\xf0\x9f".hex())
    assert piece.raw == b"\xf0\x9f"
