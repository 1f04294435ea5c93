"""Who has which tokens for the same text: one ledger for the target, one for the assistant.

`TargetLedger` holds the committed ids, which are never rewritten, with the bytes they stand for.
`AssistantLedger` holds the same text in the assistant's own tokens; it is brought up to date by
re-encoding a short window, so that the cost of a round does not depend on the context's length.
Knows nothing of models or caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from uag_core.tokenization.codec import TokenizerCodec
from uag_core.tokenization.utf8 import StreamingText, incomplete_tail, is_boundary
from uag_core.tokenization.words import WordEncoder, begins_word

# Where an encoding may start without depending on what stands before it.
_SPACES = b" \n\t\r"
# A character has at most four bytes, so at most three tokens more than asked for are looked at.
_CHARACTER = 4


class TargetLedger:
    """The committed target ids and the bytes of the most recent ones.

    `ids` starts with the prompt; `num_prompt` of them are the prompt's. Pieces are kept for the
    tail that windows can reach and for everything generated.
    """

    def __init__(self, codec: TokenizerCodec, prompt_ids: Sequence[int], lookbehind: int) -> None:
        self.codec = codec
        self.ids: list[int] = list(prompt_ids)
        self.num_prompt = len(self.ids)
        self.lookbehind = lookbehind
        self._first = max(0, self.num_prompt - lookbehind - 2 * _CHARACTER)
        tail = self.ids[self._first :]
        self._pieces = codec.pieces(tail, self.ids[: self._first])
        self._barrier = self._first
        for index, token_id in enumerate(tail, self._first):
            if codec.is_control(token_id):
                self._barrier = index + 1

    @cached_property
    def encoder(self) -> WordEncoder:
        """Encodes drafts; made when the first one is there."""
        return self.codec.word_encoder()

    def __len__(self) -> int:
        return len(self.ids)

    def append(self, token_id: int) -> bytes:
        """Commit one id and return the bytes it adds."""
        codec = self.codec
        piece = codec.piece(token_id, () if codec.is_exact else self.ids[-2 * _CHARACTER :])
        self.ids.append(token_id)
        self._pieces.append(piece)
        if not piece and codec.is_control(token_id):
            self._barrier = len(self.ids)
        return piece

    def window(self, draft: bytes = b"") -> tuple[int, list[bytes]]:
        """Index of the first id that `draft` could be merged with, and the pieces from there on.

        The window reaches back to the beginning of a word, or over `lookbehind` ids where that is
        farther or the tokenizer knows no words. It never reaches across a control token and never
        starts inside a character.
        """
        end = len(self.ids)
        start = max(self._barrier, end - self.lookbehind)
        if self.encoder.words is not None:
            after = draft
            for index in range(end, start, -1):
                before = self._piece(index - 1)
                if before and len(after) > 1 and begins_word(before[-1], after[0], after[1]):
                    return index, self._pieces[index - self._first :]
                after = before
        while start < end and not is_boundary(self._piece(start), 0):
            start += 1
        if start == end:
            # Everything in reach is the inside of one character: take its beginning in as well.
            start = max(self._barrier, end - self.lookbehind)
            limit = max(self._barrier, start - _CHARACTER)
            tail = b"".join(self._pieces[start - self._first :])
            while start > limit and (not tail or not is_boundary(tail, 0)):
                start -= 1
                tail = self._piece(start) + tail
        return start, self._pieces[start - self._first :]

    def _piece(self, index: int) -> bytes:
        return self._pieces[index - self._first]


class AssistantLedger:
    """The assistant's prompt and the generated text, in assistant tokens.

    `ids` is what the assistant should have read by now. `feed` takes committed bytes of the
    generated text; `sync` re-encodes the tail and says how many leading ids are unchanged.
    Impossible bytes are seen as U+FFFD and unfinished characters are held back (`pending`), so
    what the assistant reads is always text.
    """

    def __init__(self, codec: TokenizerCodec, prompt_ids: Sequence[int], lookbehind: int) -> None:
        self.codec = codec
        self._encode = codec.word_encoder()
        self.ids: list[int] = list(prompt_ids)
        self.lookbehind = lookbehind
        self._stream = StreamingText()
        self._barrier = len(self.ids)
        self._text = bytearray()
        self._ends: list[int] = []  # of ids[self._barrier:], offsets into self._text
        self._take_in_prompt()

    def _take_in_prompt(self) -> None:
        """Let windows reach back into a prompt that ends in plain text."""
        start = len(self.ids)
        reach = max(0, start - self.lookbehind - 2 * _CHARACTER)
        while start > reach and not self.codec.is_control(self.ids[start - 1]):
            start -= 1
        if not self.codec.is_exact or start == len(self.ids):
            return
        pieces = self.codec.pieces(self.ids[start:])
        while pieces and not is_boundary(pieces[0], 0):
            pieces.pop(0)
            start += 1
        text = b"".join(pieces)
        try:
            text.decode()
        except UnicodeDecodeError:
            return
        self._barrier = start
        self._text = bytearray(text)
        for piece in pieces:
            self._ends.append((self._ends[-1] if self._ends else 0) + len(piece))

    @property
    def pending(self) -> bytes:
        """Committed bytes that begin a character and are not in `ids` yet."""
        return self._stream.pending

    def feed(self, data: bytes) -> None:
        """Append committed bytes of the generated text."""
        self._text += self._stream.feed(data).encode()

    def sync(self) -> int:
        """Bring `ids` up to date with the text; returns how many leading ids did not change."""
        start = self._window_start()
        base = self._ends[start - 1] if start else 0
        first = self._barrier + start
        if base == len(self._text):
            return len(self.ids)
        text = self._text[base:].decode()
        ids = self._encode(text)
        ends = self.codec.ends(ids, text)
        if ends is None:  # a normaliser changed the text: its own account of the offsets
            ids, ends = self.codec.encode_with_ends(text)
        old = self.ids[first:]
        same = 0
        for left, right in zip(old, ids, strict=False):
            if left != right:
                break
            same += 1
        self.ids[first:] = ids
        self._ends[start:] = [base + end for end in ends]
        return first + same

    def _window_start(self) -> int:
        """Index into `_ends` at which re-encoding starts: a safe boundary where there is one."""
        end = len(self._ends)
        earliest = max(0, end - self.lookbehind)
        if self._encode.words is not None:
            text = self._text
            for index in range(end, earliest, -1):
                at = self._ends[index - 1]
                cut = 0 < at < len(text) - 1 and begins_word(*text[at - 1 : at + 2])
                if cut and self._can_start(index):
                    return index
        while not self._can_start(earliest):
            earliest -= 1
        for index in range(earliest, end):
            offset = self._ends[index - 1] if index else 0
            if self._text[offset : offset + 1] in (b" ", b"\n") and (
                offset == 0 or self._text[offset - 1] not in _SPACES
            ):
                return index if self._can_start(index) else earliest
        return earliest

    def _can_start(self, index: int) -> bool:
        """Whether the text behind token `index - 1` is the text of the tokens from `index` on.

        Not so inside a character, nor between tokens that stand for one span of the text together.
        """
        if index == 0:
            return True
        offset = self._ends[index - 1]
        if index < len(self._ends) and self._ends[index] == offset:
            return False
        return is_boundary(self._text, offset)

    def restart(self, keep: int) -> None:
        """Keep only the last `keep` ids, for a model whose context is shorter than the text."""
        drop = max(0, len(self.ids) - keep)
        gone = max(0, drop - self._barrier)
        while 0 < gone < len(self._ends) and not self._can_start(gone):
            gone += 1
            drop += 1
        del self.ids[:drop]
        if gone:
            base = self._ends[gone - 1]
            del self._text[:base]
            self._ends = [end - base for end in self._ends[gone:]]
        self._barrier = max(0, self._barrier - drop)


def complete_text(data: bytes) -> bytes:
    """`data` up to the first impossible byte or the unfinished character at its end."""
    if data.isascii():
        return data
    cut = len(data) - incomplete_tail(data)
    try:
        data[:cut].decode()
    except UnicodeDecodeError as error:
        cut = error.start
    return data[:cut]
