"""The models that are in memory, shared by the whole process, and the lock that runs take.

Knows that models have a size and an age; does not know how they are loaded (loading.py) nor what
is done with them. Safe to use from several threads.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from uag_core.errors import OutOfMemoryError
from uag_core.models import loading, memory

if TYPE_CHECKING:
    from uag_core.models.handle import LanguageModel

Progress = Callable[[str], None]
Key = tuple[str, str, str, str]  # id, revision or fingerprint, dtype, device

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


@dataclass(slots=True)
class _Entry:
    model: LanguageModel
    size: int
    device: str

    @property
    def bytes(self) -> int:
        """With what the model made of itself later: its 8-bit copy."""
        return self.size + getattr(self.model, "extra_bytes", 0)


class ModelRegistry:
    """Loaded models by (id, revision, dtype, device), the least recently used dropped first.

    `limit(device)` is the number of bytes that the models on a device may take together. A model
    that a run holds (`hold`) is never dropped; a dropped model that somebody still refers to is
    handed out again instead of being loaded a second time.
    """

    def __init__(
        self,
        load: Callable[..., LanguageModel] | None = None,
        limit: Callable[[str], int] = memory.default_limit,
    ) -> None:
        self._load = load or loading.load_resolved
        self._limit = limit
        self._mutex = threading.RLock()
        self._loading = threading.Lock()  # one load at a time
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._alive: WeakValueDictionary[Key, LanguageModel] = WeakValueDictionary()
        self._holds: Counter[int] = Counter()

    def get(
        self,
        ref: str,
        dtype: str = "auto",
        device: str = "auto",
        progress: Progress | None = None,
    ) -> LanguageModel:
        """The model that `ref` names, loaded now or before.

        Raises what `loading.load` raises. When memory runs out, idle models are dropped and the
        load is tried once more.
        """
        where = loading.resolve_device(device)
        kind = loading.resolve_dtype(dtype, where)
        source = loading.resolve(ref, progress=progress)
        key = (source.kind + ":" + source.id, source.fingerprint, kind, where)
        with self._loading:
            found = self._find(key)
            if found is not None:
                return found
            model = self._load_with_retry(source, kind, where, progress)
            with self._mutex:
                self._add(key, model, where)
            return model

    def _load_with_retry(
        self, source: loading.Source, dtype: str, device: str, progress: Progress | None
    ) -> LanguageModel:
        for attempt in range(2):
            problem: OutOfMemoryError | None = None
            try:
                return self._load(source, dtype=dtype, device=device, progress=progress)
            except OutOfMemoryError as error:
                problem = error.with_traceback(None)
            if attempt or not self._evict(lambda entry: entry.device == device):
                raise problem
            memory.release_unused()
        raise AssertionError("unreachable")

    def _find(self, key: Key) -> LanguageModel | None:
        with self._mutex:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key].model
            model = self._alive.get(key)
            if model is not None:
                self._add(key, model, key[3])
            return model

    def _add(self, key: Key, model: LanguageModel, device: str) -> None:
        self._entries[key] = _Entry(model, memory.model_bytes(model.model), device)
        self._alive[key] = model
        limit = self._limit(device)

        def too_much() -> bool:
            sizes = (e.bytes for e in self._entries.values() if e.device == device)
            return sum(sizes) > limit

        self._evict(lambda e: e.device == device and e.model is not model and too_much())

    def _evict(self, unwanted: Callable[[_Entry], bool]) -> int:
        """Drop idle entries that are `unwanted`, oldest first; how many were dropped."""
        dropped = 0
        with self._mutex:
            for key, entry in list(self._entries.items()):
                if not self._holds[id(entry.model)] and unwanted(entry):
                    del self._entries[key]
                    dropped += 1
        return dropped

    @contextmanager
    def hold(self, *models: LanguageModel | None) -> Iterator[None]:
        """While the context is open, none of `models` is dropped."""
        names = [id(model) for model in models if model is not None]
        with self._mutex:
            self._holds.update(names)
        try:
            yield
        finally:
            with self._mutex:
                self._holds.subtract(names)
                for name in names:
                    if self._holds[name] <= 0:
                        del self._holds[name]

    def loaded(self) -> tuple[dict[str, str | int | None], ...]:
        """What is kept, least recently used first: id, revision, dtype, device and bytes."""
        with self._mutex:
            return tuple({**e.model.describe(), "bytes": e.bytes} for e in self._entries.values())

    def evict_all(self) -> None:
        """Drop every model that no run holds and give its memory back."""
        self._evict(lambda _entry: True)
        memory.release_unused()


_registry = ModelRegistry()
get = _registry.get
hold = _registry.hold
loaded = _registry.loaded
evict_all = _registry.evict_all

# One run at a time in a process: two would share the cores or the GPU and spoil both timings.
run_lock = FairLock()


def _after_fork() -> None:
    """A forked child has the models, but no thread that would ever release the parent's locks."""
    global run_lock
    run_lock = FairLock()
    _registry._mutex = threading.RLock()
    _registry._loading = threading.Lock()
    _registry._holds.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
