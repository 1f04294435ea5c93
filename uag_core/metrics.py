"""Counts, rates and times of one run: a fold over its events.

The names are the contract of the command line and the API. Undefined ratios are None, never NaN.
Knows events only: neither models nor torch nor pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from uag_core.events import Event, Finished, Notice, Started, Verified


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """`numerator / denominator`, or None where that has no meaning."""
    if numerator is None or not denominator:
        return None
    return numerator / denominator


def timing(events: Iterable[Event]) -> dict[str, Any]:
    """Text, ids and times of a run: the keys every engine reports.

    `ttft_s`: start to first token. `tpot_s`: (wall - TTFT) / (tokens after the first emission),
    None when there are none. All in seconds. Raises `ValueError` for a run that did not finish.
    """
    first = 0
    finished: Finished | None = None
    for event in events:
        if isinstance(event, Verified) and not first:
            first = len(event.tokens)
        elif isinstance(event, Finished):
            finished = event
    if finished is None:
        raise ValueError("The run has no Finished event.")
    count = len(finished.token_ids)
    later = count - first
    ttft = finished.ttft_s
    tpot = None if ttft is None or later <= 0 else (finished.wall_s - ttft) / later
    return {
        "text": finished.text,
        "token_ids": list(finished.token_ids),
        "num_new_tokens": count,
        "finish_reason": finished.finish_reason,
        "ttft_s": ttft,
        "tpot_s": tpot,
        "wall_s": finished.wall_s,
        "tokens_per_second": ratio(1.0, tpot),
        "end_to_end_tokens_per_second": ratio(count, finished.wall_s) if count else None,
    }


def summarize(events: Sequence[Event]) -> dict[str, Any]:
    """`timing` plus the counts, rates and the split of time of an assisted run.

    num_new_tokens = 1 + the sum emitted per round (0 when nothing was emitted); the five `*_s`
    parts sum to `wall_s`.
    """
    rounds = [e for e in events if isinstance(e, Verified) and e.round > 0]
    drafting = [e for e in rounds if e.num_candidates]
    finished = next(e for e in events if isinstance(e, Finished))
    candidates = sum(e.num_candidates for e in rounds)
    accepted = sum(e.num_accepted for e in rounds)
    longest = max((e.num_candidates for e in drafting), default=0)
    histogram = [0] * (longest + 1)
    for event in drafting:
        histogram[event.num_accepted] += 1
    per_position = [
        sum(e.num_accepted > index for e in drafting) / len(drafting) for index in range(longest)
    ]
    result = timing(events)
    count = result["num_new_tokens"]
    result.update(
        num_rounds=len(rounds),
        num_draft_rounds=len(drafting),
        num_target_forwards=finished.num_target_forwards,
        num_draft_tokens=sum(e.num_draft_tokens for e in rounds),
        num_candidate_tokens=candidates,
        num_accepted_tokens=accepted,
        tokens_per_round=ratio(count - 1, len(rounds)) if count else None,
        mean_acceptance_length=1 + accepted / len(drafting) if drafting else None,
        acceptance_rate=ratio(accepted, candidates),
        acceptance_per_position=per_position,
        acceptance_histogram=histogram if drafting else [],
        prefill_s=finished.prefill_s,
        draft_s=finished.draft_s,
        reencode_s=finished.reencode_s,
        verify_s=finished.verify_s,
        other_s=finished.other_s,
    )
    return result


def median_run(runs: Sequence[list[Event]]) -> list[Event] | None:
    """The run with the median TPOT (the lower one of two), so that its parts belong together."""

    def key(events: list[Event]) -> float:
        data = timing(events)
        time = data["tpot_s"] if data["tpot_s"] is not None else data["wall_s"]
        return float(time)

    return sorted(runs, key=key)[(len(runs) - 1) // 2] if runs else None


def speedup_bound(events: Sequence[Event], tpot_s: float | None) -> float | None:
    """`tokens_per_round` / (v + d c), from this run's own medians.

    v = verify time / t1, c = draft step / t1, d = mean draft tokens per round (zeros counted) and
    t1 = `tpot_s`, the plain TPOT that the decode speedup divides by. None where there was no
    round or t1 is unknown.
    """
    rounds = [e for e in events if isinstance(e, Verified) and e.round > 0]
    if not rounds or not tpot_s:
        return None
    steps = [e.draft_s / e.num_draft_tokens for e in rounds if e.num_draft_tokens]
    emitted = sum(len(e.tokens) for e in rounds) / len(rounds)
    drafted = sum(e.num_draft_tokens for e in rounds) / len(rounds)
    cost = median(e.verify_s for e in rounds) + drafted * (median(steps) if steps else 0.0)
    return ratio(emitted * tpot_s, cost)


def first_divergence(left: Sequence[int], right: Sequence[int]) -> int | None:
    """0-based position of the first differing id; the shorter length where one is a prefix."""
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return None if len(left) == len(right) else min(len(left), len(right))


def notices(events: Iterable[Event]) -> list[str]:
    """Every notice of a run, once each, in order."""
    found: list[str] = []
    for event in events:
        new = event.notices if isinstance(event, Started) else ()
        if isinstance(event, Notice):
            new = (event.message,)
        found.extend(message for message in new if message not in found)
    return found
