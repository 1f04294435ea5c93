"""Why a run was as fast as it was, in a few plain sentences, and the setting most worth changing.

Each sentence carries the number it rests on. What limits a pair is found by asking how much faster
the run would have been without it, at otherwise the same measured costs. Knows the result document
and events; neither models nor torch nor pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from uag_core.costs import Costs, costs_of, width_of
from uag_core.events import Event, Verified

Kind = Literal[
    "acceptance", "assistant", "verification", "padding", "host", "short", "fallback", "silent"
]
_WORTH = 0.08  # a limit is named when the run would gain that much without it
_MOST = 3
_LEAST_GAIN = 0.05  # of a change of setting
_LEAST_GAIN_ADAPTIVE = 0.10  # a length chosen round by round is worth more than a fixed one
_SHORT_SHARE, _FEW_ROUNDS, _PLAIN_SHARE = 0.3, 8, 0.2
_LONGEST = 12  # longest draft that is recommended from an extrapolation


@dataclass(frozen=True, slots=True)
class Finding:
    """A limit. `gain` is how much faster the run would be without it (0.2: 20 %), if known."""

    kind: Kind
    sentence: str
    gain: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The setting most worth changing, and the decode speedup predicted for it."""

    setting: str
    sentence: str
    predicted: float


@dataclass(frozen=True, slots=True)
class Advice:
    """How the speed came about, what limits it most first, and what to change, if anything."""

    account: str
    findings: tuple[Finding, ...] = ()
    change: Change | None = None

    @property
    def sentences(self) -> list[str]:
        last = self.change.sentence if self.change else _NO_CHANGE if self.findings else ""
        return [s for s in (self.account, *(f.sentence for f in self.findings), last) if s]


_NO_CHANGE = (
    f"No single setting is predicted to gain {_LEAST_GAIN:.0%} or more for a run like this."
)


def explain(
    result: Mapping[str, Any],
    events: Sequence[Event],
    profile: Mapping[str, Any] | None = None,
) -> Advice:
    """What a comparison's document and its assisted run's events say about the speed."""
    assisted = result.get("assisted") or {}
    speedup, per_round = result.get("decode_speedup"), assisted.get("tokens_per_round")
    if not speedup or not per_round:
        return Advice("Too little was measured to say why the speed is what it is.")
    account = (
        f"A round wrote {per_round:.2f} tokens on average and took as long as "
        f"{per_round / speedup:.2f} plain steps: {_times(speedup)}."
    )
    rounds = [e for e in events if isinstance(e, Verified) and e.round > 0]
    costs = costs_of(result, events, profile)
    if costs is None:
        silent = Finding("silent", "Nothing was proposed, so nothing could be gained.")
        return Advice(account, (silent,) if rounds else ())
    limits = [*_limits(result, assisted, costs)]
    limits = sorted((f for f in limits if (f.gain or 0) >= _WORTH), key=lambda f: -(f.gain or 0))
    findings = (*_paused(result, rounds), *limits[:_MOST], *_short(assisted, len(rounds)))
    return Advice(account, findings, _change(result, costs, speedup, rounds))


def _limits(
    result: Mapping[str, Any], assisted: Mapping[str, Any], costs: Costs
) -> Sequence[Finding]:
    length = costs.draft_length
    whole = costs.round_s(length)
    drafting = length * costs.draft_step_s
    verify = costs.verification_s(1 + costs.num_candidates)
    padding, share = _padding(result)
    flat = max(costs.plain_s, verify - padding)  # what is left when padding is taken away
    over = max(0.0, verify - padding - costs.plain_s)
    now = costs.speedup(length)
    found = [
        Finding(
            "acceptance",
            f"Low acceptance: {assisted.get('acceptance_rate') or 0:.0%} of the candidates were "
            f"accepted, {assisted.get('mean_acceptance_length') or 1:.2f} of "
            f"{1 + costs.num_candidates:.2f} possible tokens in a round with a draft"
            f"{_even(costs)}.",
            costs.speedup(length, 1.0) / now - 1,
        ),
        Finding(
            "assistant",
            f"The assistant is expensive: a draft token costs "
            f"{costs.draft_step_s / costs.plain_s:.0%} of a plain step, so drafting takes "
            f"{drafting / whole:.0%} of a round.",
            _without(whole, drafting),
        ),
        Finding(
            "verification",
            f"Verification is not flat: checking {1 + costs.num_candidates:.1f} positions at once "
            f"costs {flat / costs.plain_s:.2f} plain steps"
            f"{', padding left out' if padding else ''}.",
            _without(whole, over),
        ),
        Finding(
            "host",
            f"Host work, between the forwards, takes {_milliseconds(costs.host_s)} or "
            f"{costs.host_s / whole:.0%} of a round.",
            _without(whole, costs.host_s),
        ),
    ]
    if padding:
        sentence = (
            f"Exact half precision pads every forward to {width_of(result)} positions, which makes "
            f"a plain step {share:.0%} slower."
        )
        found.append(Finding("padding", sentence, _without(whole, padding)))
    return found


def _even(costs: Costs) -> str:
    needed = costs.break_even(costs.draft_length)
    chance = costs.chance or 0.0
    if needed is None:
        return "; at this draft length no acceptance would reach 1×"
    if chance >= needed:
        return ""
    return (
        f" (a candidate that is reached is right {chance:.0%} of the time; 1× needs {needed:.0%})"
    )


