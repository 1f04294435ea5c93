"""The earliest stop wins, wherever it falls in a block; limits are kept to the token."""

from __future__ import annotations

import pytest

from tests.fixtures import proposers
from tests.fixtures.models import tiny
from tests.fixtures.proposers import catalogue
from tests.fixtures.runs import FIXED, SAMPLED, assisted, plain, prompt_ids, scripted, settings_of
from uag_core.config import AssistantConfig
from uag_core.decoding.engines import Engines
from uag_core.decoding.stopping import StopChecker
from uag_core.errors import InputError

WIDE = AssistantConfig(num_assistant_tokens=8)


def answer(count: int = 24, **changes) -> tuple[int, ...]:
    return plain(tiny(), prompt_ids(), settings_of(count, **changes)).ids


def both(settings, *, expected_ids: tuple[int, ...], width: int | None = None):
    """The plain run and a run that a perfect drafter of 8 tokens assists."""
    target, ids = tiny(), prompt_ids()
    return (
        plain(target, ids, settings, width=width),
        scripted(
            target,
            ids,
            settings,
            lambda: proposers.perfect(expected_ids),
            config=WIDE,
            width=width,
        ),
    )


@pytest.mark.parametrize("mode", [{}, SAMPLED])
@pytest.mark.parametrize("position", range(1, 12))
def test_an_end_token_inside_a_block_ends_the_run_there(position: int, mode: dict) -> None:
    full = answer(**mode)
    eos = full[position - 1]
    first = full.index(eos) + 1
    for run in both(settings_of(24, eos_token_ids=(eos,), **mode), expected_ids=full):
        assert run.ids == full[:first]
        assert run.reason == "eos"


def test_each_of_several_end_tokens_ends_the_run() -> None:
    full = answer()
    later, sooner = full[9], full[4]
    for run in both(settings_of(24, eos_token_ids=(later, sooner)), expected_ids=full):
        assert run.ids[-1] in (later, sooner)
        assert len(run.ids) == min(full.index(later), full.index(sooner)) + 1


def test_the_end_token_is_no_part_of_the_text() -> None:
    target = tiny()
    eos = target.tokenizer.eos_token_id
    run = scripted(
        target,
        prompt_ids(),
        settings_of(9, eos_token_ids=(answer()[4],)),
        lambda: proposers.perfect(answer()),
    )
    shown = "".join(piece.raw.decode("utf-8", "replace") for e in run.rounds for piece in e.tokens)
    assert shown
    assert target.codec.piece(eos) == b""


def spelt(ids: tuple[int, ...]) -> bytes:
    return b"".join(tiny().codec.pieces(ids))


@pytest.mark.parametrize("width", [None, 9])
def test_a_stop_string_across_two_tokens_ends_the_run(width: int | None) -> None:
    full = answer()
    pieces = tiny().codec.pieces(full)
    spans = [
        (index, (pieces[index - 1][-1:] + pieces[index][:1]).decode("ascii"))
        for index in range(2, len(full))
        if (pieces[index - 1][-1:] + pieces[index][:1]).isascii()
        and pieces[index - 1]
        and pieces[index]
    ]
    assert spans, "the answer has no two tokens that meet in plain letters"
    for index, stop in spans:
        first = next(n for n in range(1, len(full) + 1) if stop.encode() in spelt(full[:n]))
        assert first <= index + 1
        for run in both(settings_of(24, stop=(stop,)), expected_ids=full, width=width):
            assert run.ids == full[:first]
            assert run.reason == "stop_string"
            assert stop in run.text


def test_a_stop_string_in_the_prompt_is_no_stop() -> None:
    full = answer()
    stop = "Seine"
    assert stop.encode() not in spelt(full)
    for run in both(settings_of(24, stop=(stop,)), expected_ids=full):
        assert run.ids == full
        assert run.reason == "length"


def test_a_stop_before_the_limit_wins_over_the_limit() -> None:
    """Limit 5 with a stop at token 3 of a longer block."""
    full = answer()
    assert full[2] not in full[:2]
    for run in both(settings_of(5, eos_token_ids=(full[2],)), expected_ids=full):
        assert run.ids == full[:3]
        assert run.reason == "eos"


def test_a_stop_at_the_last_allowed_token_is_the_reason() -> None:
    full = answer()
    assert full[4] not in full[:4]
    for run in both(settings_of(5, eos_token_ids=(full[4],)), expected_ids=full):
        assert (run.ids, run.reason) == (full[:5], "eos")


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
@pytest.mark.parametrize("width", [None, 9])
def test_small_limits_are_kept_to_the_token(limit: int, width: int | None) -> None:
    full = answer()
    for run in both(settings_of(limit), expected_ids=full, width=width):
        assert run.ids == full[:limit]
        assert run.reason == "length"


