"""How much to draft, and when not to draft at all.

speedup = tokens per round / (v + d c + o), with v the verify time, c the draft step and o the host
work, each over the plain step t1. What the cost profile and the rounds so far promise decides:
whether drafting begins at all, how long each draft is, and when the loop decodes plainly. While it
does, drafting is tried again now and then, as often as a small share of the time allows, so that a
bad pair costs next to nothing. Nothing outlives a run. Knows times and counts only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from uag_core.config import AssistantConfig
from uag_core.decoding.gains import (
    USUAL,
    Calibration,
    Costs,
    Recent,
    best_draft,
    tokens_per_round,
)

_DEFAULT_DRAFT = 4
_WINDOW = 24
_FIRST_PAUSE = 8
_LONGEST_PAUSE = 128
# Share of the run's plain steps that trials which gain nothing may cost altogether.
_TRIAL_SHARE = 0.03
# Rounds' worth of what is hoped for that are assumed at first: it fades, but slowly, since a few
# rounds of bad luck are no reason to stop. After a pause, of none.
_PRIOR_ROUNDS, _FADING = 3.0, 0.96
# The hope is the usual acceptance, with so many rounds' weight, and what the confidences promise.
_USUAL_ROUNDS = 2.0
_PRIOR_ACCEPTED, _PRIOR_SEEN = 3.0, 5.0


class Prices(Costs, Protocol):
    """A cost profile with the price of reading."""

    @property
    def prefill_s_per_token(self) -> float | None: ...


class Pacer:
    """Decides the draft length of every round.

    Args:
        config: what the caller asked for. A fixed `num_assistant_tokens` is obeyed as in
            transformers and never overridden by the fallback.
        max_candidates: W - 1, most candidates a verification can take.
        profile: the pair's costs, where they have been measured.
        plain_step_s: the plain step's time where only that is known.
        same_shape: plain rounds cost as much as verifications (padded forwards).
        blind: a draft cannot be ended by its confidences before it is complete.
        prompt_tokens: what the assistant has to read before it drafts.
        new_tokens: most tokens of the run.
    """

    def __init__(
        self,
        config: AssistantConfig,
        *,
        max_candidates: int,
        profile: Prices | None = None,
        plain_step_s: float | None = None,
        same_shape: bool = False,
        blind: bool = False,
        prompt_tokens: int = 0,
        new_tokens: int = 128,
    ) -> None:
        self.config = config
        self._max = max_candidates
        self._profile = profile
        self._plain_guess = profile.plain_step_s if profile else plain_step_s
        shapes = range(1, max(1, max_candidates) + 2)  # positions: no candidate, one, ...
        self._known = [profile.verify_at(positions) for positions in shapes] if profile else []
        self._same_shape = same_shape
        self._blind = blind
        self._plain = Recent(_WINDOW)
        self._verify = Recent(_WINDOW)
        self._host = Recent(_WINDOW)
        self._step = Recent(_WINDOW)
        self._drafted = Recent(_WINDOW)
        self._candidates = Recent(_WINDOW)
        self._emitted = Recent(_WINDOW)
        self._accepted, self._seen = _PRIOR_ACCEPTED, _PRIOR_SEEN
        self._calibration = Calibration()
        self._rounds = 0
        self._pause, self._next_pause = 0, _FIRST_PAUSE
        self.pauses = 0
        self._prior = tokens_per_round(USUAL, max(1, min(4, max_candidates)))
        self._prior_weight, self._prior_rounds = _USUAL_ROUNDS, _PRIOR_ROUNDS
        self._balance = 0.0  # seconds that drafting has gained (or lost) so far
        self._tokens = 0
        self._drafts, self._made = 8.0, 8.0  # draft tokens, and candidates made of them
        self._first_length = float(config.num_assistant_tokens or _DEFAULT_DRAFT)
        self._length = self._first_length
        self._chance = 1.0  # that the whole draft so far is accepted
        self._price, self._saving = 0.0, 1.0  # of one more draft token, in seconds, this round
        self._hopeless = self.falls_back and not self._worth_starting(prompt_tokens, new_tokens)

    @property
    def adapts(self) -> bool:
        """Whether the draft length is ours to choose."""
        return self.config.num_assistant_tokens is None

    @property
    def falls_back(self) -> bool:
        return self.adapts and self.config.fallback

    def _worth_starting(self, prompt_tokens: int, new_tokens: int) -> bool:
        """Whether the profile leaves room for a gain, reading the prompt included."""
        profile, plain = self._profile, self.plain_step()
        if profile is None or profile.draft_step_s is None or not plain:
            return True
        reading = prompt_tokens * (profile.prefill_s_per_token or 0.0)

        def gain(acceptance: float) -> float:
            speedup = self._best(acceptance)[1]
            return new_tokens * plain * (1 - 1 / speedup) - reading

        if gain(USUAL) > 0:
            return True
        # Only a rare pair could pay: it may be tried where the trial is cheap.
        trial = reading + 2 * profile.draft_step_s
        return gain(0.95) > 0 and trial < _TRIAL_SHARE * new_tokens * plain

    def _best(self, acceptance: float) -> tuple[int, float]:
        return best_draft(
            acceptance,
            self._max,
            plain=self.plain_step() or 1.0,
            verify=[self._verify_s(count) for count in range(self._max + 1)],
            step=self._step_s(),
            host=self._host.median if self._host else 0.0,
        )

    def _verify_s(self, candidates: int) -> float:
        """Time of a verification of so many candidates, in seconds."""
        if self._profile is None:
            return self._verify.median if self._verify else self._plain_guess or 1.0
        if not self._same_shape:
            return self._known[candidates]
        return self._verify.median if self._verify else self._known[self._max]

    def _step_s(self) -> float:
        if self._step:
            return self._step.median
        return (self._profile.draft_step_s or 0.0) if self._profile else 0.0

    def draft_limit(self) -> int:
        """Most draft tokens for the next round; 0 means decode plainly."""
        self._chance = 1.0
        if not self.adapts:
            return max(1, int(self._length))
        if self._hopeless or self._pause > 0:
            self._pause -= 1
            return 0
        if self.pauses and not self._emitted:
            # A trial: what it may cost must have been earned by plain steps.
            lost = self._trial_cost() - self._balance
            if lost > _TRIAL_SHARE * self._tokens * (self.plain_step() or 0.0):
                return 0
        self._set_prices()
        most = self._best(self._accepted / self._seen)[0] if self._blind else self._max
        # So many draft tokens fill the verification, as this pair's vocabularies compare.
        return min(3 * self._max, max(most, round(most * self._drafts / self._made)))

    def _trial_cost(self) -> float:
        plain = self.plain_step() or 0.0
        return max(0.0, self._verify_s(1) + self._step_s() - plain)

    @property
    def decide(self) -> Callable[[float], bool] | None:
        """`go_on`, or None where no confidence can end a draft."""
        needed = self.adapts or self.config.assistant_confidence_threshold is not None
        return self.go_on if needed else None

    def go_on(self, confidence: float) -> bool:
        """After a draft token: is another one worth its cost?"""
        threshold = self.config.assistant_confidence_threshold
        if threshold is not None and confidence < threshold:
            return False
        if not self.adapts:
            return True
        self._chance *= self._calibration(confidence)
        return self._chance * self._saving > self._price

    def _set_prices(self) -> None:
        self._price = self._step_s()
        if not self._same_shape and self._known:
            self._price += max(0.0, (self._known[-1] - self._known[1]) / max(1, self._max))
        self._saving = self._accepted / self._seen * self._token_time()

    def _token_time(self) -> float:
        """Seconds that one more accepted token saves: what a token costs at present."""
        plain = self.plain_step()
        if not self._emitted or not plain:
            return plain or 1.0
        return min(plain, self._round_time() / self._emitted.mean)

    def plain_step(self) -> float | None:
        """Time of a plain step as far as it is known, in seconds."""
        if self._plain:
            return self._plain.median
        if self._same_shape:
            if self._verify:
                return self._verify.median + (self._host.median if self._host else 0.0) / 2
            if self._profile is not None:
                return self._known[self._max]
        elif self._verify and self._profile is not None and self._plain_guess:
            # The profile is of another moment, perhaps a busier one: what holds is its ratio.
            positions = 1 + round(self._candidates.mean)
            share = self._plain_guess / self._known[min(positions, len(self._known)) - 1]
            return min(1.0, share) * self._verify.median
        return self._plain_guess

    def _round_time(self) -> float:
        return self._verify.median + self._host.median + self._drafted.mean * self._step_s()

    def predicted_speedup(self) -> float | None:
        """Tokens per round over the round's cost in plain steps; None before any draft round.

        Few rounds are read with caution: as if some usual ones had been seen as well.
        """
        plain = self.plain_step()
        if not self._emitted or not plain:
            return None
        rounds = len(self._emitted) + self._prior_rounds
        emitted = (self._emitted.total + self._prior_rounds * self._prior) / rounds
        return emitted * plain / self._round_time()

    def observe_plain(self, seconds: float) -> None:
        """A round without candidates took this long."""
        self._plain.append(seconds)
        self._tokens += 1

    def observe(
        self,
        *,
        confidences: tuple[float, ...],
        num_draft: int,
        num_candidates: int,
        num_accepted: int,
        draft_s: float,
        verify_s: float,
        host_s: float,
    ) -> None:
        """A draft round is over."""
        self._rounds += 1
        self._tokens += num_accepted + 1
        self._drafted.append(num_draft)
        self._candidates.append(num_candidates)
        self._emitted.append(num_accepted + 1)
        if 0 < num_candidates < self._max:  # a list that was cut says nothing of vocabularies
            self._drafts += num_draft
            self._made += num_candidates
        self._verify.append(verify_s)
        self._host.append(host_s)
        if num_draft and self._rounds > 1:  # the first draft contains the assistant's prefill
            self._step.append(draft_s / num_draft)
        self._hope(confidences)
        self._prior_rounds *= _FADING
        self._balance += (num_accepted + 1) * (self.plain_step() or 0.0)
        self._balance -= draft_s + verify_s + host_s
        self._seen += min(num_accepted + 1, num_candidates)
        self._accepted += num_accepted
        if self._seen > 60:  # forget slowly: texts change their nature
            self._seen, self._accepted = self._seen / 2, self._accepted / 2
        self._learn(confidences, num_candidates, num_accepted)
        self._schedule(num_candidates, num_accepted)
        self._fall_back()

    def _hope(self, confidences: tuple[float, ...]) -> None:
        """What this draft promised goes into the prior, until the first pause has settled it.

        So an assistant that is never sure of anything is given up after a round or two, and one
        that is sure and unlucky is not.
        """
        if not confidences or self.pauses:
            return
        promised = self._calibration.tokens(confidences)
        self._prior_weight += 1
        self._prior += (promised - self._prior) / self._prior_weight

    def _learn(self, confidences: tuple[float, ...], candidates: int, accepted: int) -> None:
        """Map the fates of candidates back to draft tokens, in proportion to their numbers."""
        if not confidences or not candidates:
            return
        reached = min(accepted + 1, candidates)
        for index, confidence in enumerate(confidences):
            position = index * candidates // len(confidences)
            if position >= reached:
                break
            self._calibration.observe(confidence, position < accepted)

    def _schedule(self, candidates: int, accepted: int) -> None:
        heuristic = self.config.num_assistant_tokens_schedule.startswith("heuristic")
        if not candidates or not heuristic:
            return
        if accepted == candidates:  # what the verification cannot take is not drafted
            self._length = min(self._length + 2, max(self._max, self._first_length))
        else:
            self._length = max(1.0, self._length - 1)

    def _fall_back(self) -> None:
        speedup = self.predicted_speedup() if self.falls_back else None
        if speedup is None:
            return
        if speedup < 1.0:
            self._pause = self._next_pause
            self._next_pause = min(_LONGEST_PAUSE, 2 * self._next_pause)
            self.pauses += 1
            self._emitted.clear()  # what is old must not outvote a trial
            self._drafted.clear()
            self._prior, self._prior_rounds = 1.0, 1.0
        elif len(self._emitted) > _FIRST_PAUSE:
            self._next_pause = _FIRST_PAUSE
