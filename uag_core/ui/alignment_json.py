"""The rounds of a run, and two tokenizations of a text, as compact JSON for the page's drawings.

Bytes travel as text in which a byte that is no character is a lone surrogate (PEP 383), so that a
token is shown and measured from one string. The JSON is pure ASCII without `<`, `>` and `&`: it
cannot become markup wherever it is put. Pure; knows neither gradio nor torch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

from uag_core.events import Drafted, Event, Finished, Origin, Piece, Verified, from_json
from uag_core.tokenization.alignment import Alignment
from uag_core.tokenization.rounds import Fate, Round, rounds

ORIGINS: tuple[str, ...] = get_args(Origin)
FATES: tuple[str, ...] = get_args(Fate)
_NEEDED = (Drafted.__name__, Verified.__name__, Finished.__name__)
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def alignment_json(run: dict[str, Any]) -> str:
    """What the Alignment view draws of a run document.

    `{"origins", "rounds": [{"n": round, "s": source, "at": position of its first token, "v":
    verified, "p": draft tokens, "d": draft, "c": candidates, "e": committed, "l": links, "b":
    shared places}]}`. A draft token is [id, label, start, end, group, confidence], a candidate
    [id, label, start, end, group, fate, control], a committed token [id, label, start, end,
    origin, control, text]; fates and origins are indices into `FATES` and `ORIGINS`.
    """
    recorded = run.get("events", {}).get(run["result"].get("method"), ())
    events: list[Event] = [from_json(event) for event in recorded if event["type"] in _NEEDED]
    return compact({"origins": ORIGINS, "rounds": [_round(shown) for shown in rounds(events)]})


def label(data: bytes) -> str:
    """Bytes as text; `encode("utf-8", "surrogateescape")` gives them back."""
    return data.decode("utf-8", "surrogateescape")


def groups_of(alignment: Alignment) -> tuple[list[int], list[int]]:
    """The number of the group that each token of the upper and of the lower row belongs to."""
    upper, lower = [0] * len(alignment.upper), [0] * len(alignment.lower)
    for number, group in enumerate(alignment.groups):
        for index in group.upper:
            upper[index] = number
        for index in group.lower:
            lower[index] = number
    return upper, lower


def compact(value: Any) -> str:
    """JSON that is safe in markup and in scripts."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char, escape in _ESCAPES.items():
        text = text.replace(char, escape)
    return text


def _round(shown: Round) -> dict[str, Any]:
    upper, lower = groups_of(shown.alignment)
    confidences: Sequence[float | None] = [*shown.confidences, *[None] * len(shown.draft)]
    return {
        "n": shown.number,
        "s": shown.source,
        "at": shown.first,
        "v": shown.verified,
        "p": shown.num_draft_tokens,
        "d": [
            [*_shown(piece), *span, group, None if confidence is None else round(confidence, 4)]
            for piece, span, group, confidence in zip(
                shown.draft, shown.alignment.upper, upper, confidences, strict=False
            )
        ],
        "c": [
            [*_shown(piece), *span, group, FATES.index(fate), int(piece.control)]
            for piece, span, group, fate in zip(
                shown.candidates, shown.alignment.lower, lower, shown.fates, strict=True
            )
        ],
        "e": [
            [*_shown(piece), *span, ORIGINS.index(origin), int(piece.control), text]
            for piece, span, origin, text in zip(
                shown.tokens, shown.spans, shown.origins, shown.texts, strict=True
            )
        ],
        "l": shown.alignment.links,
        "b": shown.alignment.shared,
    }


def _shown(piece: Piece) -> tuple[int, str]:
    return piece.id, label(piece.raw)
