"""Limits of a run that many people share a machine for: how long it may take.

A limit ends a run as Stop does: what was measured until then is still reported, with a notice.
Knows no model and no page.
"""

from __future__ import annotations

import time
from typing import Any


class TimedFlag:
    """A cancel flag that also becomes set when its time is over.

    `seconds` None means no limit. `expired` says that it was the time, not the visitor.
    """

    def __init__(self, flag: Any, seconds: float | None) -> None:
        self._flag = flag
        self._seconds = seconds
        self._started = time.monotonic()
        self.expired = False

    def restart(self) -> None:
        """Count from now: waiting for others is nobody's running time."""
        self._started = time.monotonic()

    def is_set(self) -> bool:
        if self.expired or self._flag.is_set():
            return True
        if self._seconds is not None and time.monotonic() - self._started > self._seconds:
            self.expired = True
        return self.expired

    @property
    def notice(self) -> str:
        """The line for the reader of a run that was ended by its limit."""
        return (
            f"Ended after {self._seconds or 0:.0f} s, the time a run has on this machine: "
            "ask for fewer new tokens, repeats or reference engines."
        )
