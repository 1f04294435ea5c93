"""Why this speed: each limit is named from its number, and the change is worth what it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.measured import PLAIN_S, measured
from uag_core.advice import explain
from uag_core.costs import Costs, costs_of, expected_tokens

GOOD = [4, 4, 3, 4, 4, 2, 4, 4, 4, 3]
POOR = [0, 1, 0, 0, 0, 1, 0, 0, 0, 0]


def advice_of(accepted, **changes):
    return explain(*measured(accepted, **changes))


def kinds(advice) -> list[str]:
    return [finding.kind for finding in advice.findings]


def test_the_account_is_the_measured_speedup() -> None:
    result, events = measured(GOOD)
    account = explain(result, events).account
    per_round, speedup = result["assisted"]["tokens_per_round"], result["decode_speedup"]
    assert f"{per_round:.2f} tokens" in account
    assert f"{per_round / speedup:.2f} plain steps" in account
    assert f"{speedup:.2f}×" in account


@pytest.mark.parametrize(
    ("first", "number", "accepted", "changes"),
    [
        ("acceptance", "5%", POOR, {}),
        ("assistant", "60% of a plain step", GOOD, {"draft_step_s": 0.6 * PLAIN_S}),
        ("verification", "2.50 plain steps", GOOD, {"verify_s": 2.5 * PLAIN_S}),
        ("host", "15.0 ms", GOOD, {"host_s": 0.015}),
        (
            "padding",
            "40% slower",
            GOOD,
            {"width": 5, "padded_s": 1.4 * PLAIN_S, "verify_s": 1.4 * PLAIN_S},
        ),
    ],
)
def test_the_largest_limit_comes_first_with_its_number(first, number, accepted, changes) -> None:
    advice = advice_of(accepted, **changes)
    assert kinds(advice)[0] == first
    assert number in advice.findings[0].sentence


def test_a_short_answer_is_said_to_be_short() -> None:
    advice = advice_of(GOOD, ttft_s=0.5)
    assert kinds(advice)[-1] == "short"
    assert "short" in kinds(advice_of(GOOD[:4]))
    assert "short" not in kinds(advice_of(GOOD * 3))


def test_rounds_that_the_fallback_took_are_counted() -> None:
    advice = advice_of([*POOR, *[None] * 30])
    assert kinds(advice)[0] == "fallback"
    assert "30 of 40 rounds" in advice.findings[0].sentence
    assert "fallback" not in kinds(advice_of([*GOOD, None]))


def test_lookup_without_matches_is_no_fallback() -> None:
    advice = advice_of([*GOOD, *[None] * 30], method="lookup", drafted=0)
    assert kinds(advice)[0] == "silent"


def test_nothing_is_found_where_nothing_limits() -> None:
    advice = advice_of([4] * 20, draft_step_s=0.0001, host_s=0.0001)
    assert advice.findings == ()
    assert advice.change is None or advice.change.setting == "num_assistant_tokens"


def test_padding_is_advised_away_with_what_it_costs() -> None:
    change = advice_of(
        [4] * 20, width=5, fixed=4, padded_s=1.4 * PLAIN_S, verify_s=1.4 * PLAIN_S, candidates=4
    ).change
    assert change is not None
    assert change.setting in ("exact", "num_assistant_tokens")
    assert f"{change.predicted:.2f}×" in change.sentence


def test_a_longer_draft_is_advised_where_it_pays() -> None:
    result, events = measured([2] * 20, drafted=2, candidates=2, fixed=2, draft_step_s=0.0001)
    change = explain(result, events).change
    assert change is not None
    assert change.setting == "num_assistant_tokens"
    assert change.predicted > 1.05 * result["decode_speedup"]


def test_a_pair_that_cannot_win_is_told_to_decode_plainly() -> None:
    result, events = measured(POOR, draft_step_s=0.5 * PLAIN_S)
    change = explain(result, events).change
    assert result["decode_speedup"] < 1
    assert change is not None
    assert change.setting == "assistant"
    assert "decode plainly" in change.sentence
    fixed = advice_of(POOR, draft_step_s=0.5 * PLAIN_S, fixed=4).change
    assert fixed is not None
    assert "num_assistant_tokens empty" in fixed.sentence


def test_no_measurement_no_reason() -> None:
    result, events = measured(GOOD)
    advice = explain({**result, "decode_speedup": None}, events)
    assert advice.sentences == ["Too little was measured to say why the speed is what it is."]
    assert explain({"assisted": None}, []).findings == ()
    assert kinds(advice_of([None] * 10)) == ["silent"]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.floats(0, 0.05), st.floats(0, 0.1))
def test_any_run_gets_sentences_of_finite_numbers(accepted, draft_step_s, host_s) -> None:
    advice = advice_of(accepted, draft_step_s=draft_step_s, host_s=host_s)
    assert advice.sentences
    for sentence in advice.sentences:
        assert "nan" not in sentence
        assert "inf" not in sentence


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60))
def test_the_model_gives_back_an_even_run(accepted) -> None:
    """Where every round costs the same, the model's round is the measured one."""
    result, events = measured(accepted)
    costs = costs_of(result, events)
    assert costs is not None
    rounds = [e for e in events if getattr(e, "round", 0) > 0]
    spent = rounds[0].draft_s + rounds[0].verify_s + rounds[0].other_s
    assert costs.round_s(costs.draft_length) == pytest.approx(spent, rel=1e-6)


def test_expected_tokens_is_the_sum_of_a_geometric_series() -> None:
    assert expected_tokens(0.5, 3) == pytest.approx(1 + 0.5 + 0.25 + 0.125)
    assert expected_tokens(1.0, 3) == 4
    assert expected_tokens(0.0, 3) == 1


@given(st.floats(0, 1), st.floats(0.0, 0.03), st.floats(0, 20))
def test_break_even_is_where_the_speedup_is_one(chance, step, length) -> None:
    costs = Costs(PLAIN_S, 0.021, 5, 0.0, step, 0.001, chance, length, length, 1.0, True)
    needed = costs.break_even(length)
    if needed is None:
        assert costs.speedup(length, 1.0) < 1
    else:
        assert costs.speedup(length, needed) == pytest.approx(1, abs=1e-6)


def test_a_profile_by_width_prices_longer_drafts() -> None:
    result, events = measured(GOOD, width=5)
    flat = costs_of(result, events)
    steep = costs_of(result, events, {"verify_s": {"4": 0.02, "8": 0.04}})
    assert flat is not None and steep is not None  # noqa: PT018
    assert flat.verification_s(9) == flat.verification_s(5) == PLAIN_S
    assert steep.verification_s(5) == PLAIN_S
    assert steep.verification_s(9) == pytest.approx(PLAIN_S + 4 * 0.005)
