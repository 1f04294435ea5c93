"""What a generation tells the world while it runs: plain values only.

The engine yields these; the page, the metrics, the recorder and the API are folds over the
stream. No tensor, model or tokenizer is ever inside an event, so each of them can be pickled,
written as JSON and replayed. Times are seconds on the run's own clock, which stands still while
the consumer of the stream is at work.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

Origin = Literal["prefill", "accepted", "bonus", "corrected", "plain"]
# The "engine" of a step whose notice says what is being compiled; it never starts or finishes.
COMPILING = "compile"
FinishReason = Literal["eos", "stop_string", "length", "context", "cancelled"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One token as it can be shown: its id and the bytes it stands for, in hex.

    `data` holds raw bytes in hexadecimal, since a token may be a part of a character.
    `control` marks tokens that are no text (their `data` is the literal spelling).
    """

    id: int
    data: str
    control: bool = False

    @property
    def raw(self) -> bytes:
        return bytes.fromhex(self.data)


@dataclass(frozen=True, slots=True)
class Started:
    """The run has begun; nothing has been computed yet."""

    engine: str  # "baseline", "baseline_unpadded", "uag", "lookup", "uag+lookup", "transformers"...
    num_prompt_tokens_target: int
    num_prompt_tokens_assistant: int | None
    max_new_tokens: int
    width: int | None  # W, positions per target forward; None when not padded
    cache_length: int | None  # L of the static cache; None when it grows
    exact: bool
    seed: int | None
    path: Literal["text", "ids"] | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drafted:
    """A proposal is ready and its verification is about to start.

    `draft` are the assistant's own tokens (assistant vocabulary), `candidates` the same text as
    target tokens. `confidences[i]` belongs to `draft[i]`. `source` names the proposer.
    """

    round: int
    draft: tuple[Piece, ...]
    confidences: tuple[float, ...]
    candidates: tuple[Piece, ...]
    source: str
    draft_s: float
    reencode_s: float
    t: float


@dataclass(frozen=True, slots=True)
class Verified:
    """Tokens were committed. Round 0 is the prefill and carries the first token.

    `tokens` and `origins` are what was emitted (after cutting at a stop), `text` the text that
    became complete with it (control tokens left out, an unfinished character held back).
    `num_candidates` leaves out candidates past a stop or a limit.
    """

    round: int
    tokens: tuple[Piece, ...]
    origins: tuple[Origin, ...]
    text: str
    num_draft_tokens: int
    num_candidates: int
    num_accepted: int
    draft_s: float
    reencode_s: float
    verify_s: float
    other_s: float
    t: float


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the reader should know: a fallback, a limit reached."""

    message: str
    t: float = 0.0


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over. The five parts sum to `wall_s`."""

    finish_reason: FinishReason
    token_ids: tuple[int, ...]
    text: str
    num_target_forwards: int
    prefill_s: float
    draft_s: float
    reencode_s: float
    verify_s: float
    other_s: float
    wall_s: float
    ttft_s: float | None
    t: float
    top2_gap: float | None = None  # logit gap at the position that was asked for, if one was


Event = Started | Drafted | Verified | Notice | Finished

_TYPES: dict[str, type] = {
    cls.__name__: cls for cls in (Started, Drafted, Verified, Notice, Finished)
}


def to_json(event: Event) -> dict[str, Any]:
    """The event as a JSON-ready dictionary with its type under `"type"`."""
    return {"type": type(event).__name__, **asdict(event)}


def _piece(data: dict[str, Any]) -> Piece:
    return Piece(data["id"], data["data"], data.get("control", False))


def from_json(data: dict[str, Any]) -> Event:
    """Reverse of `to_json`. Raises `KeyError` or `TypeError` on a document that is none.

    Unknown keys are left out: a version of the run document may gain some.
    """
    cls = _TYPES[data["type"]]
    known = {field.name for field in fields(cls)}
    values = {key: value for key, value in data.items() if key in known}
    for name in ("draft", "candidates", "tokens"):
        if name in values:
            values[name] = tuple(_piece(piece) for piece in values[name])
    for name in ("confidences", "origins", "notices", "token_ids"):
        if name in values:
            values[name] = tuple(values[name])
    return cls(**values)
