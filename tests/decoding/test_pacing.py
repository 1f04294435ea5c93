"""The pacer: how much to draft, and when to stop drafting."""

from __future__ import annotations

import pytest

from uag_core.config import AssistantConfig
from uag_core.decoding.gains import Calibration
from uag_core.decoding.pacing import Pacer
from uag_core.decoding.profile import CostProfile

STEP = 0.020  # seconds of a plain step in these tests


def pacer(max_candidates: int = 5, **settings) -> Pacer:
    return Pacer(AssistantConfig(**settings), max_candidates=max_candidates, plain_step_s=STEP)


def play(
    pace: Pacer,
    rounds: int,
    *,
    accepted: int,
    candidates: int = 4,
    draft_s: float = 0.004,
    confidence: float = 0.5,
) -> int:
    """`rounds` rounds as the loop would report them; how many of them drafted."""
    drafted = 0
    for _ in range(rounds):
        if pace.draft_limit() == 0:
            pace.observe_plain(STEP)
            continue
        drafted += 1
        pace.observe(
            confidences=(confidence,) * 4,
            num_draft=4,
            num_candidates=candidates,
            num_accepted=min(accepted, candidates),
            draft_s=draft_s,
            verify_s=1.2 * STEP,
            host_s=0.0005,
        )
    return drafted


def test_a_pair_that_pays_goes_on_drafting() -> None:
    pace = pacer()
    assert play(pace, 100, accepted=3) == 100
    assert pace.pauses == 0


def test_a_pair_that_never_pays_drafts_in_a_few_rounds_only() -> None:
    assert play(pacer(), 200, accepted=0) <= 12


def test_an_assistant_that_is_never_sure_is_given_up_sooner_than_a_sure_one() -> None:
    unsure = play(pacer(), 12, accepted=0, confidence=0.01)
    assert unsure <= 3
    assert play(pacer(), 12, accepted=0, confidence=0.9) > unsure


def test_a_few_unlucky_rounds_do_not_stop_a_sure_assistant() -> None:
    pace = pacer()
    play(pace, 4, accepted=0, confidence=0.9)
    assert pace.pauses == 0


def test_drafts_that_give_no_candidates_count_as_a_loss() -> None:
    """Control tokens, half characters: the draft was paid for all the same."""
    assert play(pacer(), 200, accepted=0, candidates=0) <= 12


def test_a_pause_ends_and_a_text_that_has_become_easy_is_drafted_again() -> None:
    pace = pacer()
    play(pace, 30, accepted=0)
    assert pace.pauses > 0
    assert play(pace, 300, accepted=4) > 200


def test_without_the_fallback_every_round_drafts() -> None:
    assert play(pacer(fallback=False), 50, accepted=0) == 50


def test_a_fixed_length_is_never_paused() -> None:
    pace = pacer(num_assistant_tokens=3)
    assert play(pace, 50, accepted=0) == 50
    assert pace.draft_limit() == 3


def test_the_heuristic_schedule_grows_shrinks_and_stays_within_the_verification() -> None:
    pace = pacer(10, num_assistant_tokens=5, num_assistant_tokens_schedule="heuristic")
    play(pace, 1, accepted=4)
    assert pace.draft_limit() == 7
    play(pace, 20, accepted=4)
    assert pace.draft_limit() == 10
    play(pace, 1, accepted=1)
    assert pace.draft_limit() == 9
    play(pace, 50, accepted=0)
    assert pace.draft_limit() == 1


def test_a_confidence_threshold_ends_a_draft() -> None:
    pace = pacer(num_assistant_tokens=8, assistant_confidence_threshold=0.4)
    assert pace.go_on(0.41)
    assert not pace.go_on(0.39)


def test_an_unsure_assistant_stops_earlier_than_a_sure_one() -> None:
    def length(confidence: float) -> int:
        pace = pacer(20)
        play(pace, 3, accepted=2)
        pace.draft_limit()
        return next((n for n in range(60) if not pace.go_on(confidence)), 60)

    assert length(0.2) < length(0.95)


@pytest.mark.parametrize("confidence", [-0.5, 0.0, 0.5, 1.0, 2.0])
def test_calibration_learns_what_a_confidence_is_worth(confidence: float) -> None:
    calibration = Calibration()
    for _ in range(200):
        calibration.observe(confidence, False)
    assert calibration(confidence) < 0.05
    for _ in range(2000):
        calibration.observe(confidence, True)
    assert calibration(confidence) > 0.8


def test_a_profile_of_a_busier_moment_does_not_keep_a_useless_assistant_drafting() -> None:
    """Its plain step was measured at 0.030 s, and checking two positions takes 0.021 s now."""
    profile = CostProfile(
        plain_step_s=0.030,
        verify_by_width={2: 0.031, 3: 0.032, 5: 0.033},
        draft_step_s=0.001,
        width=None,
    )
    pace = Pacer(AssistantConfig(), max_candidates=5, profile=profile)
    drafted = 0
    for _ in range(60):
        if pace.draft_limit() == 0:
            pace.observe_plain(0.020)
            continue
        drafted += 1
        pace.observe(
            confidences=(0.01,),
            num_draft=1,
            num_candidates=1,
            num_accepted=0,
            draft_s=0.001,
            verify_s=0.021,
            host_s=0.0005,
        )
    assert drafted <= 8
