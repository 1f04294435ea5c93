"""When a generation ends: the EOS set, stop strings, the length limit, the context.

Looks at committed tokens one at a time, in order, so that the earliest stop always wins, also
inside a block of accepted tokens (transformers#47912, #48039). Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

from uag_core.events import FinishReason


class StopChecker:
    """Feed it every committed token; it answers with the reason to stop, or None.

    Stop strings are looked for in the bytes of the generated text alone. Control tokens count
    with their literal spelling, so that a stop string such as `<|im_end|>` works.
    """

    def __init__(
        self,
        *,
        eos_ids: Sequence[int],
        stop_strings: Sequence[str],
        max_new_tokens: int,
        room: int,
    ) -> None:
        self.eos_ids = frozenset(eos_ids)
        self._stops = [stop.encode() for stop in stop_strings]
        self._reach = max((len(stop) for stop in self._stops), default=1) - 1
        self._tail = b""
        self.limit = min(max_new_tokens, room)
        self._limit_reason: FinishReason = "length" if max_new_tokens <= room else "context"
        self.count = 0

    @property
    def remaining(self) -> int:
        """Tokens that may still be committed."""
        return self.limit - self.count

    def push(self, token_id: int, spelling: bytes) -> FinishReason | None:
        """Count one committed token whose literal bytes are `spelling`."""
        self.count += 1
        if token_id in self.eos_ids:
            return "eos"
        if self._stops:
            text = self._tail + spelling
            if any(stop in text for stop in self._stops):
                return "stop_string"
            self._tail = text[-self._reach :] if self._reach else b""
        if self.count >= self.limit:
            return self._limit_reason
        return None

    @property
    def limit_reason(self) -> FinishReason:
        """The reason to give when nothing may be committed at all."""
        return self._limit_reason
