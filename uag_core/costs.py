"""What the steps of a run cost, and the speedup that those costs predict for other settings.

speedup = tokens per round / (v + d c + o): v the verification, c a draft step, o the host work of a
round, each over t1, the plain time per token that `decode_speedup` divides by; d the draft length.
Read from the run's own medians; a cost profile fills in what the run did not show. Knows events and
the result document; neither models nor torch nor pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from uag_core.events import Event, Verified

_LEAST_S = 1e-9  # a round takes some time, whatever a clock says
MAX_DRAFT = 20  # longest draft that a prediction is made for


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of the steps of one run, and what its drafts were like.

    `verify_s` is a verification of `positions` positions; each further position costs
    `verify_slope_s`, and each fewer one as much less unless forwards are `padded`. `chance` is how
    often a candidate that was reached was accepted, None without candidates. `draft_length` is the
    mean over draft rounds, in draft tokens (in candidates where nothing is drafted, as in prompt
    lookup); a draft token makes `candidates_per_draft`.
    """

    plain_s: float
    verify_s: float
    positions: float
    verify_slope_s: float
    draft_step_s: float
    host_s: float
    chance: float | None
    draft_length: float
    num_candidates: float
    candidates_per_draft: float
    padded: bool

    def verification_s(self, positions: float) -> float:
        """Seconds of a verification of so many positions; beyond the measured ones a guess."""
        further = positions - self.positions
        if self.padded:
            further = max(0.0, further)
        return max(0.0, self.verify_s + self.verify_slope_s * further)

    def round_s(self, draft_length: float) -> float:
        """Seconds of a round with a draft of `draft_length` tokens."""
        candidates = draft_length * self.candidates_per_draft
        verify = self.verification_s(1 + candidates)
        return max(_LEAST_S, verify + draft_length * self.draft_step_s + self.host_s)

    def speedup(self, draft_length: float, chance: float | None = None) -> float:
        """Predicted decode speedup when each candidate is accepted with `chance` (this run's).

        Acceptance is taken to be independent from candidate to candidate.
        """
        chance = (self.chance or 0.0) if chance is None else chance
        tokens = expected_tokens(chance, draft_length * self.candidates_per_draft)
        return tokens * self.plain_s / self.round_s(draft_length)

    def break_even(self, draft_length: float) -> float | None:
        """The chance at which drafting so much begins to pay; None where it never does."""
        if self.speedup(draft_length, 1.0) < 1.0:
            return None
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.speedup(draft_length, middle) >= 1 else (middle, high)
        return high

    def best_length(self, most: int = MAX_DRAFT) -> int:
        """The draft length, 1 to `most`, with the highest predicted speedup."""
        return max(range(1, max(1, most) + 1), key=self.speedup)


def expected_tokens(chance: float, candidates: float) -> float:
    """Tokens that a round is expected to give: 1 + a + ... + a^n, also for a broken n."""
    if chance >= 1.0:
        return 1.0 + candidates
    return float((1.0 - chance ** (candidates + 1.0)) / (1.0 - chance))


def costs_of(
    result: Mapping[str, Any],
    events: Sequence[Event],
    profile: Mapping[str, Any] | None = None,
) -> Costs | None:
    """The costs of an assisted run. `result` is the comparison's document, `events` that run's.

    None where the run has no round with candidates or plain decoding was not measured.
    """
    plain = fastest_plain(result)
    rounds = [e for e in events if isinstance(e, Verified) and e.round > 0]
    drafting = [e for e in rounds if e.num_candidates]
    if not plain or not drafting:
        return None
    width = width_of(result)
    reached = sum(min(e.num_accepted + 1, e.num_candidates) for e in drafting)
    steady = drafting[1:] or drafting  # the first draft contains the assistant's prefill
    steps = [e.draft_s / e.num_draft_tokens for e in steady if e.num_draft_tokens]
    drafts = [e.num_draft_tokens for e in drafting]
    candidates = [e.num_candidates for e in drafting]
    at, positions, slope = _verification(rounds, drafting, width, plain, profile or {})
    return Costs(
        plain_s=plain,
        verify_s=at,
        positions=positions,
        verify_slope_s=slope,
        draft_step_s=median(steps) if steps else 0.0,
        host_s=median(e.other_s + e.reencode_s for e in drafting),
        chance=sum(e.num_accepted for e in drafting) / reached,
        draft_length=fmean(drafts) if any(drafts) else fmean(candidates),
        num_candidates=fmean(candidates),
        candidates_per_draft=sum(candidates) / sum(drafts) if any(drafts) else 1.0,
        padded=width is not None,
    )


def width_of(result: Mapping[str, Any]) -> int | None:
    """W, the positions that every forward is padded to; None where nothing is padded."""
    width = (result.get("settings") or {}).get("width")
    return width if isinstance(width, int) and width > 0 else None


def fastest_plain(result: Mapping[str, Any]) -> float | None:
    """t1 in seconds: the smaller time per token of the two plain baselines."""
    runs = (result.get("baseline") or {}, result.get("baseline_unpadded") or {})
    return min((run["tpot_s"] for run in runs if run.get("tpot_s")), default=None)


def _verification(
    rounds: Sequence[Verified],
    drafting: Sequence[Verified],
    width: int | None,
    plain_s: float,
    profile: Mapping[str, Any],
) -> tuple[float, float, float]:
    """Seconds of a verification, for how many positions, and of each further position."""
    at = median(e.verify_s for e in drafting)
    if width is not None:
        slope = _slope([(1.0, min(plain_s, at)), (float(width), at)])
        return at, float(width), _slope(_by_width(profile)) or slope
    points = [(float(e.num_candidates + 1), e.verify_s) for e in rounds]
    if len({positions for positions, _ in points}) < 2:
        points.append((1.0, min(plain_s, at)))
    return at, fmean(1.0 + e.num_candidates for e in drafting), _slope(points)


def _by_width(profile: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(positions, seconds) of the verifications that a cost profile measured by width."""
    table = profile.get("verify_s")
    if not isinstance(table, Mapping):
        return []
    return [
        (float(positions), float(seconds))
        for positions, seconds in table.items()
        if str(positions).isdigit() and isinstance(seconds, (int, float))
    ]


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Seconds per position by least squares; never negative, 0 where it cannot be told."""
    if len({x for x, _ in points}) < 2:
        return 0.0
    centre, mean = fmean(x for x, _ in points), fmean(y for _, y in points)
    spread = sum((x - centre) ** 2 for x, _ in points)
    return max(0.0, sum((x - centre) * (y - mean) for x, y in points) / spread)
