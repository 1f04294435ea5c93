"""Which visitor's run is going on, and the flag that stops it. Knows sessions, nothing else."""

from __future__ import annotations

import threading

import gradio as gr


class StopFlags:
    """Which visitor's run should stop: one flag per session, for the time of its run.

    Process-wide because Stop arrives as an event of its own. Holds nothing but flags.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, threading.Event] = {}

    def start(self, session: str) -> threading.Event:
        """The flag of a run that begins now."""
        flag = threading.Event()
        with self._lock:
            self._running[session] = flag
        return flag

    def stop(self, session: str) -> bool:
        """Raises the session's flag; False when its run has not begun (or is over)."""
        with self._lock:
            flag = self._running.get(session)
        if flag is None:
            return False
        flag.set()
        return True

    def end(self, session: str, flag: threading.Event) -> None:
        with self._lock:
            if self._running.get(session) is flag:
                del self._running[session]

    def running(self, session: str) -> bool:
        """Whether a run of this session has begun and is not over."""
        with self._lock:
            return session in self._running

    def __len__(self) -> int:
        return len(self._running)


def session_of(request: gr.Request | None) -> str:
    return str(getattr(request, "session_hash", None) or "")