def test_limit_zero_calls_no_model(monkeypatch) -> None:
    def forbidden(*args, **kwargs):
        raise AssertionError("a model was called")

    monkeypatch.setattr(tiny().model, "forward", forbidden)
    for run in both(settings_of(0), expected_ids=()):
        assert run.ids == ()
        assert run.finished.num_target_forwards == 0
        assert run.finished.ttft_s is None


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
@pytest.mark.parametrize("room", [1, 2, 3, 7])
@pytest.mark.parametrize("width", [None, 6])
def test_the_context_ends_the_run(architecture: str, room: int, width: int | None) -> None:
    target = tiny("byte_level_a", architecture)
    ids = (prompt_ids() * 40)[: target.context_length - room]
    settings = settings_of(20)
    expected = plain(target, ids, settings, width=width)
    assert len(expected.ids) == room
    assert expected.reason == "context"
    for name, proposer in catalogue(target, expected.ids).items():
        run = scripted(target, ids, settings, proposer, width=width)
        assert (run.ids, run.reason) == (expected.ids, "context"), name


def test_a_limit_that_just_fits_the_context_is_a_limit() -> None:
    target = tiny("byte_level_a", "gpt2")
    ids = (prompt_ids() * 3)[:60]
    assert plain(target, ids, settings_of(4)).reason == "length"
    assert plain(target, ids, settings_of(5)).reason == "context"


@pytest.mark.parametrize("count", [64, 65, 200])
def test_a_prompt_without_room_for_an_answer_is_refused(count: int) -> None:
    engines = Engines(tiny("byte_level_a", "gpt2"), None)
    with pytest.raises(InputError, match="context"):
        engines.prompt([5] * count, raw=True, system=None)


def test_candidates_past_a_stop_or_a_limit_are_not_counted() -> None:
    full = answer()
    assert full[6] not in full[:6]
    run = both(settings_of(24, eos_token_ids=(full[6],)), expected_ids=full)[1]
    assert [(e.num_candidates, e.num_accepted) for e in run.rounds] == [(6, 6)]
    run = both(settings_of(4), expected_ids=full)[1]
    assert [(e.num_candidates, e.num_accepted) for e in run.rounds] == [(2, 2)]


def test_the_assistants_end_of_turn_becomes_the_targets() -> None:
    """By role: ids and spellings of the two ends differ."""
    from tests.fixtures.reciting import reciting

    text = "Paris, and the river"
    target = reciting("gemma_style", "The capital of France is", text)
    assistant = reciting("byte_level_a", "The capital of France is", text)
    assert target.tokenizer.eos_token != assistant.tokenizer.eos_token
    run = assisted(
        target,
        assistant,
        "The capital of France is",
        settings_of(64, eos_token_ids=None),
        config=AssistantConfig(num_assistant_tokens=40),
    )
    assert run.reason == "eos"
    assert run.text == text
    assert run.ids[-1] == target.tokenizer.eos_token_id
    assert run.rounds[-1].origins[-1] == "accepted"


def test_an_id_that_ends_the_target_does_not_end_the_assistant() -> None:
    """Each model stops on its own ids; an equal number means nothing."""
    target, assistant = tiny("gemma_style"), tiny("byte_level_a", seed=5)
    assert target.eos_token_ids != assistant.eos_token_ids
    run = assisted(target, assistant, "Once upon a time", settings_of(24))
    drafted = {piece.id for event in run.drafted for piece in event.draft}
    assert drafted
    assert not drafted & set(assistant.eos_token_ids)
    candidates = {piece.id for event in run.drafted for piece in event.candidates}
    assert target.tokenizer.bos_token_id not in candidates


def checker(**changes) -> StopChecker:
    values = {"eos_ids": (), "stop_strings": (), "max_new_tokens": 100, "room": 100, **changes}
    return StopChecker(**values)


def test_stop_strings_are_found_across_any_split_of_their_bytes() -> None:
    stop = "日本END"
    data = b"x" + stop.encode() + b"y"
    for size in range(1, 6):
        watch = checker(stop_strings=(stop, "never"))
        reasons = [watch.push(1, data[i : i + size]) for i in range(0, len(data), size)]
        assert "stop_string" in reasons


def test_a_control_token_is_a_stop_string_by_its_spelling() -> None:
    watch = checker(stop_strings=("<|im_end|>",))
    assert watch.push(5, b"text") is None
    assert watch.push(2, b"<|im_end|>") == "stop_string"


def test_no_end_token_at_all_can_be_asked_for() -> None:
    """An empty set is a set: the target's own end does not come back."""
    target, ids = tiny(), prompt_ids()
    full = answer()
    ends = tiny().eos_token_ids
    try:
        tiny().eos_token_ids = (full[3],)
        assert len(plain(target, ids, settings_of(24, eos_token_ids=())).ids) == 24
        assert len(plain(target, ids, settings_of(24, eos_token_ids=None)).ids) == 4
    finally:
        tiny().eos_token_ids = ends


def test_a_fixed_draft_length_is_kept_and_echoed_nowhere_else() -> None:
    target, assistant = tiny(), tiny("byte_level_b")
    for length in (2, 7, 2):
        config = AssistantConfig(num_assistant_tokens=length)
        run = assisted(target, assistant, prompt_ids(), settings_of(20), config=config)
        drafted = [event.num_draft_tokens for event in run.rounds if event.num_draft_tokens]
        assert max(drafted) == length
        # Only where the limit is near does a draft get shorter: it would be thrown away.
        assert set(drafted[:-2]) == {length}
    assert FIXED.num_assistant_tokens == 5
