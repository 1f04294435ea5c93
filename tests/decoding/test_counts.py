"""Counts add up, provenance is true, and events are plain values."""

from __future__ import annotations

import json
import pickle

import pytest

from tests.fixtures.models import tiny
from tests.fixtures.proposers import PROPOSERS, catalogue
from tests.fixtures.runs import (
    PROMPT,
    Run,
    assisted,
    plain,
    prompt_ids,
    scripted,
    settings_of,
)
from uag_core import metrics
from uag_core.events import Verified, from_json, to_json


def some_runs() -> dict[str, Run]:
    target, ids, settings = tiny(), prompt_ids(), settings_of(40)
    expected = plain(target, ids, settings)
    runs = {
        name: scripted(target, ids, settings, proposer)
        for name, proposer in catalogue(target, expected.ids).items()
    }
    runs["plain"] = expected
    runs["model"] = assisted(target, tiny("byte_level_b"), PROMPT, settings_of(30))
    runs["self"] = assisted(target, target, PROMPT, settings_of(30))
    return runs


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return some_runs()


@pytest.mark.parametrize("name", [*PROPOSERS, "plain", "model", "self"])
def test_emitted_tokens_are_one_and_those_of_the_rounds(runs, name: str) -> None:
    run = runs[name]
    verified = run.of(Verified)
    assert verified[0].round == 0
    assert len(verified[0].tokens) == 1
    assert [e.round for e in verified] == list(range(len(verified)))
    assert len(run.ids) == 1 + sum(len(event.tokens) for event in run.rounds)
    assert tuple(piece.id for event in verified for piece in event.tokens) == run.ids


@pytest.mark.parametrize("name", [*PROPOSERS, "plain", "model", "self"])
def test_origins_add_up(runs, name: str) -> None:
    run = runs[name]
    assert run.of(Verified)[0].origins == ("prefill",)
    for event in run.rounds:
        assert len(event.origins) == len(event.tokens)
        accepted, rest = event.origins[: event.num_accepted], event.origins[event.num_accepted :]
        assert set(accepted) <= {"accepted"}
        if not rest:  # a stop inside the block
            assert event is run.rounds[-1]
        elif event.num_candidates == 0:
            assert rest == ("plain",)
        elif event.num_accepted == event.num_candidates:
            assert rest == ("bonus",)
        else:
            assert rest == ("corrected",)


@pytest.mark.parametrize("name", [*PROPOSERS, "model", "self"])
def test_accepted_tokens_are_those_that_were_proposed(runs, name: str) -> None:
    """Provenance against the log: what is marked accepted was a candidate of its round."""
    run = runs[name]
    drafted = {event.round: [piece.id for piece in event.candidates] for event in run.drafted}
    for event in run.rounds:
        proposed = drafted.get(event.round, [])
        emitted = [piece.id for piece in event.tokens]
        assert emitted[: event.num_accepted] == proposed[: event.num_accepted]
        if "corrected" in event.origins:
            assert emitted[-1] != proposed[event.num_accepted]


@pytest.mark.parametrize("name", [*PROPOSERS, "plain", "model", "self"])
def test_every_round_is_one_target_forward(runs, name: str) -> None:
    run = runs[name]
    assert run.finished.num_target_forwards == 1 + len(run.rounds)


