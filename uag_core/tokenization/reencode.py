"""The heart of universal assisted generation: draft bytes in, target candidates out.

The draft is encoded together with a short window of committed text, so that merges across the
seam come out as the target's tokenizer would write them (string-level exact match, SLEM; Timor
et al., arXiv 2502.05202; transformers#33383). Committed ids are never rewritten: where the joint
encoding does not respect the end of the committed text, the draft is encoded alone.
Knows nothing of models; every result is only a proposal that the target will verify.
"""

from __future__ import annotations

from uag_core.tokenization.codec import TokenizerCodec
from uag_core.tokenization.ledger import TargetLedger, complete_text


def reencode(ledger: TargetLedger, draft: bytes, limit: int) -> list[int]:
    """At most `limit` target ids that would continue the committed ids with the bytes `draft`.

    `draft` continues the committed bytes; an unfinished character at its end is held back. Control
    tokens and the unknown token are never proposed: the list is cut before the first of them.
    """
    if limit <= 0 or not draft:
        return []
    codec = ledger.codec
    start, pieces = ledger.window(draft)
    committed = ledger.ids[start:]
    joint = _joint(ledger, committed, pieces, draft)
    if joint is None:
        text = complete_text(draft).decode()
        joint = ledger.encoder(text) if text else []
    result: list[int] = []
    for token_id in joint[:limit]:
        if codec.is_control(token_id) or token_id == codec.unknown_id:
            break
        result.append(token_id)
    return result


def _joint(
    ledger: TargetLedger, committed: list[int], pieces: list[bytes], draft: bytes
) -> list[int] | None:
    """Candidates from encoding window and draft as one text; None where that does not fit.

    Fits: the ids of the window come out again, or at least a token boundary falls exactly at the
    end of the committed bytes (committed ids need not be what the tokenizer itself would choose).
    """
    codec = ledger.codec
    skip = 0
    while skip < len(pieces):
        context = b"".join(pieces[skip:])
        text = complete_text(context + draft)
        if len(text) > len(context):
            ids = ledger.encoder(text.decode())
            count = len(committed) - skip
            if ids[:count] == committed[skip:]:
                return ids[count:]
            return _after(codec, ids, len(context)) if codec.is_exact else None
        if len(text) == len(context):
            return None  # no character of the draft is complete
        # Committed bytes that are no text stand in the way: look only at what follows them.
        position = 0
        while position <= len(text):
            position += len(pieces[skip])
            skip += 1
    return None


def _after(codec: TokenizerCodec, ids: list[int], offset: int) -> list[int] | None:
    """The ids behind byte `offset`, if one of them begins exactly there."""
    position = 0
    for index, token_id in enumerate(ids):
        if position >= offset:
            return ids[index:] if position == offset else None
        position += len(codec.piece(token_id))
    return None
