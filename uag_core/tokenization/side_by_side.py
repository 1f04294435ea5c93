"""One text in two tokenizers: the tokens, counts, shared boundaries and what does not survive.

Encodes as the engine does: as text that continues something, without special tokens, with control
spellings read as text. Plain values come out; no weights are needed. Knows nothing of pages.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, Protocol

from uag_core.errors import InputError
from uag_core.tokenization.alignment import from_ends
from uag_core.tokenization.codec import TokenizerCodec
from uag_core.tokenization.round_trip import WHY, round_trip

MAX_CHARACTERS = 20_000
MAX_LOSSES = 50  # told one by one; all are counted


class Named(Protocol):
    """A tokenizer with its codec, as `models.tokenizers.load_tokenizer` gives it."""

    @property
    def id(self) -> str: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def tokenizer(self) -> Any: ...
    @property
    def codec(self) -> TokenizerCodec: ...
    @property
    def lock(self) -> threading.Lock | nullcontext[None]: ...


def check_text(text: object) -> str:
    """`text`, if it can be tokenized. Raises `InputError` with one line."""
    if not isinstance(text, str):
        raise InputError("text must be a string.")
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"The text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are accepted."
        )
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise InputError("The text holds half a surrogate pair, which is no character.")
    return text


def side_by_side(text: str, target: Named, assistant: Named) -> dict[str, Any]:
    """`{"text", "same_tokenizer", "target", "assistant", "shared_boundaries"}`.

    For each tokenizer: `name`, `revision`, `vocab_size`, `count`, `characters`, `bytes`,
    `chars_per_token`, `bytes_per_token` (None without tokens), `tokens` and `round_trip`. A token
    is `{"id", "text", "bytes", "start", "end", "control"}`: `text` is None where it is a part of
    a character, `bytes` is hexadecimal, `start` and `end` are byte offsets in the UTF-8 text
    (tokens that stand for one stretch together have the same). `round_trip` is `{"exact", "text",
    "num_losses", "losses": [{"reason", "why", "start", "end", "before", "after"}]}`.
    `shared_boundaries` counts token boundaries inside the text: `count` in both, of `target` and
    of `assistant`; `percent` of all that either has, None where there are none.
    Raises `InputError` for a text that is too long.
    """
    text = check_text(text)
    ours, theirs = (_one(text, named) for named in (target, assistant))
    inner = [{t["end"] for t in one["tokens"][:-1]} - {_size(text)} for one in (ours, theirs)]
    common, either = inner[0] & inner[1], inner[0] | inner[1]
    return {
        "text": text,
        "same_tokenizer": target.codec.fingerprint == assistant.codec.fingerprint,
        "target": ours,
        "assistant": theirs,
        "shared_boundaries": {
            "count": len(common),
            "target": len(inner[0]),
            "assistant": len(inner[1]),
            "percent": 100 * len(common) / len(either) if either else None,
        },
    }


def rows(found: dict[str, Any], limit: int) -> dict[str, Any]:
    """Both rows on the axis of the text, the assistant above, up to about `limit` bytes.

    `{"upper": [(token, span, group)], "lower": the same, "links", "shared", "cut"}`, where `cut`
    is the byte offset at which the rows were cut, None where all of the text is there.
    """
    ends = [[token["end"] for token in found[name]["tokens"]] for name in ("assistant", "target")]
    size = _size(found["text"])
    cut: int | None = None
    if size > limit:
        common = sorted({*ends[0]} & {*ends[1]})
        cut = max((end for end in common if end <= limit), default=limit)
        ends = [[end for end in row if end <= cut] for row in ends]
    alignment = from_ends(*ends)
    groups: list[list[int]] = [[0] * len(ends[0]), [0] * len(ends[1])]
    for number, group in enumerate(alignment.groups):
        for side, members in enumerate((group.upper, group.lower)):
            for index in members:
                groups[side][index] = number
    sides = {}
    for side, (key, name, spans) in enumerate(
        (("upper", "assistant", alignment.upper), ("lower", "target", alignment.lower))
    ):
        sides[key] = list(zip(found[name]["tokens"], spans, groups[side], strict=False))
    return {**sides, "links": alignment.links, "shared": alignment.shared, "cut": cut}


def _size(text: str) -> int:
    return len(text.encode())


def _one(text: str, named: Named) -> dict[str, Any]:
    codec = named.codec
    ids, ends = codec.encode_with_ends(text)
    data = codec.pieces(ids)
    tokens: list[dict[str, Any]] = []
    start = 0
    for index, end in enumerate(ends):
        if index and ends[index - 1] < end:  # else it shares the stretch of the one before
            start = ends[index - 1]
        unknown = ids[index] == codec.unknown_id
        control = unknown or codec.is_control(ids[index])
        raw = data[index] or (codec.spelling(ids[index]) if control else b"")
        tokens.append(
            {
                "id": ids[index],
                "text": _text(raw),
                "bytes": raw.hex(),
                "start": start,
                "end": end,
                "control": control,
            }
        )
    with named.lock:
        trip = round_trip(named.tokenizer, codec, text)
    count = len(ids)
    return {
        "name": named.id,
        "revision": named.revision,
        "vocab_size": len(named.tokenizer),
        "count": count,
        "characters": len(text),
        "bytes": _size(text),
        "chars_per_token": len(text) / count if count else None,
        "bytes_per_token": _size(text) / count if count else None,
        "tokens": tokens,
        "round_trip": {
            "exact": trip.exact,
            "text": trip.text,
            "num_losses": len(trip.losses),
            "losses": [
                {**asdict(loss), "why": WHY[loss.reason]} for loss in trip.losses[:MAX_LOSSES]
            ],
        },
    }


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
