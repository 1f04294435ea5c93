"""ZeroGPU with a stand-in that pickles and forks: the same answers, and nothing left behind."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from contextlib import closing

import pytest

from tests.fixtures import models
from tests.fixtures import zerogpu as stub
from uag_core.benchmark.compare import CompareDone
from uag_core.config import AssistantConfig, GenerationSettings
from uag_core.errors import InputError, RunError
from uag_core.models import registry
from uag_core.pair import ModelPair
from uag_core.ui import runner, zerogpu
from uag_core.ui.limits import TimedFlag

DRAFTING = AssistantConfig(num_assistant_tokens=4)
OPTIONS = {"raw": True, "system": None, "exact": True, "seed": None}


@pytest.fixture(scope="module")
def names(tmp_path_factory) -> tuple[str, str]:
    """A target and an assistant on disk, with different tokenizers."""
    folder = tmp_path_factory.mktemp("pair")
    for name, kind in (("target", "byte_level_a"), ("assistant", "byte_level_b")):
        tiny = models.tiny(kind)
        tiny.model.save_pretrained(folder / name)
        tiny.tokenizer.save_pretrained(folder / name)
    return str(folder / "target"), str(folder / "assistant")


@pytest.fixture
def spaces(monkeypatch):
    module = stub.Spaces()
    monkeypatch.setitem(sys.modules, "spaces", module)
    importlib.reload(zerogpu)
    yield module
    monkeypatch.undo()
    importlib.reload(zerogpu)
    module.close()


def run(pair, tokens: int = 24, prompt: str = "The cat", **options):
    settings = GenerationSettings(max_new_tokens=tokens)
    return pair.compare_stream(prompt, settings, DRAFTING, **{**OPTIONS, **options})


def done(stream) -> CompareDone:
    *_, last = stream
    assert isinstance(last, CompareDone)
    return last


def test_without_the_package_nothing_changes(names) -> None:
    assert not zerogpu.enabled()
    assert isinstance(runner.default_pair(*names, dtype="float32", device="cpu"), ModelPair)


def test_the_worker_gives_what_a_run_at_home_gives(spaces, names) -> None:
    pair = runner.default_pair(*names, dtype="float32", device="cpu")
    assert isinstance(pair, zerogpu.ZeroPair)
    away = done(run(pair))
    home = done(run(ModelPair(*names, dtype="float32", device="cpu")))
    assert away.document["assisted"]["token_ids"] == home.document["assisted"]["token_ids"]
    assert away.document["identical"] is True
    assert away.document.keys() == home.document.keys()
    assert away.runs.keys() == home.runs.keys()
    assert [type(e) for e in away.runs["baseline"][0]] == [
        type(e) for e in home.runs["baseline"][0]
    ]
    assert os.getpid() not in spaces.processes


def test_models_are_loaded_before_the_fork_and_once(spaces, names, monkeypatch, tmp_path) -> None:
    registry.evict_all()
    log = tmp_path / "loads"
    load = registry._registry._load

    def noted(*arguments, **options):
        with log.open("a") as stream:
            stream.write(f"{os.getpid()}\n")
        return load(*arguments, **options)

    monkeypatch.setattr(registry._registry, "_load", noted)
    for _ in range(2):
        done(run(zerogpu.ZeroPair(*names, dtype="float32", device="cpu"), tokens=4))
    assert log.read_text().split() == [str(os.getpid())] * 2
    assert len(set(spaces.processes)) == 1  # an idle worker is used again


def test_cancel_reaches_the_worker(spaces, names) -> None:
    pair = zerogpu.ZeroPair(*names, dtype="float32", device="cpu")
    cancel = threading.Event()
    stream = run(pair, tokens=450, cancel=cancel)
    next(stream)
    cancel.set()
    document = done(stream).document
    for part in ("baseline", "assisted"):  # null where it had not begun
        assert (document[part] or {}).get("finish_reason") in ("cancelled", None)
    assert done(run(pair)).document["identical"] is True


def test_a_closed_stream_frees_the_device(spaces, names) -> None:
    pair = zerogpu.ZeroPair(*names, dtype="float32", device="cpu")
    with closing(run(pair, tokens=450)) as stream:
        next(stream)
    assert not zerogpu._device().held
    assert len(spaces.idle) == 1
    assert done(run(pair)).document["identical"] is True


def test_errors_keep_their_kind_and_line(spaces, names) -> None:
    pair = zerogpu.ZeroPair(*names, dtype="float32", device="cpu")
    with pytest.raises(InputError, match="context"):
        done(run(pair, prompt="cat " * 3000))
    assert done(run(pair)).document["identical"] is True


def test_a_worker_that_dies_is_one_line(spaces, names, monkeypatch) -> None:
    pair = zerogpu.ZeroPair(*names, dtype="float32", device="cpu")
    monkeypatch.setitem(zerogpu.TASKS, "compare", lambda job, flag: os._exit(9))
    with pytest.raises(RunError, match="GPU task aborted"):
        done(run(pair))
    monkeypatch.undo()
    assert not zerogpu._device().held


def test_a_run_ends_itself_before_its_time_is_over(spaces, names, monkeypatch) -> None:
    monkeypatch.setattr(zerogpu, "TimedFlag", lambda flag, seconds: TimedFlag(flag, 0.3))
    pair = zerogpu.ZeroPair(*names, dtype="float32", device="cpu")
    document = done(run(pair, tokens=450)).document
    assert any("the time a run has" in notice for notice in document["notices"])


def test_one_run_at_a_time_and_the_waiting_are_told(spaces, names) -> None:
    pair = zerogpu.ZeroPair(*names, dtype="float32", device="cpu")
    ahead: list[int] = []
    with closing(run(pair, tokens=450)) as first:
        next(first)
        cancel = threading.Event()
        second = run(pair, tokens=4, cancel=cancel, waiting=ahead.append)
        thread = threading.Thread(target=lambda: list(second))
        thread.start()
        deadline = time.monotonic() + 20
        while not ahead and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ahead == [1]
        assert len(spaces.calls) == 1
    thread.join(30)
    assert len(spaces.calls) == 2


def job(**changes):
    settings = {"max_new_tokens": 128}
    return {"prompt": "x", "settings": settings, "repeats": 1, "target_bytes": 0} | changes


def test_the_duration_follows_the_inputs_and_is_capped(monkeypatch) -> None:
    short = zerogpu.duration("compare", job(settings={"max_new_tokens": 8}))
    usual = zerogpu.duration("compare", job())
    assert short == 30
    assert short <= usual
    assert zerogpu.duration("compare", job(target_bytes=int(6e10))) > usual
    assert zerogpu.duration("compare", job(references=["a", "b"], repeats=2)) > usual
    assert zerogpu.duration("compare", job(repeats=20)) == zerogpu.MAX_SECONDS
    monkeypatch.setenv(zerogpu.MAX_SECONDS_VARIABLE, "60")
    assert zerogpu.duration("compare", job(repeats=20)) == 60


def test_the_visitors_token_reaches_the_worker(spaces, names, monkeypatch) -> None:
    """It looks the models up again, and a gated one is not opened for nobody."""
    pair = runner.default_pair(*names, dtype="float32", device="cpu", token="hf_marker")

    def asked(*_: object, token: str | None = None, **__: object) -> None:
        raise InputError("The right token came." if token == "hf_marker" else "Another came.")

    monkeypatch.setattr("uag_core.pair.ModelPair", asked)
    with pytest.raises(InputError, match="right token"):
        done(run(pair))