def test_a_perfect_draft_needs_few_target_forwards(runs) -> None:
    perfect, alone = runs["perfect"].finished, runs["plain"].finished
    assert perfect.num_target_forwards <= 1 + -(-39 // 6)
    assert alone.num_target_forwards == 40


def test_perfect_is_all_accepted_and_always_wrong_none(runs) -> None:
    assert runs["perfect"].accepted == runs["perfect"].candidates > 0
    assert runs["always_wrong"].accepted == 0 < runs["always_wrong"].candidates
    assert {o for e in runs["always_wrong"].rounds for o in e.origins} <= {"corrected", "plain"}


def test_ids_outside_the_vocabulary_never_reach_the_target(runs) -> None:
    rows = tiny().embedding_rows
    run = runs["outside_ids"]
    assert run.candidates > 0
    for event in run.drafted:
        assert all(0 <= piece.id < rows for piece in event.candidates)


@pytest.mark.parametrize("name", [*PROPOSERS, "plain", "model", "self"])
def test_the_metrics_of_a_run_agree_with_its_events(runs, name: str) -> None:
    run = runs[name]
    data = metrics.summarize(run.events)
    assert data["num_new_tokens"] == len(run.ids)
    assert data["num_rounds"] == data["num_target_forwards"] - 1
    assert data["num_draft_rounds"] == sum(1 for event in run.rounds if event.num_candidates)
    assert data["num_candidate_tokens"] == run.candidates
    assert data["num_accepted_tokens"] == run.accepted
    ends = sum(o in ("bonus", "corrected", "plain") for e in run.rounds for o in e.origins)
    assert data["num_new_tokens"] == 1 + run.accepted + ends
    assert data["tokens_per_round"] == pytest.approx((len(run.ids) - 1) / len(run.rounds))
    histogram = data["acceptance_histogram"]
    assert sum(histogram) == data["num_draft_rounds"]
    assert sum(n * count for n, count in enumerate(histogram)) == run.accepted
    if run.candidates:
        assert data["acceptance_rate"] == pytest.approx(run.accepted / run.candidates)
        tau = 1 + run.accepted / data["num_draft_rounds"]
        assert data["mean_acceptance_length"] == pytest.approx(tau)
        assert sum(data["acceptance_per_position"]) == pytest.approx(tau - 1)
    else:
        assert data["acceptance_rate"] is None


@pytest.mark.parametrize("name", [*PROPOSERS, "plain", "model", "self"])
def test_times_are_complete_and_ordered(runs, name: str) -> None:
    run = runs[name]
    done = run.finished
    parts = (done.prefill_s, done.draft_s, done.reencode_s, done.verify_s, done.other_s)
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(done.wall_s, rel=0.01)
    moments = [event.t for event in run.events if hasattr(event, "t")]
    assert moments == sorted(moments)
    assert 0 < done.ttft_s <= done.wall_s
    assert done.ttft_s == run.of(Verified)[0].t
    assert done.verify_s == pytest.approx(sum(event.verify_s for event in run.rounds))
    assert done.draft_s == pytest.approx(sum(event.draft_s for event in run.rounds))


@pytest.mark.parametrize("name", [*PROPOSERS, "plain", "model", "self"])
def test_streamed_text_is_the_final_text(runs, name: str) -> None:
    run = runs[name]
    streamed = "".join(event.text for event in run.of(Verified))
    rest = run.text.removeprefix(streamed)
    assert run.text.startswith(streamed)
    assert rest in ("", "\ufffd"), "only an unfinished character may come at the end"
    pieces = b"".join(tiny().codec.pieces(run.ids))
    assert run.text == pieces.decode("utf-8", "replace")


@pytest.mark.parametrize("name", [*PROPOSERS, "plain", "model", "self"])
def test_events_survive_json_and_pickle(runs, name: str) -> None:
    for event in runs[name].events:
        assert from_json(json.loads(json.dumps(to_json(event), allow_nan=False))) == event
        assert pickle.loads(pickle.dumps(event)) == event


def test_draft_and_candidates_are_counted_in_their_own_vocabularies() -> None:
    target, assistant = tiny("gemma_style"), tiny("byte_level_a", seed=5)
    run = assisted(target, assistant, PROMPT, settings_of(30))
    assert run.drafted
    for event in run.drafted:
        assert len(event.confidences) == len(event.draft) <= 5
        assert all(0 <= confidence <= 1 for confidence in event.confidences)
        assert all(0 <= piece.id < assistant.codec.size for piece in event.draft)
        raw = b"".join(piece.raw for piece in event.draft)
        assert b"".join(piece.raw for piece in event.candidates) in raw
    verified = {event.round: event for event in run.rounds}
    for event in run.drafted:
        assert verified[event.round].num_draft_tokens == len(event.draft)
