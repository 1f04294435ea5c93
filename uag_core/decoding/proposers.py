"""Where candidates come from, behind one small interface.

A proposer only proposes: the target verifies every candidate, so nothing here can change the
output, only its speed. `AssistantProposer` drives a model, with any tokenizer (through text) or
with the target's own (through ids). Knows nothing of verification, sampling or events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import torch

from uag_core.decoding.bridges import Bridge
from uag_core.decoding.caches import CachedModel
from uag_core.decoding.sampling import largest, ordered, probabilities, probability
from uag_core.models.handle import LanguageModel
from uag_core.tokenization import TargetLedger

LOOKUP = "lookup"  # the source of proposals that cost no model's time


@dataclass(slots=True)
class Proposal:
    """What a proposer suggests for one round; times in seconds.

    `draft_ids` with their `draft_pieces` (bytes) and `confidences` are in the proposer's own
    vocabulary; `candidate_ids` are the same text as target ids.
    """

    candidate_ids: tuple[int, ...] = ()
    draft_ids: tuple[int, ...] = ()
    draft_pieces: tuple[bytes, ...] = ()
    confidences: tuple[float, ...] = ()
    source: str = ""
    draft_s: float = 0.0
    reencode_s: float = 0.0


class Proposer(Protocol):
    """The interface. `limit` bounds the candidates, `draft_limit` what a model drafts for them.

    With a `draft_limit` of 0 no model may be asked in this round.
    """

    name: str

    def propose(
        self,
        ledger: TargetLedger,
        limit: int,
        draft_limit: int,
        go_on: Callable[[float], bool] | None,
    ) -> Proposal:
        """Suggest up to `limit` target ids that continue `ledger.ids`.

        `go_on(confidence)` tells, after each draft token, whether another one is worth its cost;
        None: draft to the limit.
        """
        ...

    def commit(self, ids: Sequence[int], pieces: Sequence[bytes]) -> None:
        """Take note of committed target ids and the bytes they added."""
        ...

    def close(self) -> None:
        """Free caches."""
        ...


class AssistantProposer:
    """Drafts greedily with an assistant model over its own rolled-back cache.

    A point-mass draft is lossless whatever it is, so drafting is greedy also when the target
    samples. An assistant whose context is shorter than the text goes on from the last half of its
    context; `notices` says so. `model` is the assistant over a cache made by the caller (a
    compiled one), whose capacity then counts as its context; else it has a growing cache.
    """

    def __init__(
        self,
        assistant: LanguageModel,
        bridge: Bridge,
        *,
        capacity: int,
        target_eos_id: int | None,
        cancelled: Callable[[], bool] = lambda: False,
        model: CachedModel | None = None,
    ) -> None:
        self.name = "assistant"
        self.assistant = assistant
        self.bridge = bridge
        self.notices: list[str] = []
        self._eos = frozenset(assistant.eos_token_ids)
        self._target_eos_id = target_eos_id
        self._cancelled = cancelled
        capacity = min(capacity, assistant.context_length + 1)
        self._model = model or CachedModel(assistant, capacity)
        self._most = assistant.context_length  # positions that it may have
        if self._model.static:
            self._most = min(self._most, self._model.capacity)
        self._cached: list[int] = []  # the ids whose keys and values the cache holds
        self._known = min(assistant.codec.size, assistant.embedding_rows)
        self._valid = 0  # leading ids of the bridge that are known to be in the cache

    def commit(self, ids: Sequence[int], pieces: Sequence[bytes]) -> None:
        self.bridge.commit(ids, pieces)

    def close(self) -> None:
        self._model.close()
        self._cached.clear()

    def propose(
        self,
        ledger: TargetLedger,
        limit: int,
        draft_limit: int,
        go_on: Callable[[float], bool] | None,
    ) -> Proposal:
        # One draft token gives one candidate when the tokenizer is shared, about one otherwise.
        draft_limit = min(draft_limit, limit if self.bridge.one_to_one else 3 * limit)
        draft_limit = min(draft_limit, self._most - 1)
        if limit <= 0 or draft_limit <= 0:
            return Proposal(source=self.name)
        start = perf_counter()
        feed = self._catch_up(draft_limit)
        synced = perf_counter()
        if not feed:
            return Proposal(source=self.name, reencode_s=synced - start)
        draft = self._draft if self.assistant.input_device.type == "cpu" else self._draft_on_device
        ids, confidences, ended = draft(feed, draft_limit, go_on)
        drafted = perf_counter()
        pieces = self.bridge.pieces(ids)
        candidates = self.bridge.candidates(ledger, ids, pieces, limit)
        end = self._target_eos_id
        if ended and end is not None and len(candidates) < limit:
            # The assistant's end of turn is the target's by role, not by id or text.
            whole = self.bridge.is_whole(candidates, ledger, pieces)
            candidates = [*candidates, end] if whole else candidates
        done = perf_counter()
        return Proposal(
            candidate_ids=tuple(candidates),
            draft_ids=tuple(ids),
            draft_pieces=tuple(pieces),
            confidences=tuple(confidences),
            source=self.name,
            draft_s=drafted - synced,
            reencode_s=(synced - start) + (done - drafted),
        )

    def _catch_up(self, draft_limit: int) -> list[int]:
        """Bring the ids up to date and roll the cache back to what still holds.

        Returns the ids to feed before drafting; empty where there is nothing to draft from.
        """
        valid = min(self._valid, self.bridge.sync())
        room = self._most - draft_limit
        if len(self.bridge.ids) > room:
            self.bridge.restart(max(1, room // 2))
            valid = 0
            self._note(
                f"The assistant's context ({self._most} tokens) is shorter than "
                "the text; it drafts from the last part of it."
            )
        ids = self.bridge.ids
        # Drafted tokens that were accepted are in the cache already.
        shared = min(len(ids), len(self._cached))
        while valid < shared and self._cached[valid] == ids[valid]:
            valid += 1
        self._valid = valid
        keep = min(valid, len(ids) - 1)
        feed = ids[keep:]
        if not ids or any(not 0 <= i < self.assistant.embedding_rows for i in feed):
            self._note("The assistant cannot read some of the text; it does not draft there.")
            return []
        self._model.rollback(len(self._cached) - keep)
        del self._cached[keep:]
        return feed

    def _read(self, feed: list[int]) -> torch.Tensor | None:
        """(1, V) logits behind the ids that are new to the assistant; None when cancelled."""
        if len(feed) > 64:
            logits = self._model.prefill(feed, self._cancelled)
            if logits is None:
                self._cached = list(self.bridge.ids[: self._model.length])
                return None
        else:
            logits = self._model.forward(feed, last_only=True)
        self._cached.extend(feed)
        self._valid = len(self._cached)
        return logits

    def _draft(
        self, feed: list[int], draft_limit: int, go_on: Callable[[float], bool] | None
    ) -> tuple[list[int], list[float], bool]:
        """Greedy draft ids with confidences, and whether the assistant ended its turn."""
        ids: list[int] = []
        confidences: list[float] = []
        rows: list[torch.Tensor] = []
        logits = self._read(feed)
        while logits is not None:
            # Rows past the tokenizer are padding of the head.
            row = logits if logits.shape[1] <= self._known else logits[:, : self._known]
            values = ordered(row)
            token_id = largest(values, 0, row)
            if token_id in self._eos:
                return ids, confidences or probabilities(rows, ids), True
            ids.append(token_id)
            if go_on is None:
                rows.append(row[0])  # nothing depends on it now: all confidences at once, later
            else:
                confidences.append(probability(row, token_id, values))
            if len(ids) >= draft_limit or self._cancelled():
                break
            if go_on is not None and not go_on(confidences[-1]):
                break
            logits = self._model.forward([token_id])
            self._cached.append(token_id)
        return ids, confidences or probabilities(rows, ids), False

    def _draft_on_device(
        self, feed: list[int], draft_limit: int, go_on: Callable[[float], bool] | None
    ) -> tuple[list[int], list[float], bool]:
        """As `_draft`, without waiting for the device between tokens: one wait for all of them.

        What `go_on` would have ended earlier is cut off afterwards.
        """
        logits = self._read(feed)
        if logits is None:
            return [], [], False
        chosen: list[torch.Tensor] = []
        surest: list[torch.Tensor] = []
        while True:
            scores = logits[:, : self._known].float()
            value, where = scores.max(dim=-1)
            chosen.append(where)
            surest.append((value - scores.logsumexp(dim=-1)).exp())
            if len(chosen) == draft_limit:
                break
            logits = self._model.forward(where.unsqueeze(0))
        packed = torch.cat([torch.cat(chosen).double(), torch.cat(surest).double()]).tolist()
        ids = [int(value) for value in packed[:draft_limit]]
        confidences = packed[draft_limit:]
        self._cached.extend(ids[:-1])
        for index, token_id in enumerate(ids):
            if token_id in self._eos:
                return ids[:index], confidences[:index], True
            if go_on is not None and not go_on(confidences[index]):
                return ids[: index + 1], confidences[: index + 1], False
        return ids, confidences, False

    def _note(self, message: str) -> None:
        if message not in self.notices:
            self.notices.append(message)
