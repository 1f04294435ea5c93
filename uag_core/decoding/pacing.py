"""How much to draft, and when not to draft at all.

speedup = tokens per round / (v + d c + o), with v the verify time, c the draft step and o the host
work, each over the plain step t1. While an estimate from this run's own medians says that drafting
loses, the loop decodes plainly and probes again now and then. Nothing outlives a run.
Knows times and counts only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median

from uag_core.config import AssistantConfig

_DEFAULT_DRAFT = 4
_WINDOW = 24
_TRIAL_ROUNDS = 4
_FIRST_PAUSE = 8
_LONGEST_PAUSE = 128
# Acceptance of one more token that is assumed before there is anything to go by.
_PRIOR_ACCEPTED, _PRIOR_SEEN = 3.0, 5.0
_BINS = 8


class Calibration:
    """The acceptance seen so far, as a function of the assistant's confidence.

    Confidences fall into equal bins; each starts as if a few tokens had been accepted exactly as
    often as the assistant was sure.
    """

    def __init__(self, weight: float = 4.0) -> None:
        centres = [(index + 0.5) / _BINS for index in range(_BINS)]
        self._accepted = [weight * centre for centre in centres]
        self._seen = [weight] * _BINS

    @staticmethod
    def _bin(confidence: float) -> int:
        return min(_BINS - 1, max(0, int(confidence * _BINS)))

    def __call__(self, confidence: float) -> float:
        """Estimated probability that a draft token of this confidence is accepted."""
        index = self._bin(confidence)
        return self._accepted[index] / self._seen[index]

    def observe(self, confidence: float, accepted: bool) -> None:
        index = self._bin(confidence)
        self._accepted[index] += accepted
        self._seen[index] += 1


class Pacer:
    """Decides the draft length of every round.

    Args:
        config: what the caller asked for. A fixed `num_assistant_tokens` is obeyed as in
            transformers and never overridden by the fallback.
        max_candidates: W - 1, most candidates a verification can take.
        plain_step_s: the plain step's time if it is known before the run, else None.
        same_shape: plain rounds cost as much as verifications (padded forwards).
    """

    def __init__(
        self,
        config: AssistantConfig,
        *,
        max_candidates: int,
        plain_step_s: float | None = None,
        same_shape: bool = False,
    ) -> None:
        self.config = config
        self._max = max_candidates
        self._plain: deque[float] = deque(maxlen=_WINDOW)
        self._plain_guess = plain_step_s
        self._same_shape = same_shape
        self._verify: deque[float] = deque(maxlen=_WINDOW)
        self._host: deque[float] = deque(maxlen=_WINDOW)
        self._step: deque[float] = deque(maxlen=_WINDOW)
        self._drafted: deque[int] = deque(maxlen=_WINDOW)
        self._emitted: deque[int] = deque(maxlen=_WINDOW)
        self._accepted, self._seen = _PRIOR_ACCEPTED, _PRIOR_SEEN
        self._calibration = Calibration()
        self._rounds = 0
        self._pause = 0
        self._next_pause = _FIRST_PAUSE
        self.pauses = 0
        self._drafts, self._made = 8.0, 8.0  # draft tokens, and candidates made of them
        self._first_length = float(config.num_assistant_tokens or _DEFAULT_DRAFT)
        self._length = self._first_length
        self._chance = 1.0  # that the whole draft so far is accepted

    @property
    def adapts(self) -> bool:
        """Whether the draft length is ours to choose."""
        return self.config.num_assistant_tokens is None

    def draft_limit(self) -> int:
        """Most draft tokens for the next round; 0 means decode plainly."""
        self._chance = 1.0
        if not self.adapts:
            return max(1, int(self._length))
        if self._pause > 0:
            self._pause -= 1
            return 0
        # So many draft tokens fill the verification, as this pair's vocabularies compare.
        return min(3 * self._max, max(self._max, round(self._max * self._drafts / self._made)))

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
        step = median(self._step) if self._step else 0.0
        gain = self._chance * (self._accepted / self._seen) * self._token_time()
        return gain > step

    def _token_time(self) -> float:
        """Seconds that one more accepted token saves: what a token costs at present."""
        plain = self.plain_step()
        if not self._emitted or not plain:
            return plain or 1.0
        return min(plain, self._round_time() / (sum(self._emitted) / len(self._emitted)))

    def plain_step(self) -> float | None:
        """Time of a plain step as far as it is known, in seconds."""
        if self._plain:
            return median(self._plain)
        if self._same_shape and self._verify:
            return median(self._verify) + (median(self._host) if self._host else 0.0) / 2
        return self._plain_guess

    def _round_time(self) -> float:
        drafted = sum(self._drafted) / len(self._drafted)
        return median(self._verify) + median(self._host) + drafted * median(self._step or [0.0])

    def predicted_speedup(self) -> float | None:
        """Tokens per round over the round's cost in plain steps; None before any draft round."""
        plain = self.plain_step()
        if not self._emitted or not plain:
            return None
        return (sum(self._emitted) / len(self._emitted)) * plain / self._round_time()

    def observe_plain(self, seconds: float) -> None:
        """A round without candidates took this long."""
        self._plain.append(seconds)

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
        self._drafted.append(num_draft)
        self._emitted.append(num_accepted + 1)
        if (
            0 < num_candidates < self._max
        ):  # a list that was cut says nothing about the vocabularies
            self._drafts += num_draft
            self._made += num_candidates
        self._verify.append(verify_s)
        self._host.append(host_s)
        if num_draft and self._rounds > 1:  # the first draft contains the assistant's prefill
            self._step.append(draft_s / num_draft)
        self._seen += min(num_accepted + 1, num_candidates)
        self._accepted += num_accepted
        if self._seen > 60:  # forget slowly: texts change their nature
            self._seen, self._accepted = self._seen / 2, self._accepted / 2
        self._learn(confidences, num_candidates, num_accepted)
        self._schedule(num_candidates, num_accepted)
        self._fall_back()

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
        if not candidates:
            return
        if not self.config.num_assistant_tokens_schedule.startswith("heuristic"):
            return
        if accepted == candidates:  # what the verification cannot take is not drafted
            self._length = min(self._length + 2, max(self._max, self._first_length))
        else:
            self._length = max(1.0, self._length - 1)

    def _fall_back(self) -> None:
        if not self.adapts or not self.config.fallback:
            return
        if self._rounds < _TRIAL_ROUNDS:
            return
        speedup = self.predicted_speedup()
        if speedup is None:
            return
        if speedup < 1.0:
            self._pause = self._next_pause
            self._next_pause = min(_LONGEST_PAUSE, 2 * self._next_pause)
            self.pauses += 1
            while len(self._emitted) > _TRIAL_ROUNDS:  # what is old must not outvote a probe
                self._emitted.popleft()
                self._drafted.popleft()
        else:
            self._next_pause = _FIRST_PAUSE
