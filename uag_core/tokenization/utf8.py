"""Small helpers for bytes that may end inside a character."""

from __future__ import annotations

import codecs


def incomplete_tail(data: bytes | bytearray) -> int:
    """Number of trailing bytes (0 to 3) that begin a character which is not complete yet.

    A tail that can never become a character counts as complete: it will be replaced, not awaited.
    """
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if 0x80 <= byte < 0xC0:  # a continuation byte: look further back for its lead
            continue
        width = 2 if 0xC2 <= byte < 0xE0 else 3 if 0xE0 <= byte < 0xF0 else 0
        if 0xF0 <= byte < 0xF5:
            width = 4
        if width <= back:
            return 0
        # An impossible second byte (overlong, surrogate) is an error now, not later.
        decoder = codecs.getincrementaldecoder("utf-8")("strict")
        try:
            decoder.decode(bytes(data[-back:]))
        except UnicodeDecodeError:
            return 0
        return back
    return 0


def is_boundary(data: bytes | bytearray, offset: int) -> bool:
    """Whether a character may start at `offset` (it is no continuation byte)."""
    return offset >= len(data) or not 0x80 <= data[offset] < 0xC0


class StreamingText:
    """Bytes in, text out: unfinished characters are held back, impossible ones become U+FFFD.

    The texts returned by `feed` and `close` together equal `bytes.decode("utf-8", "replace")`.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        return self._decoder.decode(data)

    def close(self) -> str:
        return self._decoder.decode(b"", final=True)

    @property
    def pending(self) -> bytes:
        """The bytes that are held back."""
        return self._decoder.getstate()[0]
