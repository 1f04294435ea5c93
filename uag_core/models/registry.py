"""The models that are in memory, shared by the whole process, and the lock that runs take.

Knows that models have a size and an age; does not know how they are loaded (loading.py) nor what
is done with them. Safe to use from several threads.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from uag_core.errors import OutOfMemoryError
from uag_core.models import background, loading, memory, placement, planning
from uag_core.models.fairlock import FairLock

if TYPE_CHECKING:
    from uag_core.models.handle import LanguageModel

Progress = Callable[[str], None]
Key = tuple[str, str, str, str]  # id, revision or fingerprint, dtype, device

_WAIT_S = 0.3


def _no_plan(_source: loading.Source, *, device: str, **_: Any) -> planning.Plan:
    """For a registry that loads in its own way: everything fits on the first device."""
    return {"device": placement.candidates(device)[0], "memory": None, "refusal": None}


def _key(source: loading.Source, dtype: str, device: str) -> Key:
    return (f"{source.kind}:{source.id}", source.fingerprint, dtype, device)


@dataclass(slots=True)
class _Entry:
    model: LanguageModel
    size: int
    device: str

    @property
    def bytes(self) -> int:
        """With what the model made of itself later: its 8-bit copy, its compiled forms."""
        more = (getattr(self.model, name, 0) for name in ("extra_bytes", "compiled_bytes"))
        return self.size + sum(more)


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
        plan: Callable[..., planning.Plan] | None = None,
    ) -> None:
        self._load = load or loading.load_resolved
        self._plan = plan or (planning.plan_source if load is None else _no_plan)
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
        *,
        token: str | bool | None = None,
    ) -> LanguageModel:
        """The model that `ref` names, loaded now or before.

        What cannot work (see `planning`) is refused before its weights are downloaded, and idle
        models make room first. `progress` is called several times a second and may raise to
        cancel, also in the middle of a download. `token` is the caller's own for the Hub. Raises
        what `loading.load` raises. When memory runs out all the same, idle models are dropped and
        the load is tried once more.
        """

        def work(say: Progress) -> LanguageModel:
            return self._get(ref, dtype, device, say, token)

        return background.run(work, progress, f"Looking up {ref}.")

    def _get(
        self, ref: str, dtype: str, device: str, say: Progress, token: str | bool | None
    ) -> LanguageModel:
        where, source, keys = self._look_up(ref, dtype, device, say, token)
        while not self._loading.acquire(timeout=_WAIT_S):
            say("Waiting for another model to be loaded.")
        try:
            for key in keys.values():
                found = self._find(key)
                if found is not None:
                    return found
            place = self._prepare(source, dtype, where)
            key = keys[place]
            model = self._load_with_retry(source, key[2], place, say)
            with self._mutex:
                self._add(key, model, place)
            return model
        finally:
            self._loading.release()

    @staticmethod
    def _look_up(
        ref: str, dtype: str, device: str, say: Progress, token: str | bool | None
    ) -> tuple[str, loading.Source, dict[str, Key]]:
        """The device asked for, the model's files, and its key on every device it may go to."""
        where = device if device == "auto" else loading.resolve_device(device)
        more = {} if token is None else {"token": token}
        source = loading.resolve(ref, progress=say, **more)
        keys = {
            name: _key(source, loading.resolve_dtype(dtype, name), name)
            for name in placement.candidates(where)
        }
        return where, source, keys

    def check(
        self,
        ref: str,
        dtype: str = "auto",
        device: str = "auto",
        progress: Progress | None = None,
        *,
        token: str | bool | None = None,
    ) -> None:
        """Raise what `get` would raise before it downloads or loads weights; change nothing."""

        def work(say: Progress) -> None:
            where, source, keys = self._look_up(ref, dtype, device, say, token)
            with self._mutex:
                if any(key in self._entries or key in self._alive for key in keys.values()):
                    return
            spare = self.spare()
            planning.require(self._plan(source, dtype=dtype, device=where, spare=spare))

        background.run(work, progress, f"Looking up {ref}.")

    def _prepare(self, source: loading.Source, dtype: str, device: str) -> str:
        """Refuse what cannot work, and make room for what can; the device to load on."""
        spare = self.spare()
        plan = self._plan(source, dtype=dtype, device=device, spare=spare)
        planning.require(plan)
        place = str(plan["device"])
        if plan["memory"] is not None:
            self._make_room(place, plan["memory"]["total"])
        return place

    def spare(self) -> dict[str, int]:
        """Bytes by device that idle models would give back."""
        found: Counter[str] = Counter()
        with self._mutex:
            for entry in self._entries.values():
                if not self._holds[id(entry.model)]:
                    found[entry.device] += entry.size
        return dict(found)

    def _make_room(self, device: str, needed: int) -> None:
        """Drop idle models, oldest first, until `needed` bytes are free or nothing is left."""

        def lacking() -> bool:
            memory.release_unused()
            return memory.free_memory(device) * (1 - placement.CUSHION) < needed

        if self.spare().get(device) and lacking():
            self._evict(lambda entry: entry.device == device and lacking())
            memory.release_unused()

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
check = _registry.check
spare = _registry.spare
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
