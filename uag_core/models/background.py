"""Work that can be left at once: it runs in a thread, the caller listens and may walk away.

A call that waits for a server or for a library cannot be interrupted. So the caller's `progress`
is called several times a second (the last line again where there is no new one), and whatever it
raises ends the wait; the work itself ends at its own next line. Knows no models.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from uag_core.errors import RunCancelled

Progress = Callable[[str], None]
T = TypeVar("T")

_POLL_S = 0.2
_PATIENCE = 3  # polls without a line before the first one is repeated


def run(work: Callable[[Progress], T], progress: Progress | None, waiting: str) -> T:
    """The result of `work(tell)`, with the lines that it tells passed on to `progress`.

    `waiting` is the line for a beginning that takes long. Without a `progress` nobody can cancel,
    and the work is simply done here. Raises what the work raises, or what `progress` raises; in
    that case the work is abandoned and its next `tell` raises `RunCancelled` in its thread.
    """
    if progress is None:
        return work(_silent)
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    abandoned = threading.Event()
    outcome: dict[str, Any] = {}

    def tell(line: str) -> None:
        if abandoned.is_set():
            raise RunCancelled("The models are not needed any more.")
        lines.put(line)

    def body() -> None:
        try:
            outcome["result"] = work(tell)
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            outcome["error"] = error.with_traceback(None)
        finally:
            lines.put(None)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(body,), name="uag-load", daemon=True).start()
    last, silent = waiting, 0
    try:
        while True:
            try:
                line = lines.get(timeout=_POLL_S)
            except queue.Empty:
                silent += 1
                if silent >= _PATIENCE:
                    progress(last)
                continue
            if line is None:
                break
            last, silent = line, _PATIENCE
            progress(line)
    except BaseException:
        abandoned.set()
        raise
    error = outcome.pop("error", None)
    if error is not None:
        raise error
    result: T = outcome.pop("result")
    return result


def _silent(_line: str) -> None:
    return None
