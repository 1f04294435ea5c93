"""Prompt lookup: the text so far proposes its own continuation, without any model.

`SuffixIndex` finds the longest recent suffix that has occurred before; `LookupProposer` proposes
what followed it then. It judges itself for nothing: what it would have proposed is compared with
what was committed, whether it was verified or not. Knows target ids only, neither models nor
clocks of a run. After Saxena, "Prompt Lookup Decoding" (2023), with the hash chains of LZ77.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from uag_core.decoding.proposers import LOOKUP, Proposal
from uag_core.tokenization import TargetLedger, TokenizerCodec

MAX_NGRAM = 16  # longer matches predict no better
MAX_CANDIDATES = 10  # of an unpadded verification; the value in transformers' documentation
_MAX_CHAIN = 64  # earlier occurrences that are looked at, the most recent ones
# Acceptance by match length, before there is anything to go by: lengths up to the given one.
_BUCKETS = ((1, 0.2), (2, 0.4), (3, 0.55), (4, 0.65), (6, 0.75), (9, 0.85), (MAX_NGRAM * 99, 0.9))
_PRIOR_WEIGHT = 3.0
_MEMORY = 48.0  # observations after which older ones fade


class SuffixIndex:
    """Where the last ids have stood before, brought up to date one id at a time.

    Adding an id costs the same at any length and keeps a bounded number of bytes. Earlier
    occurrences of the last two ids are chained, most recent first; the longest common suffix among
    the last `_MAX_CHAIN` of them wins, the most recent one of equals. A match of a single id is
    the fallback.
    """

    def __init__(
        self, ids: Sequence[int] = (), *, max_ngram: int = MAX_NGRAM, min_ngram: int = 1
    ) -> None:
        self.ids: list[int] = []
        self.max_ngram = max_ngram
        self.min_ngram = min_ngram
        self._one: dict[int, int] = {}  # id -> where it stood last, the end of the text excepted
        self._two: dict[tuple[int, int], int] = {}  # the same for two ids: where the second stood
        self._before = array("q")  # position -> the position before it in its chain, or -1
        self.extend(ids)

    def __len__(self) -> int:
        return len(self.ids)

    def extend(self, ids: Sequence[int]) -> None:
        for token_id in ids:
            self._index_last()
            self.ids.append(token_id)

    def _index_last(self) -> None:
        """Enter the n-grams that end at the last id: from now on something follows them."""
        end = len(self.ids) - 1
        if end < 0:
            return
        before = -1
        if end:
            key = (self.ids[end - 1], self.ids[end])
            before = self._two.get(key, -1)
            self._two[key] = end
        self._before.append(before)
        self._one[self.ids[end]] = end

    def match(self) -> tuple[int, int]:
        """Length of the longest match, at most `max_ngram`, and where what followed it begins.

        (0, -1) where nothing of `min_ngram` ids or more has occurred before.
        """
        ids, last = self.ids, len(self.ids) - 1
        if last < 1:
            return 0, -1
        best, found = 0, -1
        if self.max_ngram > 1:
            end = self._two.get((ids[last - 1], ids[last]), -1)
            for _ in range(_MAX_CHAIN):
                if end < 0:
                    break
                length, most = 2, min(self.max_ngram, end + 1)
                while length < most and ids[end - length] == ids[last - length]:
                    length += 1
                if length > best:
                    best, found = length, end
                    if best >= self.max_ngram:
                        break
                end = self._before[end]
        if not best:
            found = self._one.get(ids[last], -1)
            best = 1 if found >= 0 else 0
        if best < self.min_ngram or not best:
            return 0, -1
        return best, found + 1

    def continuation(self, start: int, count: int) -> list[int]:
        """`count` ids from `start` on; behind the end of the text the stretch repeats itself."""
        rest = self.ids[start : start + count]
        period = len(self.ids) - start
        while len(rest) < count:
            rest.append(rest[len(rest) - period])
        return rest


class MatchCalibration:
    """How often the next id of a match of some length came true, in this run."""

    def __init__(self) -> None:
        self._accepted = [_PRIOR_WEIGHT * chance for _, chance in _BUCKETS]
        self._seen = [_PRIOR_WEIGHT] * len(_BUCKETS)

    @staticmethod
    def _bucket(length: int) -> int:
        for index, (most, _) in enumerate(_BUCKETS):
            if length <= most:
                return index
        return len(_BUCKETS) - 1

    def __call__(self, length: int) -> float:
        index = self._bucket(length)
        return self._accepted[index] / self._seen[index]

    def observe(self, length: int, accepted: bool) -> None:
        index = self._bucket(length)
        self._accepted[index] += accepted
        self._seen[index] += 1.0
        if self._seen[index] > _MEMORY:
            self._accepted[index] /= 2
            self._seen[index] /= 2


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What a lookup proposes: the `ids` worth verifying, the `length` of the match, and the
    `gain`, the accepted tokens expected of them less what verifying them costs (plain steps)."""

    ids: tuple[int, ...] = ()
    length: int = 0
    gain: float = 0.0


