from __future__ import annotations

import gc
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from uag_core.errors import InputError, OutOfMemoryError
from uag_core.models import loading, memory, registry
from uag_core.models.registry import FairLock, ModelRegistry
from uag_core.models.sources import Source


def wait_until(condition, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


class TestFairLock:
    def test_it_is_handed_on_in_order(self) -> None:
        lock, order = FairLock(), []
        assert lock.acquire()

        def run(number: int) -> None:
            assert lock.acquire()
            order.append(number)
            lock.release()

        threads = []
        for number in range(6):
            threads.append(threading.Thread(target=run, args=(number,)))
            threads[-1].start()
            wait_until(lambda n=number: lock.queue_length == n + 1)
        lock.release()
        for thread in threads:
            thread.join(5)
        assert order == list(range(6))
        assert not lock.held
        assert lock.queue_length == 0

    def test_a_cancelled_waiter_leaves_the_queue(self) -> None:
        lock = FairLock()
        lock.acquire()
        stop = threading.Event()
        answers: list[bool] = []
        thread = threading.Thread(target=lambda: answers.append(lock.acquire(stop.is_set)))
        thread.start()
        wait_until(lambda: lock.queue_length == 1)
        stop.set()
        thread.join(5)
        assert answers == [False]
        lock.release()
        assert lock.acquire(lambda: False)
        assert not FairLock().acquire(lambda: True)

    def test_waiters_are_told_how_many_are_ahead(self) -> None:
        lock = FairLock()
        lock.acquire()
        told: list[list[int]] = [[], []]
        threads = []
        for index in range(2):
            threads.append(
                threading.Thread(
                    target=lambda i=index: (lock.acquire(waiting=told[i].append), lock.release())
                )
            )
            threads[-1].start()
            wait_until(lambda i=index: bool(told[i]))
        assert told == [[1], [2]]
        lock.release()
        for thread in threads:
            thread.join(5)
        assert told[0] == [1]
        assert told[1] in ([2], [2, 1])

    def test_another_thread_may_release(self) -> None:
        lock = FairLock()
        lock.acquire()
        thread = threading.Thread(target=lock.release)
        thread.start()
        thread.join(5)
        assert lock.acquire()
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()

    def test_an_exception_in_a_callback_leaves_the_queue(self) -> None:
        lock = FairLock()
        lock.acquire()

        def fail(*_: int) -> bool:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            lock.acquire(fail)
        with pytest.raises(KeyboardInterrupt):
            lock.acquire(waiting=fail)
        assert lock.queue_length == 0
        lock.release()
        assert lock.acquire()


class FakeModel:
    def __init__(self, name: str, floats: int) -> None:
        self.name = name
        self.model = torch.nn.Linear(floats, 1, bias=False)

    def describe(self) -> dict[str, str | None]:
        return {"id": self.name, "revision": None, "dtype": "float32", "device": "cpu"}


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names resolve to themselves; the list records what was loaded."""
    monkeypatch.setattr(
        loading,
        "resolve",
        lambda ref, progress=None: Source(ref, ref, None, SimpleNamespace(), "1", "folder"),
    )
    return []


def make_registry(loads: list[str], limit: int) -> ModelRegistry:
    def load(source: Source, **_: Any) -> Any:
        loads.append(source.id)
        return FakeModel(source.id, 100)  # 400 bytes

    return ModelRegistry(load, lambda device: limit)


def names(models: ModelRegistry) -> list[str]:
    return [str(entry["id"]) for entry in models.loaded()]


def test_a_model_is_loaded_once(loads: list[str]) -> None:
    models = make_registry(loads, 10_000)
    threads = [threading.Thread(target=models.get, args=("a",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert loads == ["a"]
    assert models.get("a") is models.get("a", "auto", "cpu")
    assert models.get("a", "float32") is not models.get("a", "bfloat16")


def test_the_least_recently_used_goes_first(loads: list[str]) -> None:
    models = make_registry(loads, 1000)
    for ref in ("a", "b", "a", "c"):
        models.get(ref)
    assert names(models) == ["a", "c"]
    assert models.loaded()[0]["bytes"] == 400


def test_a_held_model_stays(loads: list[str]) -> None:
    models = make_registry(loads, 500)
    held = models.get("a")
    with models.hold(held, None):
        with models.hold(held):
            models.get("b")
        models.get("c")
        models.evict_all()
        assert names(models) == ["a"]
    models.evict_all()
    assert names(models) == []


def test_a_model_larger_than_the_limit_can_still_be_used(loads: list[str]) -> None:
    models = make_registry(loads, 10)
    assert models.get("a").name == "a"  # type: ignore[attr-defined]
    assert names(models) == ["a"]


def test_a_dropped_model_that_lives_is_not_loaded_again(loads: list[str]) -> None:
    models = make_registry(loads, 500)
    kept = models.get("a")
    models.get("b")
    assert names(models) == ["b"]
    assert models.get("a") is kept
    del kept
    models.evict_all()
    gc.collect()
    models.get("a")
    assert loads == ["a", "b", "a"]


def test_out_of_memory_drops_idle_models_and_tries_again(loads: list[str]) -> None:
    tries: list[str] = []

    def load(source: Source, **_: Any) -> Any:
        tries.append(source.id)
        if source.id == "big" and tries.count("big") == 1:
            raise OutOfMemoryError("big did not fit into memory.")
        if source.id == "huge":
            raise OutOfMemoryError("huge did not fit into memory.")
        return FakeModel(source.id, 1)

    models = ModelRegistry(load, lambda device: 10_000)
    models.get("a")
    assert models.get("big").name == "big"  # type: ignore[attr-defined]
    assert names(models) == ["big"]
    with pytest.raises(OutOfMemoryError):
        models.get("huge")
    assert models.get("a") is not None
    assert tries == ["a", "big", "big", "huge", "huge", "a"]


def test_a_failed_load_leaves_the_registry_usable(loads: list[str]) -> None:
    def load(source: Source, **_: Any) -> Any:
        if source.id == "bad":
            raise InputError("bad")
        return FakeModel(source.id, 1)

    models = ModelRegistry(load, lambda device: 10_000)
    good = models.get("good")
    with pytest.raises(InputError):
        models.get("bad")
    assert models.get("good") is good


def test_tied_weights_count_once() -> None:
    layer = torch.nn.Linear(8, 8, bias=False)
    tied = torch.nn.Linear(8, 8, bias=False)
    tied.weight = layer.weight
    assert memory.model_bytes(torch.nn.Sequential(layer, tied)) == 8 * 8 * 4


def test_the_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(memory.LIMIT_VARIABLE, raising=False)
    assert 0 < memory.default_limit("cpu") < memory.total_memory("cpu")
    monkeypatch.setenv(memory.LIMIT_VARIABLE, "1.5")
    assert memory.default_limit("cpu") == 1_500_000_000
    for text in ("nan", "-1", "much", "inf"):
        monkeypatch.setenv(memory.LIMIT_VARIABLE, text)
        with pytest.raises(InputError):
            memory.default_limit("cpu")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("shapes do not match"), False),
        (ValueError("not enough memory"), False),
    ],
)
def test_out_of_memory_is_recognised(error: Exception, expected: bool) -> None:
    assert memory.is_out_of_memory(error) is expected


def test_the_process_has_one_lock() -> None:
    assert isinstance(registry.run_lock, FairLock)
