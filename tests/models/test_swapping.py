"""Pairs that come and go: memory is back where it was, and nothing that runs is disturbed."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from uag_core.config import GenerationSettings
from uag_core.errors import OutOfMemoryError, UAGError
from uag_core.models import loading, memory, planning, registry
from uag_core.pair import ModelPair

SETTINGS = GenerationSettings(max_new_tokens=4)


@pytest.fixture(autouse=True)
def _clean():
    registry.evict_all()
    yield
    registry.evict_all()


def make_pair(target, assistant) -> ModelPair:
    return ModelPair(str(target), str(assistant), dtype="float32", device="cpu")


def living_models() -> int:
    """Models that something still refers to, kept by the registry or not."""
    gc.collect()
    return len(registry._registry._alive)


def test_swapping_pairs_twenty_times(make_folder, monkeypatch) -> None:
    folders = [make_folder(f"m{number}") for number in range(4)]
    size = memory.model_bytes(loading.load(str(folders[0]), dtype="float32").model)
    monkeypatch.setattr(registry._registry, "_limit", lambda device: size * 2)
    assert living_models() == 0
    for number in range(20):
        pair = make_pair(folders[number % 2], folders[2 + number % 2])
        assert len(pair.generate("the cat", SETTINGS, raw=True).token_ids) == 4
        assert len(registry.loaded()) <= 2
        del pair
        assert living_models() <= 2
    registry.evict_all()
    assert living_models() == 0
    assert not registry.run_lock.held


def test_loading_a_second_pair_while_one_runs(make_folder, monkeypatch) -> None:
    monkeypatch.setattr(registry._registry, "_limit", lambda device: 1)  # room for nothing idle
    first = make_pair(make_folder("a"), make_folder("b"))
    expected = first.generate("the cat", SETTINGS, raw=True).token_ids
    events = first.stream("the cat", SETTINGS, raw=True)
    seen = [next(events)]
    second = make_pair(make_folder("c"), make_folder("d"))
    held = {entry["id"] for entry in registry.loaded()}
    assert {first.target.id, first.assistant.id} <= held
    seen += list(events)
    assert seen[-1].token_ids == expected
    assert second.generate("the cat", SETTINGS, raw=True).token_ids


def test_a_wrong_assistant_breaks_nothing(make_folder, hub_server) -> None:
    target = make_folder("target")
    pair = make_pair(target, make_folder("good"))
    for wrong in ("o/missing", "/no/such/folder", str(make_folder("t5", model_type="t5"))):
        with pytest.raises(UAGError):
            make_pair(target, wrong)
        assert len(pair.generate("the cat", SETTINGS, raw=True).token_ids) == 4
    assert make_pair(target, make_folder("other")).target is pair.target


def test_a_wrong_assistant_is_found_before_the_target_is_loaded(make_folder) -> None:
    with pytest.raises(UAGError):
        make_pair(make_folder(), "/no/such/folder")
    assert registry.loaded() == ()


def test_out_of_memory_leaves_the_app_working(make_folder, monkeypatch) -> None:
    from transformers import AutoModelForCausalLM

    good, big = make_folder("good"), make_folder("big")
    pair = make_pair(good, make_folder("helper"))
    before = living_models()
    lost: list[weakref.ref[torch.Tensor]] = []
    real = AutoModelForCausalLM.from_pretrained

    def fail(folder, *args, **options):
        if str(folder) == str(big):
            tensor = torch.zeros(1000)
            lost.append(weakref.ref(tensor))
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3 GiB")
        return real(folder, *args, **options)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", fail)
    with registry.hold(pair.target, pair.assistant), pytest.raises(OutOfMemoryError):
        make_pair(big, good)
    assert living_models() == before
    assert all(ref() is None for ref in lost)
    assert len(pair.generate("the cat", SETTINGS, raw=True).token_ids) == 4


def test_a_run_out_of_memory_leaves_the_pair_working(make_folder, monkeypatch) -> None:
    pair = make_pair(make_folder("a"), make_folder("b"))
    with monkeypatch.context() as patch:

        def fail(*_: object, **__: object) -> None:
            raise torch.OutOfMemoryError("CUDA out of memory")

        patch.setattr(pair.target.model, "forward", fail)
        with pytest.raises(OutOfMemoryError):
            pair.generate("the cat", SETTINGS, raw=True)
    assert not registry.run_lock.held
    assert len(pair.generate("the cat", SETTINGS, raw=True).token_ids) == 4


def test_idle_models_make_room_before_a_load(make_folder, monkeypatch) -> None:
    models = registry._registry
    old = registry.get(str(make_folder("old")), "float32", "cpu")
    need = planning.plan(str(make_folder("new")), dtype="float32", device="cpu")["memory"]["total"]
    free = {"cpu": need // 2}
    monkeypatch.setattr(models, "spare", lambda: {"cpu": need})
    monkeypatch.setattr(memory, "free_memory", lambda device: free[device])
    with registry.hold(old):
        registry.get(str(make_folder("new2")), "float32", "cpu")
        assert len(registry.loaded()) == 2  # the held one could not go
    registry.get(str(make_folder("new3")), "float32", "cpu")
    assert old.id not in {entry["id"] for entry in registry.loaded()}
