"""The request, the runner and the handlers, without a browser."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import gradio as gr
import pytest

from tests.ui.fake_pair import FakePair
from uag_core.errors import InputError
from uag_core.ui.compare_tab import create_compare_tab, load_examples
from uag_core.ui.handlers import CompareHandlers
from uag_core.ui.request import build_request, parse_number, parse_stop_lines
from uag_core.ui.runner import TICK_S, Failure, batches

SESSION = SimpleNamespace(session_hash="s")


@pytest.fixture
def handlers() -> CompareHandlers:
    with gr.Blocks(analytics_enabled=False):
        return CompareHandlers(create_compare_tab(), FakePair)


def summary(handlers: CompareHandlers):
    """The first component of the first view."""
    return handlers.tab.results.slots[0].components[0]


def form(handlers: CompareHandlers, **changes):
    tab = handlers.tab
    values = {name: component.value for name, component in tab.inputs.items()}
    values |= {"prompt": "Hello", "target": "fake/fast", "max_new_tokens": "12", **changes}
    data = {tab.inputs[name]: value for name, value in values.items()}
    return {**data, tab.ticket: 0}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"prompt": "  "}, "prompt is empty"),
        ({"max_new_tokens": "-1"}, "max_new_tokens"),
        ({"temperature": "nan"}, "Temperature must be a finite number"),
        ({"temperature": "warm"}, "Temperature must be a number"),
        ({"top_p": "1.5"}, "top_p"),
        ({"target": ""}, "target is empty"),
        ({"repeats": "0"}, "repeats"),
    ],
)
def test_bad_input_is_one_line_in_the_page(handlers, changes, line) -> None:
    updates = handlers.begin(form(handlers, **changes))
    tab = handlers.tab
    assert line in updates[tab.error]
    assert tab.ticket not in updates
    assert updates[tab.run]["interactive"]
    assert not set(updates) & set(tab.inputs.values())  # nothing typed is touched


def test_good_input_draws_a_ticket(handlers) -> None:
    updates = handlers.begin(form(handlers))
    assert updates[handlers.tab.ticket] == 1
    assert not updates[handlers.tab.run]["interactive"]


def test_run_streams_and_ends_with_results(handlers) -> None:
    updates = list(handlers.run(form(handlers), SESSION))
    tab, last = handlers.tab, updates[-1]
    assert "Identical, 12 tokens" in last[summary(handlers)]
    assert last[tab.results.column]["visible"]
    assert last[tab.run]["interactive"]
    assert not last[tab.stop]["interactive"]
    assert len(handlers.flags) == 0


def test_a_lookup_needs_no_assistant_and_is_called_by_its_name(handlers) -> None:
    made = []

    def make_pair(*models, **options):
        made.append(models)
        return FakePair(*models, **options)

    handlers.make_pair = make_pair
    data = form(handlers, method="lookup", assistant="")
    assert handlers.tab.ticket in handlers.begin(data)
    last = list(handlers.run(data, SESSION))[-1]
    assert made == [("fake/fast", None)]
    assert "Prompt lookup wrote exactly" in last[summary(handlers)]
    assert "Prompt lookup" in last[handlers.tab.assisted]


def test_the_other_methods_need_one(handlers) -> None:
    for method in ("uag", "uag+lookup"):
        data = form(handlers, method=method, assistant="")
        assert "assistant is empty" in handlers.begin(data)[handlers.tab.error]


@pytest.mark.parametrize(
    ("target", "line"),
    [("fake/unknown", "no model named"), ("fake/fails", "failed inside the engine (ValueError)")],
)
def test_failures_are_one_line_and_the_next_run_works(handlers, target, line) -> None:
    last = list(handlers.run(form(handlers, target=target), SESSION))[-1]
    tab = handlers.tab
    assert line in last[tab.error]
    assert "secret" not in last[tab.error]
    assert last[tab.run]["interactive"]
    assert summary(handlers) in list(handlers.run(form(handlers), SESSION))[-1]


def test_stop_ends_a_run_with_what_it_has(handlers) -> None:
    stream = handlers.run(form(handlers, target="fake/long", max_new_tokens="500"), SESSION)
    for _ in range(8):
        next(stream)
    handlers.stop({handlers.tab.withdrawn: 0}, SESSION)
    started = time.monotonic()
    last = list(stream)[-1]
    assert time.monotonic() - started < 1
    assert "Stopped" in last[summary(handlers)]
    assert FakePair.active == 0


def test_stop_of_a_waiting_run_withdraws_it(handlers) -> None:
    updates = handlers.stop({handlers.tab.withdrawn: 3}, SESSION)
    assert updates == {handlers.tab.withdrawn: 4}


def test_a_closed_stream_frees_the_engine(handlers) -> None:
    stream = handlers.run(form(handlers, target="fake/long", max_new_tokens="500"), SESSION)
    for _ in range(4):
        next(stream)
    started = time.monotonic()
    stream.close()
    assert time.monotonic() - started < 0.2
    deadline = time.monotonic() + 2
    while FakePair.active and time.monotonic() < deadline:
        time.sleep(0.01)
    assert FakePair.active == 0


def test_batches_tick_while_nothing_happens() -> None:
    asked = build_request({"prompt": "x", "target": "fake/stuck", "assistant": "a"})
    stream = batches(asked, FakePair, threading.Event())
    started = time.monotonic()
    for _ in range(5):
        next(stream)
    assert time.monotonic() - started < 10 * TICK_S  # it comes by itself, five times
    stream.close()


def test_a_failure_in_the_worker_arrives_within_a_second() -> None:
    def broken(*args, **options):
        raise RuntimeError("boom")

    asked = build_request({"prompt": "x", "target": "t", "assistant": "a"})
    started = time.monotonic()
    items = [item for batch in batches(asked, broken, threading.Event()) for item in batch]
    assert time.monotonic() - started < 1
    assert isinstance(items[-1], Failure)
    assert "boom" not in items[-1].message


def test_numbers_and_stop_lines() -> None:
    assert parse_number("n", " ") is None
    assert parse_number("n", "12") == 12
    assert parse_number("n", "0,5") == 0.5
    with pytest.raises(InputError, match="finite"):
        parse_number("n", "inf")
    assert parse_stop_lines("\\n\\n\n  end\n\n") == ("\n\n", "  end")


def test_examples_cover_every_kind() -> None:
    kinds = [example.kind for example in load_examples()]
    assert kinds == ["Code", "Summary", "Translation", "Question", "Story", "List"]
