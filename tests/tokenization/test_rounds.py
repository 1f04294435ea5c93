"""What happened in each round, folded from events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.models import tiny
from tests.fixtures.runs import assisted, settings_of
from tests.fixtures.strategies import any_bytes
from tests.fixtures.texts import AWKWARD
from uag_core.events import Drafted, Finished, Piece, Verified
from uag_core.tokenization.rounds import rounds, text_bytes


def piece(data: bytes | str, token_id: int = 7, *, control: bool = False) -> Piece:
    raw = data.encode() if isinstance(data, str) else data
    return Piece(token_id, raw.hex(), control)


def verified(number, tokens, origins, *, accepted=0, candidates=0, draft=0) -> Verified:
    return Verified(
        number, tuple(tokens), tuple(origins), "", draft, candidates, accepted, *[0.0] * 5
    )


def drafted(number, draft, candidates, source="assistant") -> Drafted:
    confidences = tuple(0.5 for _ in draft)
    return Drafted(number, tuple(draft), confidences, tuple(candidates), source, 0.0, 0.0, 0.0)


def finished() -> Finished:
    return Finished("length", (), "", 0, *[0.0] * 6, None, 0.0)


PREFILL = verified(0, [piece("The")], ["prefill"])


def corrected_round(**changes):
    candidates = [piece(" quick"), piece(" red"), piece(" fox")]
    events = [
        PREFILL,
        drafted(1, [piece(" qu"), piece("ick"), piece(" red fox")], candidates),
        verified(
            1,
            [piece(" quick"), piece(" brown")],
            ["accepted", "corrected"],
            accepted=1,
            candidates=3,
            draft=3,
        ),
    ]
    return rounds(events)[1]


def test_a_corrected_round_tells_each_candidates_fate() -> None:
    shown = corrected_round()
    assert shown.fates == ("accepted", "rejected", "never reached")
    assert shown.alignment.links == ((0, 0), (1, 0), (2, 1), (2, 2))
    assert shown.spans == ((0, 6), (6, 12))
    assert shown.first == 1


def test_the_bonus_token_stands_behind_all_candidates() -> None:
    events = [
        PREFILL,
        drafted(1, [piece(" a b")], [piece(" a"), piece(" b")]),
        verified(
            1, [piece(" a"), piece(" b"), piece("!")], ["accepted", "accepted", "bonus"], accepted=2
        ),
    ]
    shown = rounds(events)[1]
    assert shown.fates == ("accepted", "accepted")
    assert shown.spans == ((0, 2), (2, 4), (4, 5))


def test_candidates_behind_a_stop_were_never_reached() -> None:
    events = [
        PREFILL,
        drafted(1, [piece(" a b c")], [piece(" a"), piece(" b"), piece(" c")]),
        verified(1, [piece(" a")], ["accepted"], accepted=1, candidates=1),
    ]
    assert rounds(events)[1].fates == ("accepted", "never reached", "never reached")


def test_a_run_that_stopped_before_verifying_shows_its_last_draft() -> None:
    shown = rounds([PREFILL, drafted(1, [piece(" a")], [piece(" a")])])[1]
    assert not shown.verified
    assert shown.fates == ("never reached",)
    assert shown.tokens == ()


def test_plain_rounds_and_the_prefill_have_no_candidates() -> None:
    first, second = rounds([PREFILL, verified(1, [piece(" end")], ["plain"], draft=2)])
    assert (first.candidates, second.candidates) == ((), ())
    assert second.num_draft_tokens == 2
    assert second.spans == ((0, 4),)


def test_a_draft_of_another_round_is_not_shown() -> None:
    shown = rounds([PREFILL, drafted(4, [piece("x")], [piece("x")]), verified(5, [], [])])
    assert shown[1].candidates == ()


@pytest.mark.parametrize("source", ["lookup", "prompt_lookup"])
def test_lookup_shows_its_candidates_alone(source) -> None:
    events = [
        PREFILL,
        drafted(1, [piece(" a")], [piece(" a")], source=source),
        verified(1, [piece(" a"), piece("!")], ["accepted", "bonus"], accepted=1),
    ]
    shown = rounds(events)[1]
    assert shown.draft == ()
    assert shown.confidences == ()
    assert shown.alignment.lower == ((0, 2),)


def test_the_end_of_the_answer_is_a_token_without_text() -> None:
    end = piece("<|im_end|>", control=True)
    events = [
        PREFILL,
        drafted(1, [piece(" a")], [piece(" a"), end]),
        verified(1, [piece(" a"), end], ["accepted", "accepted"], accepted=2),
        finished(),
    ]
    shown = rounds(events)[1]
    assert shown.spans == ((0, 2), (2, 3))
    assert shown.texts == (" a", "")


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    parts, position = [], 0
    for size in sizes:
        parts.append(data[position : position + size])
        position += size
    return [part for part in [*parts, data[position:]] if part]


@given(
    data=st.one_of(any_bytes, st.sampled_from(AWKWARD).map(str.encode)),
    sizes=st.lists(st.integers(1, 5), max_size=20),
    per_round=st.integers(1, 4),
)
def test_texts_rebuilt_from_tokens_are_the_text(data, sizes, per_round) -> None:
    tokens = [piece(part) for part in split(data, sizes)]
    events = [
        verified(
            number, tokens[at : at + per_round], ["accepted"] * len(tokens[at : at + per_round])
        )
        for number, at in enumerate(range(0, len(tokens), per_round))
    ]
    shown = rounds([*events, finished()])
    assert b"".join(text_bytes(t) or b"" for r in shown for t in r.tokens) == data
    assert "".join(text for r in shown for text in r.texts) == data.decode("utf-8", "replace")
    assert all(len(r.texts) == len(r.tokens) == len(r.spans) for r in shown)
    assert [r.first for r in shown] == list(range(0, len(tokens), per_round))


@pytest.mark.parametrize(
    ("target", "assistant"),
    [
        ("byte_level_a", "byte_level_b"),
        ("byte_level_a", "byte_level_a"),
        ("llama_style", "byte_level_a"),
        ("byte_level_b", "gemma_style"),
        ("wordpiece", "unigram_nfkc"),
        ("gemma_style", "wordpiece"),
    ],
)
@pytest.mark.parametrize("prompt", ["今天天气很好 🦙 e\u0301\r\n\tif x != 1:", "<b>&amp;</b>"])
def test_the_rounds_of_the_engine_give_its_text(target, assistant, prompt) -> None:
    run = assisted(tiny(target), tiny(assistant), prompt, settings_of(40))
    shown = rounds(run.events)
    tokens = [token for r in shown for token in r.tokens]
    assert tuple(token.id for token in tokens) == run.ids
    assert "".join(text for r in shown for text in r.texts) == run.text
    for r in shown:
        accepted = r.fates.count("accepted")
        assert accepted == r.origins.count("accepted")
        assert [c.id for c in r.candidates[:accepted]] == [t.id for t in r.tokens[:accepted]]
        assert len(r.fates) == len(r.candidates) == len(r.alignment.lower)
