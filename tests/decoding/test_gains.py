"""What drafting promises, and what the cost profile says."""

from __future__ import annotations

import pytest

from tests.fixtures.models import tiny
from uag_core.config import AssistantConfig
from uag_core.decoding import profile as profiles
from uag_core.decoding.gains import best_draft, best_width, tokens_per_round
from uag_core.decoding.pacing import Pacer
from uag_core.decoding.profile import CostProfile


def costs(draft: float, verify: float = 1.2, prefill: float = 0.0, width: int | None = 5):
    return CostProfile(
        plain_step_s=1.0,
        verify_by_width={4: verify, 5: verify, 6: verify, 8: verify},
        draft_step_s=draft,
        width=width,
        prefill_s_per_token=prefill,
    )


def test_a_round_gives_one_token_and_what_is_accepted() -> None:
    assert tokens_per_round(0.0, 4) == 1
    assert tokens_per_round(1.0, 4) == 5
    assert tokens_per_round(0.5, 2) == pytest.approx(1.75)


def test_dear_drafts_are_short_and_cheap_ones_long() -> None:
    def length(step: float) -> int:
        return best_draft(0.7, 8, plain=1.0, verify=[1.2] * 9, step=step, host=0.0)[0]

    assert length(0.5) < length(0.1) < length(0.01)


def test_a_wider_verification_is_taken_only_where_it_clearly_pays() -> None:
    flat = costs(0.01)
    assert best_width(flat, 5) == 8
    steep = CostProfile(1.0, {4: 1.1, 5: 1.2, 6: 1.5, 8: 2.0}, 0.1, 5)
    assert best_width(steep, 5) == 5


def test_times_between_the_measured_widths_lie_on_a_line() -> None:
    profile = CostProfile(1.0, {2: 1.2, 5: 1.8}, None, None)
    assert profile.verify_at(3) == pytest.approx(1.4)
    assert profile.verify_at(1) == 1.0
    assert profile.verify_at(9) == 1.8
    assert profile.verify_s == 1.8


def test_a_profile_is_plain_numbers() -> None:
    profile = profiles.measure(tiny(), tiny("byte_level_b", seed=1), width=5)
    assert profile is not None
    document = profile.to_dict(0.001)
    assert document["target_step_s"] > 0
    assert set(document["verify_s"]) == {"4", "5", "6", "8"}
    assert document["draft_step_s"] > 0
    assert document["prefill_s_per_token"] > 0
    assert (document["host_s"], document["width"], document["context"]) == (0.001, 5, 96)


def test_a_long_context_is_profiled_without_reading_one() -> None:
    assert profiles.bucket(97) == 512
    times = profiles.step_times(tiny(), [1, 4], static=True, context=400)
    assert set(times) == {1, 4}


def pace(profile: CostProfile, **options) -> Pacer:
    return Pacer(AssistantConfig(), max_candidates=4, profile=profile, **options)


def test_an_assistant_as_dear_as_the_target_is_not_even_read_the_prompt() -> None:
    slow = pace(costs(1.0, prefill=0.05), prompt_tokens=60, same_shape=True)
    assert [slow.draft_limit() for _ in range(100)] == [0] * 100


def test_a_prompt_too_long_to_pay_for_is_not_read() -> None:
    options = {"prompt_tokens": 4000, "new_tokens": 32}
    assert pace(costs(0.1, prefill=0.02), **options).draft_limit() == 0
    assert pace(costs(0.1, prefill=0.0001), **options).draft_limit() > 0


@pytest.mark.parametrize("step", [0.03, 0.07, 0.13, 0.3])
@pytest.mark.parametrize("same_shape", [True, False])
def test_useless_drafts_cost_a_small_share_of_the_run(step: float, same_shape: bool) -> None:
    pacer = pace(costs(step, prefill=0.002), prompt_tokens=60, same_shape=same_shape)
    step_s = 1.2 if same_shape else 1.0
    spent = plain = 0.0
    for index in range(127):
        plain += step_s
        limit = pacer.draft_limit()
        if limit == 0:
            pacer.observe_plain(step_s)
            spent += step_s
            continue
        count = next((n for n in range(1, limit) if not pacer.go_on(0.02)), limit)
        draft = step * count + (0.12 if index == 0 else 0.0)
        pacer.observe(
            confidences=(0.02,) * count,
            num_draft=count,
            num_candidates=count,
            num_accepted=0,
            draft_s=draft,
            verify_s=1.2,
            host_s=0.02,
        )
        spent += draft + 1.22
    assert plain / spent > 0.95
