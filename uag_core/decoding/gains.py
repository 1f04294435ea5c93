"""What drafting is expected to gain, from the costs of a pair and an acceptance.

speedup = tokens per round / (v + d c + o), each cost over the plain step. Knows numbers only.
Source: Leviathan et al., arXiv 2211.17192, section 3.3.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import Protocol

# Acceptance of a token that is assumed of a pair before there is anything to go by.
USUAL = 0.6
_WIDTHS = (4, 5, 6, 8, 12, 16)
# A width is for the easy stretches of a text: hard ones draft less than it has room for.
_EASY = 0.7
_CLEARLY = 1.1  # another width has to promise so much more: timings are noisy

_BINS = 8


class Costs(Protocol):
    """The part of a cost profile that matters here, in seconds."""

    @property
    def plain_step_s(self) -> float: ...
    @property
    def draft_step_s(self) -> float | None: ...
    @property
    def verify_by_width(self) -> dict[int, float]: ...
    def verify_at(self, positions: int) -> float: ...


class Recent:
    """The last `most` values, with their median and mean, each at hand at any time."""

    def __init__(self, most: int) -> None:
        self._values: deque[float] = deque()
        self._sorted: list[float] = []
        self._most = most
        self._sum = 0.0

    def append(self, value: float) -> None:
        if len(self._values) == self._most:
            oldest = self._values.popleft()
            del self._sorted[bisect_left(self._sorted, oldest)]
            self._sum -= oldest
        self._values.append(value)
        insort(self._sorted, value)
        self._sum += value

    def clear(self) -> None:
        self._values.clear()
        self._sorted.clear()
        self._sum = 0.0

    def __len__(self) -> int:
        return len(self._values)

    @property
    def total(self) -> float:
        return self._sum

    @property
    def mean(self) -> float:
        """Raises `ZeroDivisionError` where there is no value yet."""
        return self._sum / len(self._values)

    @property
    def median(self) -> float:
        """Raises `IndexError` where there is no value yet."""
        values = self._sorted
        middle = len(values) // 2
        return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


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

    def tokens(self, confidences: Sequence[float]) -> float:
        """Expected tokens of a round whose draft has these confidences."""
        total = chance = 1.0
        for confidence in confidences:
            chance *= self(confidence)
            total += chance
        return total

    def observe(self, confidence: float, accepted: bool) -> None:
        index = self._bin(confidence)
        self._accepted[index] += accepted
        self._seen[index] += 1


def tokens_per_round(acceptance: float, draft: int) -> float:
    """Expected tokens of a round with `draft` candidates, each accepted with `acceptance`."""
    return sum(acceptance**index for index in range(draft + 1))


def best_draft(
    acceptance: float, most: int, *, plain: float, verify: list[float], step: float, host: float
) -> tuple[int, float]:
    """The draft length of 1 to `most` that promises most, and its speedup over plain steps.

    `verify[n]` is the time of a verification of n candidates; all times in one unit.
    """
    best, length = 0.0, 1
    for count in range(1, most + 1):
        cost = verify[min(count, len(verify) - 1)] + count * step + host
        speedup = tokens_per_round(acceptance, count) * plain / cost
        if speedup > best:
            best, length = speedup, count
    return length, best


def best_width(profile: Costs, usual: int) -> int:
    """W for fixed shapes: `usual`, or the measured width that promises clearly more.

    Judged against the plain step without padding, which is what users would have otherwise.
    """

    def promise(width: int) -> float:
        verify = [profile.verify_at(width)] * width
        step = profile.draft_step_s or 0.0
        return best_draft(
            _EASY,
            width - 1,
            plain=profile.plain_step_s,
            verify=verify,
            step=step,
            host=0.0,
        )[1]

    widths = [width for width in _WIDTHS if width in profile.verify_by_width]
    if usual not in profile.verify_by_width or not widths:
        return usual
    best = max(widths, key=promise)
    return best if promise(best) > _CLEARLY * promise(usual) else usual
