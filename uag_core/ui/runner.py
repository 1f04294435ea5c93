"""Drives one run, a comparison or a benchmark, in a thread; hands its items over in batches.

A handler that waits for a model cannot be cancelled, so the run's stream runs beside it: the
worker fills a bounded queue, `batches` wakes up on a fixed tick, takes what is there and yields
it, empty or not. Every way a visitor leaves (Stop, a closed tab, a cancelled job) ends in the
`finally` below, which only raises flags. Knows no gradio and no model.
"""

from __future__ import annotations

import contextvars
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from uag_core.errors import OutOfMemoryError, RunCancelled, UAGError
from uag_core.ui import limits, zerogpu
from uag_core.ui.limits import TimedFlag

logger = logging.getLogger(__name__)

TICK_S = 0.2  # five batches a second: each costs the run, most of all where cores are few
QUEUE_SIZE = 1024
STOP_GRACE_S = 5.0  # how long a stopped run may take to hand in what it has


class Pair(Protocol):
    """What the page needs of a model pair."""

    def compare_stream(self, prompt: Any, *args: Any, **kwargs: Any) -> Iterator[Any]: ...


MakePair = Callable[..., Pair]


class Request(Protocol):
    """What somebody asked for: the models, and how to open the stream of the run."""

    @property
    def target(self) -> str: ...
    @property
    def assistant(self) -> str | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...

    def open(
        self, pair: Any, *, cancel: threading.Event, waiting: Callable[[int], None]
    ) -> Iterator[Any]: ...


@dataclass(frozen=True, slots=True)
class Loading:
    """The models are being fetched or loaded."""

    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The run ended without a document. One line, meant to be shown."""

    message: str
    cancelled: bool = False


def default_pair(target: str, assistant: str | None, **options: Any) -> Pair:
    """The real thing. Imported on first use, so that the page itself starts without torch."""
    if zerogpu.enabled():
        return zerogpu.ZeroPair(target, assistant, **options)
    from uag_core.pair import ModelPair

    return ModelPair(target, assistant, **options)


def describe(error: BaseException) -> Failure:
    """An exception as the one line that people may see; nothing of its frames is kept."""
    if isinstance(error, RunCancelled):
        return Failure("Stopped before anything was measured.", cancelled=True)
    if isinstance(error, UAGError):
        return Failure(str(error))
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return Failure(str(OutOfMemoryError("The run did not fit into memory.")))
    logger.error("A comparison failed", exc_info=error)
    return Failure(
        f"The run failed inside the engine ({type(error).__name__}); the server's log says more."
    )


class _Worker:
    """The thread, its queue, and the two flags that end it."""

    def __init__(self, request: Request, make_pair: MakePair, cancel: threading.Event):
        self.items: queue.Queue[Any] = queue.Queue(maxsize=QUEUE_SIZE)
        self.finished = threading.Event()
        self.abandoned = threading.Event()
        self._request, self._make_pair = request, make_pair
        self._cancel: Any = TimedFlag(cancel, limits.current().run_seconds)
        # With the context of the event: on ZeroGPU it says whose quota a run is charged to.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="compare", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def _put(self, item: Any) -> None:
        while not self.abandoned.is_set():
            try:
                self.items.put(item, timeout=TICK_S)
                return
            except queue.Full:
                continue

    def _progress(self, message: str) -> None:
        if self._cancel.is_set():
            raise RunCancelled("Stopped while the models were loading.")
        self._put(Loading(str(message)))

    def _waiting(self, ahead: int) -> None:
        self._cancel.restart()
        self._put(Loading(f"Waiting for the device, {ahead} ahead"))

    def _run(self) -> None:
        try:
            self._put(self._ended(self._compare()))
        finally:
            self.finished.set()

    def _ended(self, last: Any) -> Any:
        """The last item, which says so where it was the time limit that ended the run."""
        if not self._cancel.expired:
            return last
        document = getattr(last, "document", None)
        if isinstance(document, dict):
            document.setdefault("notices", []).append(self._cancel.notice)
            return last
        return Failure(self._cancel.notice)

    def _compare(self) -> Any:
        """Runs what was asked for; returns its last item, or the failure that took its place."""
        asked = self._request
        try:
            self._progress("Loading the models")
            pair = self._make_pair(
                asked.target,
                asked.assistant,
                dtype=asked.dtype,
                device=asked.device,
                progress=self._progress,
            )
            stream = asked.open(pair, cancel=self._cancel, waiting=self._waiting)
            try:
                for item in stream:
                    if self.abandoned.is_set():
                        break
                    if hasattr(item, "document"):
                        return item
                    self._put(item)
            finally:
                close = getattr(stream, "close", None)
                if close is not None:
                    close()
            return Failure("Stopped before anything was measured.", cancelled=True)
        except BaseException as error:  # noqa: BLE001 - whatever ends the thread must be shown
            return describe(error)


def batches(request: Request, make_pair: MakePair, cancel: threading.Event) -> Iterator[list[Any]]:
    """Batches of `Loading`, the stream's steps and at the very end its result or a `Failure`.

    The result is the item with a `document`.

    One batch a tick, empty ones included, so that a consumer that is closed notices at once.
    """
    worker = _Worker(request, make_pair, cancel)
    stopped_at: float | None = None
    worker.start()
    try:
        while True:
            finished = worker.finished.wait(TICK_S)
            batch: list[Any] = []
            for _ in range(QUEUE_SIZE):
                try:
                    batch.append(worker.items.get_nowait())
                except queue.Empty:
                    break
            if finished and worker.items.empty():
                yield batch
                return
            if cancel.is_set():
                stopped_at = stopped_at or time.monotonic()
                if time.monotonic() - stopped_at > STOP_GRACE_S:
                    yield [*batch, Failure("Stopped. The models are still busy.", cancelled=True)]
                    return
            yield batch
    finally:
        cancel.set()
        worker.abandoned.set()
