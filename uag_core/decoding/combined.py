"""Lookup and assistant together: whichever is expected to gain more in this round.

Each source is judged by its own record: lookup by `MatchCalibration`, the assistant by what its
rounds brought and cost. Knows proposers and times, neither models nor verification.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter

from uag_core.decoding.lookup import LookupProposer
from uag_core.decoding.proposers import Proposal, Proposer
from uag_core.tokenization import TargetLedger

_WINDOW = 16
# Accepted tokens and rounds that are assumed of an assistant before it has been asked.
_PRIOR_ACCEPTED, _PRIOR_ROUNDS = 2.0, 2.0


class CombinedProposer:
    """Asks the lookup first and the assistant where it promises more.

    Args:
        lookup, assistant: the two sources.
        cost: cost(k) is what k candidates add to a target forward, in plain steps.
        plain_step: seconds of a plain step as far as they are known, else None.
    """

    def __init__(
        self,
        lookup: LookupProposer,
        assistant: Proposer,
        *,
        cost: Callable[[int], float] = lambda _: 0.0,
        plain_step: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.name = "uag+lookup"
        self.lookup = lookup
        self.assistant = assistant
        self._cost = cost
        self._plain_step = plain_step
        self._asked: Proposal | None = None  # what the assistant proposed in this round
        self._rounds = 0
        self._accepted: deque[int] = deque(maxlen=_WINDOW)
        self._made: deque[int] = deque(maxlen=_WINDOW)
        self._spent: deque[float] = deque(maxlen=_WINDOW)

    @property
    def notices(self) -> list[str]:
        found: list[str] = getattr(self.assistant, "notices", [])
        return found

    def commit(self, ids: Sequence[int], pieces: Sequence[bytes]) -> None:
        if self._asked is not None:
            self._judge(self._asked, ids)
            self._asked = None
        self.lookup.commit(ids, pieces)
        self.assistant.commit(ids, pieces)

    def close(self) -> None:
        self.lookup.close()
        self.assistant.close()

    def propose(
        self,
        ledger: TargetLedger,
        limit: int,
        draft_limit: int,
        go_on: Callable[[float], bool] | None,
    ) -> Proposal:
        start = perf_counter()
        found = self.lookup.suggest(limit)
        better = found.ids and (draft_limit <= 0 or found.gain >= self.assistant_gain())
        looked = perf_counter() - start
        if better:
            return Proposal(candidate_ids=found.ids, source=self.lookup.name, draft_s=looked)
        if draft_limit <= 0:
            return Proposal(source=self.name, reencode_s=looked)
        proposal = self.assistant.propose(ledger, limit, draft_limit, go_on)
        self._asked = proposal
        return replace(proposal, reencode_s=proposal.reencode_s + looked)

    def assistant_gain(self) -> float:
        """Accepted tokens expected of an assistant's round, less its cost, in plain steps."""
        rounds = _PRIOR_ROUNDS + len(self._accepted)
        accepted = (_PRIOR_ACCEPTED + sum(self._accepted)) / rounds
        plain = self._plain_step()
        spent = median(self._spent) / plain if self._spent and plain else 0.0
        made = sum(self._made) / len(self._made) if self._made else 0.0
        return accepted - spent - self._cost(round(made))

    def _judge(self, proposal: Proposal, ids: Sequence[int]) -> None:
        """Note what the assistant's round brought: the candidates that were committed."""
        self._rounds += 1
        accepted = 0
        for candidate, token_id in zip(proposal.candidate_ids, ids, strict=False):
            if candidate != token_id:
                break
            accepted += 1
        self._accepted.append(accepted)
        self._made.append(len(proposal.candidate_ids))
        if self._rounds > 1:  # the first one contains the assistant's prefill
            self._spent.append(proposal.draft_s + proposal.reencode_s)
