"""Between an assistant's tokens and the target's: through text, or id by id.

`TextBridge` is universal assisted generation proper (any two tokenizers). `IdBridge` is for pairs
whose tokenizers are the same, whatever the padding of their vocabularies. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from uag_core.tokenization import AssistantLedger, TargetLedger, TokenizerCodec, reencode
from uag_core.tokenization.utf8 import incomplete_tail


class Bridge(Protocol):
    """The assistant's ids for the text so far, and the way back into target ids.

    `one_to_one`: a draft token is a candidate.
    """

    one_to_one: bool

    @property
    def ids(self) -> list[int]: ...

    def commit(self, ids: Sequence[int], pieces: Sequence[bytes]) -> None: ...

    def sync(self) -> int: ...

    def restart(self, keep: int) -> None: ...

    def pieces(self, ids: Sequence[int]) -> list[bytes]: ...

    def candidates(
        self, ledger: TargetLedger, ids: Sequence[int], pieces: Sequence[bytes], limit: int
    ) -> list[int]: ...

    def is_whole(
        self, candidates: Sequence[int], ledger: TargetLedger, pieces: Sequence[bytes]
    ) -> bool: ...


class TextBridge:
    """Draft bytes are re-encoded with the target's tokenizer, in a short window."""

    one_to_one = False

    def __init__(self, codec: TokenizerCodec, prompt_ids: Sequence[int], lookbehind: int) -> None:
        self._ledger = AssistantLedger(codec, prompt_ids, lookbehind)

    @property
    def ids(self) -> list[int]:
        return self._ledger.ids

    def commit(self, ids: Sequence[int], pieces: Sequence[bytes]) -> None:
        self._ledger.feed(b"".join(pieces))

    def sync(self) -> int:
        return self._ledger.sync()

    def restart(self, keep: int) -> None:
        self._ledger.restart(keep)

    def pieces(self, ids: Sequence[int]) -> list[bytes]:
        return self._ledger.codec.pieces(ids, self._ledger.ids[-16:])

    def candidates(
        self, ledger: TargetLedger, ids: Sequence[int], pieces: Sequence[bytes], limit: int
    ) -> list[int]:
        draft = self._continuation(pieces)
        return [] if draft is None else reencode(ledger, draft, limit)

    def is_whole(
        self, candidates: Sequence[int], ledger: TargetLedger, pieces: Sequence[bytes]
    ) -> bool:
        """Whether the candidates stand for all of the draft, so that an end may follow them."""
        draft = self._continuation(pieces)
        if draft is None or incomplete_tail(draft):
            return False
        if not ledger.codec.is_exact:
            return bool(candidates) or not draft
        return b"".join(ledger.codec.pieces(candidates, ledger.ids[-16:])) == draft

    def _continuation(self, pieces: Sequence[bytes]) -> bytes | None:
        """The draft's bytes behind the committed ones.

        Committed bytes that begin a character are not in the assistant's ids: a draft has to
        begin with them, and one that does not continues another text.
        """
        draft = b"".join(pieces)
        pending = self._ledger.pending
        if not draft.startswith(pending):
            return None
        return draft[len(pending) :]


class IdBridge:
    """Draft ids are target ids."""

    one_to_one = True

    def __init__(self, codec: TokenizerCodec, prompt_ids: Sequence[int]) -> None:
        self._codec = codec
        self.ids: list[int] = list(prompt_ids)
        self._read = len(self.ids)

    def commit(self, ids: Sequence[int], pieces: Sequence[bytes]) -> None:
        self.ids.extend(ids)

    def sync(self) -> int:
        same, self._read = self._read, len(self.ids)
        return same

    def restart(self, keep: int) -> None:
        del self.ids[: max(0, len(self.ids) - keep)]
        self._read = len(self.ids)

    def pieces(self, ids: Sequence[int]) -> list[bytes]:
        return self._codec.pieces(ids, self.ids[-16:])

    def candidates(
        self, ledger: TargetLedger, ids: Sequence[int], pieces: Sequence[bytes], limit: int
    ) -> list[int]:
        return list(ids[:limit])

    def is_whole(
        self, candidates: Sequence[int], ledger: TargetLedger, pieces: Sequence[bytes]
    ) -> bool:
        return len(candidates) == len(pieces)
