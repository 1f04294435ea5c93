"""The rounds of a run as they can be looked at: a fold over its events.

For each round: what was drafted, what it became in the target's vocabulary, on one axis, what
happened to each candidate, and what was committed. Knows events and alignment; nothing of pages,
tokenizers or how a run is computed. Counts and times are not its business (metrics.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from uag_core.events import Drafted, Event, Finished, Origin, Piece, Verified
from uag_core.tokenization.alignment import Alignment, Span, align
from uag_core.tokenization.utf8 import StreamingText

Fate = Literal["accepted", "rejected", "never reached"]


@dataclass(frozen=True, slots=True)
class Round:
    """One round. Round 0 is the prefill; a plain round has no candidates.

    `first` is the 0-based position of its first committed token among the new tokens. `alignment`
    puts `draft` (its upper row) and `candidates` on one axis, on which `spans` places `tokens`;
    the span of a bonus or corrected token starts where it belongs and may reach past the axis.
    `texts[i]` is the text that became complete with `tokens[i]`. `num_draft_tokens` counts also
    what was drafted and gave no candidate. `verified` is False where a run stopped before.
    """

    number: int
    first: int
    source: str
    draft: tuple[Piece, ...]
    confidences: tuple[float, ...]
    candidates: tuple[Piece, ...]
    fates: tuple[Fate, ...]
    alignment: Alignment
    tokens: tuple[Piece, ...]
    origins: tuple[Origin, ...]
    spans: tuple[Span, ...]
    texts: tuple[str, ...]
    num_draft_tokens: int
    verified: bool = True


def rounds(events: Iterable[Event]) -> list[Round]:
    """The rounds of one run, in order. The texts of all of them together are the run's text."""
    fold = _Fold()
    for event in events:
        fold.add(event)
    return fold.close()


def text_bytes(piece: Piece) -> bytes | None:
    """The bytes of text of a token; None for a control token, whose spelling is no text."""
    return None if piece.control else piece.raw


def shows_draft(source: str) -> bool:
    """Whether a proposer's draft is in a vocabulary of its own.

    Lookup proposes target ids; what it calls a draft are the candidates themselves.
    """
    return "lookup" not in source


class _Fold:
    def __init__(self) -> None:
        self._rounds: list[Round] = []
        self._drafted: Drafted | None = None
        self._stream = StreamingText()
        self._pending = b""
        self._count = 0

    def add(self, event: Event) -> None:
        if isinstance(event, Drafted):
            self._drafted = event
        elif isinstance(event, Verified):
            drafted = self._drafted
            if drafted is not None and drafted.round != event.round:
                drafted = None
            self._rounds.append(self._round(event, drafted))
            self._drafted = None
        elif isinstance(event, Finished):
            self._give_rest(self._stream.close())

    def close(self) -> list[Round]:
        drafted = self._drafted
        if drafted is not None:  # stopped before its verification
            empty = Verified(
                drafted.round, (), (), "", len(drafted.draft), 0, 0, 0.0, 0.0, 0.0, 0.0, drafted.t
            )
            self._rounds.append(self._round(empty, drafted, verified=False))
            self._drafted = None
        return self._rounds

    def _round(self, event: Verified, drafted: Drafted | None, *, verified: bool = True) -> Round:
        draft: tuple[Piece, ...] = ()
        candidates: tuple[Piece, ...] = ()
        if drafted is not None:
            candidates = drafted.candidates
            draft = drafted.draft if shows_draft(drafted.source) else ()
        pending = self._pending
        texts = tuple(self._stream.feed(text_bytes(piece) or b"") for piece in event.tokens)
        self._pending = self._stream.pending
        alignment = align(
            [text_bytes(piece) for piece in draft],
            [text_bytes(piece) for piece in candidates],
            pending=pending,
        )
        first, self._count = self._count, self._count + len(event.tokens)
        return Round(
            number=event.round,
            first=first,
            source=drafted.source if drafted is not None else "",
            draft=draft,
            confidences=drafted.confidences[: len(draft)] if drafted is not None else (),
            candidates=candidates,
            fates=_fates(len(candidates), event.num_accepted, event.origins),
            alignment=alignment,
            tokens=event.tokens,
            origins=event.origins,
            spans=_spans(event, alignment),
            texts=texts,
            num_draft_tokens=event.num_draft_tokens,
            verified=verified,
        )

    def _give_rest(self, rest: str) -> None:
        """An unfinished character at the very end belongs to the last token."""
        if rest and self._rounds and self._rounds[-1].texts:
            last = self._rounds[-1]
            texts = (*last.texts[:-1], last.texts[-1] + rest)
            self._rounds[-1] = replace(last, texts=texts)


def _fates(num_candidates: int, num_accepted: int, origins: Sequence[Origin]) -> tuple[Fate, ...]:
    """Accepted up to a point; the next is rejected if the target wrote something else there."""
    corrected = bool(origins) and origins[-1] == "corrected"
    fates: list[Fate] = []
    for index in range(num_candidates):
        if index < num_accepted:
            fates.append("accepted")
        elif index == num_accepted and corrected:
            fates.append("rejected")
        else:
            fates.append("never reached")
    return tuple(fates)


def _spans(event: Verified, alignment: Alignment) -> tuple[Span, ...]:
    """Accepted tokens stand where their candidates do; what the target wrote itself, behind."""
    spans: list[Span] = []
    place: float = alignment.lower[0][0] if alignment.lower else 0
    for index, piece in enumerate(event.tokens):
        if event.origins[index] == "accepted" and index < len(alignment.lower):
            span = alignment.lower[index]
        else:
            span = (place, place + max(1, len(text_bytes(piece) or b"")))
        spans.append(span)
        place = span[1]
    return tuple(spans)
