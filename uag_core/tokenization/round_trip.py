"""What a tokenizer does not give back: a text encoded and decoded again, and why it differs.

Losses are found token by token, in linear time. Knows tokenizers, nothing of pages or of how the
engine avoids these losses (codec.py does).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from uag_core.tokenization.codec import TokenizerCodec

WHY = {
    "normaliser": "The tokenizer rewrites the text before it cuts it.",
    "unknown token": "No token stands for this text, so one token for everything unknown does.",
    "dummy prefix": "The tokenizer puts a space in front of a text and takes one off again.",
    "lossy decode": "The tokens are right, but decoding them spells the text differently.",
}


@dataclass(frozen=True, slots=True)
class Loss:
    """A stretch that does not survive: byte offsets in the UTF-8 text, before and after."""

    reason: str
    start: int
    end: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """`text` is what the tokenizer itself decodes; `exact` whether it is the one encoded."""

    exact: bool
    text: str
    losses: tuple[Loss, ...]


def round_trip(tokenizer: Any, codec: TokenizerCodec, text: str) -> RoundTrip:
    """Encode `text` without special tokens and decode it, as a user of `tokenizer` would.

    Not safe while another thread uses the same tokenizer.
    """
    ids = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    if decoded == text:
        return RoundTrip(True, decoded, ())
    found = list(_token_losses(codec, text))
    spelled = _apply(text, found)
    found.extend(_decoding_losses(text, spelled, decoded))
    found.sort(key=lambda loss: (loss.start, loss.end))
    told = tuple(loss for loss in _merged(found) if loss.before != loss.after)
    return RoundTrip(False, decoded, told or (_whole(text, decoded),))


def _token_losses(codec: TokenizerCodec, text: str) -> Iterator[Loss]:
    """Where the bytes of the tokens are not those of the text that they stand for."""
    ids, ends = codec.encode_with_ends(text)
    pieces = codec.pieces(ids)
    data = text.encode()
    start = 0
    for end, members in groupby(range(len(ids)), key=ends.__getitem__):
        indices = list(members)
        before = data[start:end]
        after = b"".join(pieces[index] for index in indices)
        if before != after:
            old, new = _text(before), _text(after)
            unknown = any(ids[index] == codec.unknown_id for index in indices)
            yield Loss(_reason(codec, old, unknown), start, end, old, new)
        start = end
    if start < len(data):
        yield Loss(_reason(codec, _text(data[start:]), False), start, len(data), text, "")


def _reason(codec: TokenizerCodec, before: str, unknown: bool) -> str:
    if unknown:
        return "unknown token"
    return "normaliser" if codec.normalise(before) != before else "lossy decode"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _apply(text: str, losses: list[Loss]) -> str:
    """The text as the tokens spell it."""
    data, parts, position = text.encode(), [], 0
    for loss in losses:
        parts += [_text(data[position : loss.start]), loss.after]
        position = loss.end
    return "".join([*parts, _text(data[position:])])


def _whole(text: str, decoded: str) -> Loss:
    """All between the beginning and the end that both texts have in common."""
    head = _common(text, decoded)
    tail = _common(text[head:][::-1], decoded[head:][::-1])
    before, after = text[head : len(text) - tail], decoded[head : len(decoded) - tail]
    start = len(text[:head].encode())
    return Loss("lossy decode", start, start + len(before.encode()), before, after)


def _common(one: str, other: str) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _decoding_losses(text: str, spelled: str, decoded: str) -> Iterator[Loss]:
    """What the tokenizer's own `decode` changes besides: the dummy prefix, cleaned-up spaces."""
    lead, other = len(spelled) - len(spelled.lstrip(" ")), len(decoded) - len(decoded.lstrip(" "))
    if lead != other:
        yield Loss("dummy prefix", 0, lead, " " * lead, " " * other)
        spelled, decoded = spelled[lead:], decoded[other:]
    if spelled == decoded:
        return
    # Clean-up only takes spaces away; whatever else differs is told as one stretch.
    i = j = 0
    offset = len(text.encode()) - len(spelled.encode())
    while i < len(spelled):
        if j < len(decoded) and spelled[i] == decoded[j]:
            j += 1
        elif spelled[i] == " ":
            at = max(0, offset + len(spelled[:i].encode()))
            yield Loss("lossy decode", at, at + 1, " ", "")
        else:
            at = max(0, offset + len(spelled[:i].encode()))
            rest = decoded[j:]
            yield Loss("lossy decode", at, len(text.encode()), spelled[i:], rest)
            return
        i += 1
    if j < len(decoded):
        end = len(text.encode())
        yield Loss("lossy decode", end, end, "", decoded[j:])


def _merged(losses: list[Loss]) -> Iterator[Loss]:
    """Neighbours of one reason as one."""
    last: Loss | None = None
    for loss in losses:
        if last is not None and last.reason == loss.reason and last.end == loss.start:
            last = Loss(
                last.reason,
                last.start,
                loss.end,
                last.before + loss.before,
                last.after + loss.after,
            )
            continue
        if last is not None:
            yield last
        last = loss
    if last is not None:
        yield last


def visible(text: str) -> str:
    """A text on one line in which no character is invisible."""
    marks = {" ": "·", "\n": "⏎", "\r": "␍", "\t": "→"}
    return "".join(
        marks.get(char) or (f"(U+{ord(char):04X})" if _hidden(char) else char) for char in text
    )


def _hidden(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp", "Cs"}
