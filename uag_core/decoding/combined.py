"""Lookup and assistant together: whichever is expected to gain more in this round.

Each source is judged by its own record: lookup by `MatchCalibration`, the assistant by what its
rounds brought and cost. The assistant has to read the prompt before its first draft, which short
answers never pay back: it starts once the rounds that would have been its own add up to that
price, so that starting, or not starting, is at most twice as dear as having known (rent or buy).
Knows proposers and times, neither models nor verification.
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
_PRIOR_ACCEPTED, _PRIOR_ROUNDS = 1.6, 2.0
_PRIOR_DRAFTS = 3.0  # draft tokens of a round, before it has been asked
_READ_TOKENS = 64.0  # prompt tokens that an assistant reads in about the time of a draft step
_PROBE = 24  # rounds after which an assistant that does not pay is tried again


class CombinedProposer:
    """Asks the lookup first and the assistant where it promises more.

    Args:
        lookup, assistant: the two sources.
        cost: cost(k) is what k candidates add to a target forward, in plain steps.
        plain_step: seconds of a plain step as far as they are known, else None.
        draft_step_s: seconds of the assistant's draft step, None where it was not measured.
        prompt_tokens: length of the prompt that the assistant has to read first.
        always: ask the assistant whenever the lookup is no better, whether it pays or not (for
            those who fix its draft length).
    """

    def __init__(
        self,
        lookup: LookupProposer,
        assistant: Proposer,
        *,
        cost: Callable[[int], float] = lambda _: 0.0,
        plain_step: Callable[[], float | None] = lambda: None,
        draft_step_s: float | None = None,
        prompt_tokens: int = 0,
        always: bool = False,
    ) -> None:
        self.name = "uag+lookup"
        self.lookup = lookup
        self.assistant = assistant
        self._cost = cost
        self._plain_step = plain_step
        self._asked: Proposal | None = None  # what the assistant proposed in this round
        self._draft_step_s = draft_step_s or 0.0
        self._price_s = self._draft_step_s * (1 + prompt_tokens / _READ_TOKENS)
        self._always = always
        self._missed = 0.0  # gain of the rounds that would have been the assistant's, plain steps
        self._waited = 0  # rounds since an assistant that does not pay was tried
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
        asked = draft_limit > 0 and self._wants(found.gain if found.ids else 0.0)
        looked = perf_counter() - start
        if found.ids and not asked:
            return Proposal(candidate_ids=found.ids, source=self.lookup.name, draft_s=looked)
        if not asked:
            return Proposal(source=self.name, reencode_s=looked)
        proposal = self.assistant.propose(ledger, limit, draft_limit, go_on)
        self._asked = proposal
        return replace(proposal, reencode_s=proposal.reencode_s + looked)

    def _wants(self, other: float) -> bool:
        """Whether to ask the assistant in a round where `other` is the gain without it."""
        gain = self.assistant_gain()
        if self._always:
            return gain > other or not other
        if not self._rounds:
            self._missed += max(0.0, gain - other)
            return gain > other and self._missed >= self._steps(self._price_s)
        if gain > other:
            self._waited = 0
            return True
        self._waited += not other
        if self._waited < _PROBE or other:
            return False
        self._waited = 0
        return True

    def _steps(self, seconds: float) -> float:
        """Seconds as a number of plain steps; 0 while their time is unknown."""
        plain = self._plain_step()
        return seconds / plain if plain else 0.0

    def assistant_gain(self) -> float:
        """Accepted tokens expected of an assistant's round, less its cost, in plain steps."""
        rounds = _PRIOR_ROUNDS + len(self._accepted)
        accepted = (_PRIOR_ACCEPTED + sum(self._accepted)) / rounds
        spent = median(self._spent) if self._spent else _PRIOR_DRAFTS * self._draft_step_s
        made = sum(self._made) / len(self._made) if self._made else 0.0
        return accepted - self._steps(spent) - self._cost(round(made))

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
