"""One generation as plain data: what is asked for, the clock, the sums, and how drafts are shown.

Knows ids, bytes and seconds; runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import perf_counter

from uag_core.config import GenerationSettings
from uag_core.decoding.caches import CachedModel
from uag_core.decoding.proposers import Proposal
from uag_core.events import Drafted, Piece
from uag_core.models.handle import LanguageModel
from uag_core.tokenization import TokenizerCodec


@dataclass(slots=True)
class Shapes:
    """How target forwards look: `width` positions over a static cache of `cache_length`.

    `width` None means no padding; then the cache grows and at most `max_candidates` are verified.
    """

    width: int | None
    cache_length: int
    max_candidates: int


@dataclass(slots=True)
class Job:
    """One generation: everything the loop needs, nothing that outlives it."""

    target: LanguageModel
    prompt_ids: Sequence[int]
    settings: GenerationSettings
    shapes: Shapes
    engine: str
    exact: bool = True
    target_lookbehind: int = 10
    num_prompt_tokens_assistant: int | None = None
    path: str | None = None
    notices: Sequence[str] = ()
    cancelled: Callable[[], bool] = lambda: False
    gap_position: int | None = None  # report the logit gap at this new token
    logits_processor: Sequence[object] | None = None
    open_model: Callable[[], CachedModel] | None = None  # a compiled target, in place of an eager


class Clock:
    """Seconds of the run, without those that the consumer of the events spends."""

    def __init__(self) -> None:
        self._start = perf_counter()

    def now(self) -> float:
        return perf_counter() - self._start

    def skip(self, seconds: float) -> None:
        self._start += seconds


@dataclass(slots=True)
class Totals:
    prefill: float = 0.0
    draft: float = 0.0
    reencode: float = 0.0
    verify: float = 0.0
    token_ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    ttft: float | None = None


@lru_cache(maxsize=16_384)  # of vocabularies, not of texts: the same tokens come again and again
def shown(token_id: int, data: bytes, control: bool = False) -> Piece:
    """The piece of an event for a token and its bytes."""
    return Piece(token_id, data.hex(), control)


def checked(proposal: Proposal, limit: int, rows: int) -> Proposal:
    """The proposal, cut at `limit` and before the first id that has no row in the embedding."""
    ids = proposal.candidate_ids
    whole = len(ids)
    count = min(limit, whole)
    for index in range(count):
        if not 0 <= ids[index] < rows:
            count = index
            break
    return proposal if count == whole else replace(proposal, candidate_ids=tuple(ids[:count]))


def drafted(
    number: int, proposal: Proposal, codec: TokenizerCodec, ids: Sequence[int], now: float
) -> Drafted:
    """The event that shows a proposal made behind the committed `ids`."""
    return Drafted(
        round=number,
        draft=tuple(
            shown(i, data)
            for i, data in zip(proposal.draft_ids, proposal.draft_pieces, strict=True)
        ),
        confidences=proposal.confidences,
        candidates=tuple(pieces(codec, proposal.candidate_ids, ids[-16:])),
        source=proposal.source,
        draft_s=proposal.draft_s,
        reencode_s=proposal.reencode_s,
        t=now,
    )


def pieces(codec: TokenizerCodec, ids: Sequence[int], previous: Sequence[int]) -> Iterator[Piece]:
    """The ids as they can be shown: bytes of text, or the spelling of a control token."""
    for token_id, raw in zip(ids, codec.pieces(ids, previous), strict=True):
        control = not raw and codec.is_control(token_id)
        yield shown(token_id, codec.spelling(token_id) if control else raw, control)