class LookupProposer:
    """Proposes what followed the longest earlier match of the text's end.

    Args:
        codec: the target's; control tokens are never proposed.
        prompt_ids: the prompt as target ids, which is searched like everything behind it.
        cost: cost(k) is what k candidates add to a target forward, in plain steps.
        num_tokens: fixed number of candidates (`prompt_lookup_num_tokens`); None proposes as many
            as pay.
        max_ngram, min_ngram: bounds of the match's length (`max_matching_ngram_size` and the
            least).
    """

    def __init__(
        self,
        codec: TokenizerCodec,
        prompt_ids: Sequence[int],
        *,
        cost: Callable[[int], float] = lambda _: 0.0,
        num_tokens: int | None = None,
        max_ngram: int = MAX_NGRAM,
        min_ngram: int = 1,
    ) -> None:
        self.name = LOOKUP
        self.index = SuffixIndex(prompt_ids, max_ngram=max_ngram, min_ngram=min_ngram)
        self.calibration = MatchCalibration()
        self._codec = codec
        self._cost = cost
        self._num_tokens = num_tokens
        self._foreseen: tuple[int, list[int]] = (0, [])  # the last match and what followed it

    def commit(self, ids: Sequence[int], pieces: Sequence[bytes]) -> None:
        length, foreseen = self._foreseen
        self._foreseen = (0, [])
        for offset, (expected, token_id) in enumerate(zip(foreseen, ids, strict=False)):
            # A candidate behind right ones continues a match that is longer by them.
            self.calibration.observe(length + offset, expected == token_id)
            if expected != token_id:
                break
        self.index.extend(ids)

    def close(self) -> None:
        self.index = SuffixIndex()

    def suggest(self, limit: int) -> Suggestion:
        """The best proposal of at most `limit` candidates; empty where none pays."""
        if self._num_tokens is not None:
            limit = min(limit, self._num_tokens)
        length, start = self.index.match()
        if not length or limit <= 0:
            self._foreseen = (0, [])
            return Suggestion()
        ids = self.index.continuation(start, limit)
        for position, token_id in enumerate(ids):
            if self._codec.is_control(token_id):
                del ids[position:]
                break
        self._foreseen = (length, ids)
        count, gain = self._best_count(length, len(ids))
        return Suggestion(tuple(ids[:count]), length, gain)

    def _best_count(self, length: int, most: int) -> tuple[int, float]:
        """How many candidates to propose, and the gain expected of them in plain steps."""
        chance, expected = 1.0, 0.0
        best, gain = 0, 0.0
        for count in range(1, most + 1):
            chance *= self.calibration(length + count - 1)
            expected += chance
            net = expected - self._cost(count)
            if net > gain or (self._num_tokens is not None and count == most):
                best, gain = count, net
        return best, gain

    def propose(
        self,
        ledger: TargetLedger,
        limit: int,
        draft_limit: int,
        go_on: Callable[[float], bool] | None,
    ) -> Proposal:
        start = perf_counter()
        found = self.suggest(limit)
        return Proposal(candidate_ids=found.ids, source=self.name, draft_s=perf_counter() - start)
