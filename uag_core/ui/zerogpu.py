"""Runs on ZeroGPU: a GPU that is lent to one function call at a time, in a process of its own.

Where the package `spaces` is there and says that this is ZeroGPU, a comparison's models are loaded
here, before the process is forked, and its run happens in the worker, which gets and gives plain
data only. Everywhere else this module changes nothing. A stop is a file: events of this process do
not reach the worker. Knows the steps of a comparison; does not know how they are shown.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from uag_core import errors, events
from uag_core.config import (
    DEFAULT_ASSISTANT,
    DEFAULT_TARGET,
    AssistantConfig,
    GenerationSettings,
)
from uag_core.errors import RunCancelled, RunError, UAGError
from uag_core.ui.limits import TimedFlag

try:  # before anything touches CUDA; torch is not imported yet
    import spaces
except ImportError:
    spaces = None

Plain = dict[str, Any]

MAX_SECONDS_VARIABLE = "UAG_ZEROGPU_SECONDS"
PRELOAD_VARIABLE = "UAG_PRELOAD"  # names of further models to load at start, between spaces
MAX_SECONDS = 120
START_S = 20.0  # moving weights, measuring the pair's costs, warming up
SPARE_S = 4.0  # a run ends itself this long before its time on the GPU is over
STEP_S = 0.03  # one forward of a small model, eager
BYTES_PER_S = 1e12  # what a larger one adds: its weights are read once a forward
BATCH_S = 0.1  # items cross the process boundary about ten times a second
WATCH_S = 0.05


class FileFlag:
    """A flag that any process can see: set while (once) the file exists."""

    def __init__(self, path: str) -> None:
        self.path = path

    def is_set(self) -> bool:
        return os.path.exists(self.path)

    def set(self) -> None:
        with contextlib.suppress(OSError):
            Path(self.path).touch()


def duration(_task: str, job: Plain) -> int:
    """Seconds to ask ZeroGPU for: from tokens, engines, repeats and the size of the target.

    Never above UAG_ZEROGPU_SECONDS (120 where it is not set), since a visitor whose quota is
    smaller than what is asked for is refused at once.
    """
    engines = 3 + len(job.get("references") or ())
    step = STEP_S + (job.get("target_bytes") or 0) / BYTES_PER_S
    tokens = int(job["settings"]["max_new_tokens"]) * int(job.get("repeats") or 1)
    wanted = START_S + engines * (tokens + 8) * step + len(str(job.get("prompt"))) / 10_000
    return int(min(max(wanted, 30.0), max_seconds()))


def max_seconds() -> int:
    """The most seconds that one call may ask for."""
    text = os.environ.get(MAX_SECONDS_VARIABLE, "")
    return max(10, int(text)) if text.isdigit() else MAX_SECONDS


# In the worker


def _compare(job: Plain, flag: TimedFlag) -> Iterator[Plain]:
    from uag_core.benchmark.compare import CompareDone
    from uag_core.pair import ModelPair

    pair = ModelPair(
        job["target"],
        job["assistant"],
        dtype=job["dtype"],
        device=job["device"],
        token=job["token"],
    )
    settings = {**job["settings"], "stop": tuple(job["settings"]["stop"])}
    stream = pair.compare_stream(
        job["prompt"],
        GenerationSettings(**settings),
        AssistantConfig.from_dict(job["drafting"]),
        cancel=flag,
        **job["options"],
    )
    for item in stream:
        if isinstance(item, CompareDone):
            if flag.expired:
                item.document["notices"].append(flag.notice)
            runs = {
                name: [[events.to_json(event) for event in run] for run in repeats]
                for name, repeats in item.runs.items()
            }
            yield {"kind": "done", "document": item.document, "runs": runs}
        else:
            event = events.to_json(item.event)
            yield {"kind": "step", "engine": item.engine, "repeat": item.repeat, "event": event}


TASKS: dict[str, Callable[[Plain, TimedFlag], Iterator[Plain]]] = {"compare": _compare}


def _stream(task: str, job: Plain) -> Generator[list[Plain], None, None]:
    """What the worker runs: lists of plain items, the last of which may be an error."""
    flag = TimedFlag(FileFlag(job["stop_file"]), duration(task, job) - SPARE_S)
    batch: list[Plain] = []
    sent = time.monotonic()
    try:
        for item in TASKS[task](job, flag):
            batch.append(item)
            if time.monotonic() - sent >= BATCH_S:
                yield batch
                batch, sent = [], time.monotonic()
    except UAGError as error:
        shown = RunError(flag.notice) if flag.expired else error
        kind = type(shown).__name__
        batch.append({"kind": "error", "type": kind, "message": shown.message, "hint": shown.hint})
    if batch:
        yield batch


# A folder that happens to be called "spaces" imports as well, as an empty package.
_decorate = getattr(spaces, "GPU", None)
gpu_stream = _stream if _decorate is None else _decorate(duration=duration)(_stream)


# In the process that serves the page


def enabled() -> bool:
    """Whether runs go to a ZeroGPU worker; `spaces.GPU` does nothing on other hardware."""
    return gpu_stream is not _stream


def preload() -> None:
    """Load the embedded pair and what UAG_PRELOAD names, so that every worker inherits them."""
    from uag_core.models import registry

    for name in (DEFAULT_TARGET, DEFAULT_ASSISTANT, *os.environ.get(PRELOAD_VARIABLE, "").split()):
        registry.get(name)


@cache
def _device() -> Any:
    """One run at a time: the lock of this process; a worker has one of its own."""
    from uag_core.models.registry import FairLock

    return FairLock()


class ZeroPair:
    """Answers `compare_stream` as `ModelPair` does; the run itself happens in a GPU worker."""

    def __init__(
        self,
        target: str,
        assistant: str | None,
        *,
        dtype: str = "auto",
        device: str = "auto",
        progress: Callable[[str], None] | None = None,
        token: str | None = None,
    ) -> None:
        from uag_core.models import registry
        from uag_core.models.memory import model_bytes

        # Loaded here and not used: the worker is forked from this process and finds them.
        names = [name for name in (target, assistant) if name is not None]
        self._models = [registry.get(name, dtype, device, progress, token=token) for name in names]
        self._job: Plain = {
            "target": target,
            "assistant": assistant,
            "dtype": dtype,
            "device": device,
            "token": token,
            "target_bytes": model_bytes(self._models[0].model),
        }

    def compare_stream(
        self,
        prompt: Any,
        generation_config: GenerationSettings,
        assistant_config: AssistantConfig,
        *,
        cancel: Any = None,
        waiting: Callable[[int], None] | None = None,
        references: Any = (),
        repeats: int = 1,
        **options: Any,
    ) -> Iterator[Any]:
        """The items of `ModelPair.compare_stream`, with its errors."""
        settings = asdict(generation_config)
        job = {
            **self._job,
            "prompt": prompt,
            "settings": {**settings, "stop": list(settings["stop"])},
            "drafting": assistant_config.to_dict(),
            "references": list(references),
            "repeats": repeats,
            "options": {"references": list(references), "repeats": repeats, **options},
        }
        cancelled = (lambda: False) if cancel is None else cancel.is_set
        if not _device().acquire(cancelled, waiting):
            raise RunCancelled("The run was cancelled while it waited for its turn.")
        try:
            yield from _received("compare", job, cancelled)
        finally:
            _device().release()


def _received(task: str, job: Plain, cancelled: Callable[[], bool]) -> Iterator[Any]:
    with _stop_file(cancelled) as path:
        stream = gpu_stream(task, {**job, "stop_file": path})
        try:
            for batch in stream:
                for item in batch:
                    yield _decoded(item)
        except UAGError:
            raise
        except Exception as error:  # noqa: BLE001 - `spaces` raises many kinds
            # Of `spaces` itself (quota, a worker that died); its lines are meant for visitors.
            line = (str(getattr(error, "message", error)).splitlines() or [""])[0][:300]
            raise RunError(f"The GPU could not be used: {line or type(error).__name__}") from None
        finally:
            Path(path).touch()
            stream.close()


def _decoded(item: Plain) -> Any:
    from uag_core.benchmark.compare import CompareDone, CompareStep

    if item["kind"] == "error":
        kind = getattr(errors, item["type"], RunError)
        raise kind(item["message"], item["hint"])
    if item["kind"] == "step":
        return CompareStep(item["engine"], item["repeat"], events.from_json(item["event"]))
    runs = {
        name: [[events.from_json(event) for event in run] for run in repeats]
        for name, repeats in item["runs"].items()
    }
    return CompareDone(item["document"], runs)


@contextlib.contextmanager
def _stop_file(cancelled: Callable[[], bool]) -> Iterator[str]:
    """A path that exists from the moment `cancelled()` is true; removed at the end."""
    over = threading.Event()
    with tempfile.TemporaryDirectory(prefix="uag-stop-") as folder:
        flag = FileFlag(os.path.join(folder, "stop"))

        def watch() -> None:
            while not over.wait(WATCH_S):
                if cancelled():
                    flag.set()
                    return

        watcher = threading.Thread(target=watch, name="uag-stop", daemon=True)
        watcher.start()
        try:
            yield flag.path
        finally:
            over.set()
            watcher.join()
