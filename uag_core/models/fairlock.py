"""A lock that is handed on in the order in which it was asked for. Knows no models."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

_POLL_S = 0.05


class FairLock:
    """A lock that is handed on in the order in which it was asked for.

    Not re-entrant. Any thread may release it, since a generator can be closed by another thread
    than the one that started it.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._queue: deque[object] = deque()
        self._held = False

    def acquire(
        self,
        cancelled: Callable[[], bool] | None = None,
        waiting: Callable[[int], None] | None = None,
    ) -> bool:
        """Wait for the lock. True: it is held now. False: `cancelled()` became true first.

        `waiting(n)` is called, outside of the lock's own mutex, whenever the number n of holders
        and waiters ahead has changed; never when the lock is free. An exception from either
        callback leaves the queue and passes on.
        """
        ticket = object()
        told = 0
        with self._condition:
            self._queue.append(ticket)
        try:
            while True:
                if cancelled is not None and cancelled():
                    return False
                with self._condition:
                    if not self._held and self._queue[0] is ticket:
                        self._held = True
                        return True
                    ahead = self._queue.index(ticket) + self._held
                    if ahead == told or waiting is None:
                        self._condition.wait(_POLL_S if cancelled is not None else None)
                        continue
                told = ahead
                waiting(ahead)
        finally:
            with self._condition:
                self._queue.remove(ticket)
                self._condition.notify_all()

    def release(self) -> None:
        """Hand the lock to the next in the queue. Raises `RuntimeError` when nobody holds it."""
        with self._condition:
            if not self._held:
                raise RuntimeError("release of a lock that is not held")
            self._held = False
            self._condition.notify_all()

    @property
    def held(self) -> bool:
        return self._held

    @property
    def queue_length(self) -> int:
        """How many wait, the holder not counted."""
        with self._condition:
            return len(self._queue)
