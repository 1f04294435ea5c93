"""How much two tokenizers have in common: pieces, lengths, boundaries.

Pieces are compared by the bytes they stand for, not by their spelling: `Ġthe` and `▁the` are both
" the". Knows tokenizers, no models.
"""

from __future__ import annotations

import re
from typing import Any

from uag_core.tokenization.codec import TokenizerCodec

_WORD = re.compile(r"\w+", re.UNICODE)


def meanings(codec: TokenizerCodec) -> dict[int, bytes]:
    """The bytes that each text token stands for, by id; control tokens are left out.

    Without a byte table (WordPiece) words are taken to follow a space.
    """
    found: dict[int, bytes] = {}
    for token_id in range(codec.size):
        if codec.is_control(token_id):
            continue
        if codec.table is not None:
            piece = codec.table.pieces[token_id]
        else:
            spelling = codec.spelling(token_id)
            piece = spelling[2:] if spelling.startswith(b"##") else b" " + spelling
        if piece:
            found[token_id] = piece
    return found


def vocabulary(target: TokenizerCodec, assistant: TokenizerCodec, text: str) -> dict[str, Any]:
    """Pieces that both vocabularies have, counted and weighted by how often `text` uses them.

    Shares are of the distinct pieces of each side; `weighted_*` are of the tokens of `text`.
    """
    left, right = meanings(target), meanings(assistant)
    ours, theirs = set(left.values()), set(right.values())
    both = ours & theirs

    def weighted(codec: TokenizerCodec, pieces: dict[int, bytes]) -> float | None:
        ids = codec.encode(text)
        return sum(pieces.get(i) in both for i in ids) / len(ids) if ids else None

    return {
        "target_tokens": len(left),
        "assistant_tokens": len(right),
        "shared": len(both),
        "share_of_target": len(both) / len(ours) if ours else None,
        "share_of_assistant": len(both) / len(theirs) if theirs else None,
        "weighted_target": weighted(target, left),
        "weighted_assistant": weighted(assistant, right),
    }


def fertility(codec: TokenizerCodec, text: str) -> dict[str, Any]:
    """Tokens of `text`, per character and per word; None where there is nothing to divide by."""
    count = len(codec.encode(text))
    words = len(_WORD.findall(text))
    return {
        "tokens": count,
        "tokens_per_character": count / len(text) if text else None,
        "tokens_per_word": count / words if words else None,
    }


def boundaries(target: TokenizerCodec, assistant: TokenizerCodec, text: str) -> dict[str, Any]:
    """Where in `text` both cut; the end of the text, where both must, is not counted.

    Shares are of the cuts of each side, None for a side that makes none.
    """
    total = len(text.encode())
    ours = {end for end in target.encode_with_ends(text)[1] if 0 < end < total}
    theirs = {end for end in assistant.encode_with_ends(text)[1] if 0 < end < total}
    both = len(ours & theirs)
    return {
        "shared": both,
        "share_of_target": both / len(ours) if ours else None,
        "share_of_assistant": both / len(theirs) if theirs else None,
    }
