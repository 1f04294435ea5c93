"""Several visitors at once: turns, limits, and what a visitor who behaves badly does to others."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import pytest
from gradio_client import Client

from tests.ui.fake_pair import FakePair, document
from uag_core.errors import InputError
from uag_core.ui import limits, runner
from uag_core.ui.bench_request import build_bench_request
from uag_core.ui.fair_queue import MAX_WAITING_EACH, fair_order
from uag_core.ui.limits import Limits, TimedFlag
from uag_core.ui.request import build_request


def event(name: str, session: str, time: float) -> SimpleNamespace:
    return SimpleNamespace(_id=name, session_hash=session, enqueue_time=time)


def order(events, busy=()) -> str:
    return "".join(e._id for e in fair_order(events, Counter(busy)))


def test_visitors_take_turns() -> None:
    line = [event("a", "x", 1), event("b", "x", 2), event("c", "x", 3), event("d", "y", 4)]
    assert order(line) == "adbc"
    assert order(line, busy=["x"]) == "dabc"
    assert order(line[::-1], busy=["y"]) == "abdc"


def test_one_run_each_is_first_come_first_served() -> None:
    line = [event(str(at), f"visitor {at}", at) for at in range(6)]
    assert order(line) == "012345"


def test_nobody_can_fill_the_queue_alone(url) -> None:
    client = Client(url, verbose=False)
    jobs = [
        client.submit("x", target="fake/long", max_new_tokens=900, api_name="/compare")
        for _ in range(MAX_WAITING_EACH + 3)
    ]
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not any(job.done() for job in jobs):
        time.sleep(0.05)
    assert any(job.done() and job.exception() is not None for job in jobs)
    other = Client(url, verbose=False)
    theirs = other.submit("y", target="fake/fast", max_new_tokens=4, api_name="/compare")
    while time.monotonic() < deadline and theirs.status().rank is None and not theirs.done():
        time.sleep(0.05)
    assert (theirs.status().rank or 0) <= 1  # not behind all of the first visitor's
    for job in jobs:
        job.cancel()
    assert theirs.result(timeout=30)["status"] == "done"


def test_a_slow_reader_harms_nobody(url) -> None:
    address = urlsplit(url)
    index = next(
        item["id"]
        for item in httpx.get(f"{url}config").json()["dependencies"]
        if item["api_name"] == "compare"
    )
    data = ["x", "fake/fast", "fake/draft", "uag", False, None, 400, *[None] * 8]
    body = {"data": [*data, "auto", "auto", True, None, None, None], "fn_index": index}
    body["session_hash"] = "slow"
    assert httpx.post(f"{url}gradio_api/queue/join", json=body).status_code == 200
    with socket.create_connection((address.hostname, address.port)) as reader:
        path = f"{address.path}gradio_api/queue/data?session_hash=slow"
        reader.sendall(f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        # Never reads a byte while somebody else is served.
        answer = Client(url, verbose=False).predict(
            "y", target="fake/fast", max_new_tokens=8, api_name="/compare"
        )
        assert answer["result"]["assisted"]["num_new_tokens"] == 8
    deadline = time.monotonic() + 20
    while FakePair.active and time.monotonic() < deadline:
        time.sleep(0.05)
    assert FakePair.active == 0


def test_the_limits_of_a_shared_machine() -> None:
    assert Limits.from_environment({}) == Limits()
    shared = Limits.from_environment({"SPACE_ID": "a/b"})
    assert shared == Limits.from_environment({"UAG_HOSTED": "1"})
    assert None not in (shared.run_seconds, shared.max_new_tokens, shared.repeats)
    assert Limits.from_environment({"UAG_HOSTED": "0", "SPACE_ID": "a/b"}) == Limits()
    assert Limits.from_environment({"UAG_MAX_NEW_TOKENS": "7"}).max_new_tokens == 7
    with pytest.raises(InputError, match="UAG_MAX_REPEATS must be a whole number"):
        Limits.from_environment({"UAG_MAX_REPEATS": "many"})


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"prompt": "x" * 40_001}, "number of characters is 40,001"),
        ({"prompt": "x", "max_new_tokens": 513}, "max_new_tokens is 513"),
        ({"prompt": "x", "repeats": 6}, "repeats is 6"),
    ],
)
def test_a_hosted_app_refuses_what_is_too_much(monkeypatch, values, line) -> None:
    asked = {"target": "fake/fast", "assistant": "fake/draft", **values}
    monkeypatch.delenv("UAG_HOSTED", raising=False)
    build_request(asked)
    monkeypatch.setenv("UAG_HOSTED", "1")
    with pytest.raises(InputError, match=line):
        build_request(asked)
    with pytest.raises(InputError, match=line):
        build_bench_request({**asked, "prompts": [asked["prompt"]]})


def test_the_time_of_a_run_does_not_count_while_it_waits() -> None:
    flag = TimedFlag(threading.Event(), 0.2)
    time.sleep(0.15)
    flag.restart()
    time.sleep(0.1)
    assert not flag.is_set()
    time.sleep(0.15)
    assert flag.is_set()
    assert flag.expired


class Endless:
    """Measures until it is told to stop, then hands in what it has."""

    def __init__(self, *arguments, **options) -> None: ...

    def compare_stream(self, *arguments, cancel, **options):
        while not cancel.is_set():
            time.sleep(0.01)
            yield SimpleNamespace(event=None)
        yield SimpleNamespace(document=document(finish_reason="cancelled"))


def test_a_run_that_takes_too_long_is_ended_and_says_so(monkeypatch) -> None:
    monkeypatch.setenv(limits.SECONDS_VARIABLE, "1")
    asked = build_request({"prompt": "x", "target": "fake/x", "assistant": "fake/y"})
    *_, last = runner.batches(asked, Endless, threading.Event())
    (notice,) = last[-1].document["notices"]
    assert notice.startswith("Ended after 1 s")