def _without(whole: float, part: float) -> float:
    rest = whole - part
    return whole / rest - 1 if rest > 0 else 0.0


def _padding(result: Mapping[str, Any]) -> tuple[float, float]:
    """Seconds that padding adds to a plain step, and its share; 0 where nothing is padded."""
    padded = (result.get("baseline") or {}).get("tpot_s")
    unpadded = (result.get("baseline_unpadded") or {}).get("tpot_s")
    if width_of(result) is None or not padded or not unpadded:
        return 0.0, 0.0
    return max(0.0, padded - unpadded), max(0.0, padded / unpadded - 1)


def _paused(result: Mapping[str, Any], rounds: Sequence[Verified]) -> list[Finding]:
    plain = sum(not e.num_candidates for e in rounds)
    if plain < _PLAIN_SHARE * len(rounds):
        return []
    share = f"{plain} of {len(rounds)} rounds"
    if _adapts(result) and str(result.get("method", "")).startswith("uag"):
        sentence = f"Drafting was not expected to pay, so {share} decoded plainly."
        return [Finding("fallback", sentence)]
    if any(e.num_draft_tokens and not e.num_candidates for e in rounds):
        return [Finding("silent", f"In {share} no draft gave a candidate.")]
    return [Finding("silent", f"In {share} nothing was proposed.")]


def _adapts(result: Mapping[str, Any]) -> bool:
    return (result.get("settings") or {}).get("num_assistant_tokens") is None


def _short(assisted: Mapping[str, Any], rounds: int) -> list[Finding]:
    ttft, wall = assisted.get("ttft_s"), assisted.get("wall_s")
    count = assisted.get("num_new_tokens") or 0
    if ttft and wall and ttft / wall >= _SHORT_SHARE:
        sentence = (
            f"The answer is short ({count} tokens): {ttft / wall:.0%} of the time went by before "
            "the first token, and no draft can shorten that."
        )
        return [Finding("short", sentence)]
    if rounds < _FEW_ROUNDS:
        return [Finding("short", f"The answer is short: {rounds} rounds say little.")]
    return []


def _change(
    result: Mapping[str, Any], costs: Costs, speedup: float, rounds: Sequence[Verified]
) -> Change | None:
    """The change with the largest predicted gain, or None where none is worth it."""
    drafting = sum(bool(e.num_candidates) for e in rounds) / len(rounds)
    # A run that drafted throughout measures the model's own error; a paused one does not.
    scale = speedup / costs.speedup(costs.draft_length) if drafting > 1 - _PLAIN_SHARE else 1.0
    best = costs.best_length(_LONGEST)
    reachable = scale * costs.speedup(best)
    options: list[tuple[float, Change]] = []
    if str(result.get("method", "")).startswith("uag"):
        least = _LEAST_GAIN_ADAPTIVE if _adapts(result) else _LEAST_GAIN
        sentence = (
            f"Most worth changing: num_assistant_tokens to {best} (the drafts had "
            f"{costs.draft_length:.1f}): {_gain(reachable, speedup)}."
        )
        if reachable >= 1 and best != round(costs.draft_length):
            options.append((least, Change("num_assistant_tokens", sentence, reachable)))
    padding, _ = _padding(result)
    if padding:
        whole = costs.round_s(costs.draft_length)
        predicted = speedup * whole / (whole - min(padding, whole / 2))
        sentence = (
            f"Most worth changing: exact to off, where a rounding difference between two near "
            f"ties may be borne: {_gain(predicted, speedup)}."
        )
        if predicted >= 1:
            options.append((_LEAST_GAIN, Change("exact", sentence, predicted)))
    options = [o for o in options if o[1].predicted / speedup - 1 >= o[0]]
    if options:
        return max((change for _, change in options), key=lambda change: change.predicted)
    if speedup >= 1 or speedup >= 1 - _LEAST_GAIN:
        return None
    if not _adapts(result):
        sentence = (
            "Most worth changing: leave num_assistant_tokens empty, so that drafting stops where "
            f"it does not pay: {_gain(1.0, speedup)} at best."
        )
        return Change("num_assistant_tokens", sentence, 1.0)
    drafts = str(result.get("method", "")).startswith("uag")
    change = "the assistant, or decode plainly" if drafts else "decode plainly"
    reason = f"at these costs the best draft length, {best}, is predicted to give"
    if reachable >= 1:  # the medians promise what the whole run did not keep
        change, reason = f"measure with more repeats, or {change}", "the medians alone would give"
    sentence = (
        f"Most worth changing: {change} ({_gain(1.0, speedup)}): {reason} {_times(reachable)}."
    )
    return Change("assistant" if drafts else "method", sentence, 1.0)


def _gain(predicted: float, speedup: float) -> str:
    gain = predicted / speedup - 1
    return f"predicted {_times(predicted)} instead of {_times(speedup)}, {gain:+.0%}"


def _milliseconds(seconds: float) -> str:
    value = 1000 * seconds
    return f"{value:.1f} ms" if abs(value) >= 1 else f"{value:.2g} ms"


def _times(value: float) -> str:
    """As `1.72×`, never rounded across 1."""
    for digits in (2, 3, 4):
        if float(f"{value:.{digits}f}") != 1.0 or value == 1.0:
            return f"{value:.{digits}f}×"
    return f"{value:.5f}×"
