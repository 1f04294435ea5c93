"""benchmarks/load.py for a few seconds: tiny models behind the page, clients of every kind."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.load import load
from tests.fixtures.models import tiny
from uag_core.models import registry
from uag_core.pair import ModelPair
from uag_core.ui.build import build_demo
from uag_core.ui.theme import launch_options


def tiny_pair(target: str, assistant: str | None, **_: Any) -> ModelPair:
    return ModelPair.from_models(tiny("byte_level_a"), tiny("byte_level_b"))


def test_everybody_who_stays_gets_the_right_answer() -> None:
    demo = build_demo(tiny_pair)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    try:
        settings = {"max_new_tokens": 12, "raw": True}
        figures = load(url, clients=8, seconds=8, settings=settings)
        assert figures["wrong"] == []
        assert figures["ended"]["right"] >= 4
        assert figures["ended"]["cancelled"] >= 1
        assert figures["ended"]["vanished"] >= 1
        assert figures["still_running_clients"] == 0
        assert figures["alone_afterwards"]["right"]
        deadline = time.monotonic() + 20
        while registry.run_lock.held and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not registry.run_lock.held
        assert registry.run_lock.queue_length == 0
    finally:
        demo.close(verbose=False)
