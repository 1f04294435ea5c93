"""What the Benchmark tab does when somebody presses a button: generators over plain values.

As in the Compare tab, inputs become a frozen request at once, errors are shown in the page, and
what a stopped benchmark has measured is shown. Knows the tab's components and the runner.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from uag_core.bench_text import duration
from uag_core.errors import InputError, UAGError
from uag_core.events import COMPILING
from uag_core.ui import bench_charts, bench_results, token_html
from uag_core.ui.bench_charts import ENGINE_NAMES
from uag_core.ui.bench_request import (
    BenchRequest,
    build_bench_request,
    parse_sweep,
    read_upload,
)
from uag_core.ui.benchmark_tab import ERROR, STATUS, BenchmarkTab
from uag_core.ui.flags import StopFlags, session_of
from uag_core.ui.logins import asking_as
from uag_core.ui.request import parse_number
from uag_core.ui.runner import Failure, Loading, MakePair, batches

Updates = dict[Any, Any]
NUMBERS = ("max_new_tokens", "repeats", "limit")


@dataclass
class BenchState:
    """How far a benchmark has come: a fold over the items of its stream."""

    phase: str = "Waiting for its turn"
    done: int = 0
    total: int = 0
    method: str | None = None
    prompt_id: str | None = None
    remaining_s: float | None = None

    def add(self, item: Any) -> None:
        if isinstance(item, Loading):
            self.phase = item.message
        elif hasattr(item, "remaining_s"):
            self.done, self.total = item.done, item.total
            self.method, self.prompt_id = item.method, item.prompt_id
            self.remaining_s = item.remaining_s
            name = ENGINE_NAMES.get(item.method, item.method.replace("_", " "))
            self.phase = f"Warming up: {name}"
            if item.method == COMPILING:
                self.phase = getattr(item.event, "message", "Compiling")
            elif not item.warmup:
                self.phase = f"Measuring {name} on {item.prompt_id}"

    @property
    def line(self) -> str:
        """`Run 14 of 120, 3 min left`, or nothing before the first run."""
        if not self.total:
            return ""
        left = "" if self.remaining_s is None else f", about {duration(self.remaining_s)} left"
        return f"Run {min(self.done + 1, self.total)} of {self.total}{left}"


class BenchmarkHandlers:
    """The tab's handlers, bound to its components and to a pair factory."""

    def __init__(self, tab: BenchmarkTab, make_pair: MakePair) -> None:
        self.tab = tab
        self.make_pair = make_pair
        self.flags = StopFlags()

    def read(self, data: Updates) -> BenchRequest:
        """The request in the form. Raises `InputError` with the line to show."""
        values = {name: data.get(component) for name, component in self.tab.inputs.items()}
        for name in NUMBERS:
            values[name] = parse_number(str(self.tab.inputs[name].label), values[name])
        values["sweep"] = parse_sweep(values.get("sweep"))
        if not values.get("methods"):
            raise InputError("Choose at least one engine to set against plain decoding.")
        return build_bench_request(values)

    # Events

    def upload(self, path: str | None) -> Updates:
        """The uploaded prompts in the text box, where they can be read and changed."""
        tab = self.tab
        if not path:
            return {tab.error: gr.update()}
        try:
            text = read_upload(path)
        except UAGError as error:
            return {tab.error: token_html.error(str(error), name=ERROR)}
        finally:
            if os.path.exists(path):
                os.remove(path)
        return {tab.prompts: text, tab.error: token_html.error(None, name=ERROR)}

    def begin(self, data: Updates) -> Updates:
        """Checks the form. A good one draws a ticket, whose change starts the run."""
        tab = self.tab
        try:
            self.read(data)
        except UAGError as error:
            return self._idle("Not started", error=str(error))
        return {
            tab.ticket: (data.get(tab.ticket) or 0) + 1,
            tab.run: gr.update(interactive=False),
            tab.stop: gr.update(interactive=True),
            tab.status: token_html.status("Waiting for its turn", state="busy", name=STATUS),
            tab.error: token_html.error(None, name=ERROR),
        }

    def run(
        self, data: Updates, request: gr.Request, login: gr.OAuthToken | None = None
    ) -> Iterator[Updates]:
        """Runs the benchmark: progress every tick, the results at the end.

        `login` is the visitor's own, where the page has a login button.
        """
        session = session_of(request)
        cancel = self.flags.start(session)
        try:
            pairs = asking_as(login, self.make_pair)
            yield from self._run(self.read(data), cancel, pairs)
        except UAGError as error:
            yield self._idle("Not started", error=str(error))
        finally:
            cancel.set()
            self.flags.end(session, cancel)

    def stop(self, data: Updates, request: gr.Request) -> Updates:
        """Asks this session's run to stop; one that still waits is withdrawn instead."""
        tab = self.tab
        if self.flags.stop(session_of(request)):
            return {
                tab.stop: gr.update(interactive=False),
                tab.status: token_html.status("Stopping", state="busy", name=STATUS),
            }
        return {tab.withdrawn: (data.get(tab.withdrawn) or 0) + 1}

    def withdraw(self) -> Updates:
        """The page after a run was taken out of the queue."""
        return self._idle("Stopped before it began")

    def release(self) -> Updates:
        """The buttons as they are when nothing runs, whatever happened to the run."""
        return {
            self.tab.run: gr.update(interactive=True),
            self.tab.stop: gr.update(interactive=False),
        }

    # Pieces of the page

    def _run(
        self, asked: BenchRequest, cancel: threading.Event, make_pair: MakePair
    ) -> Iterator[Updates]:
        tab, started, state = self.tab, time.monotonic(), BenchState()
        yield {tab.results: gr.update(visible=False), **self._live(state, 0.0, cancel)}
        last: Any = None
        stopped = False
        for batch in batches(asked, make_pair, cancel):
            for item in batch:
                state.add(item)
                last = item
            stopped = cancel.is_set()  # the end of the batches sets it, too
            if last is not None and (hasattr(last, "document") or isinstance(last, Failure)):
                break
            yield self._live(state, time.monotonic() - started, cancel)
        if hasattr(last, "document"):
            yield self._done(last.document, stopped=stopped)
        elif isinstance(last, Failure) and last.cancelled:
            yield self._idle(last.message)
        else:
            message = last.message if isinstance(last, Failure) else "The run ended without result."
            yield self._idle("The run failed", error=message)

    def _idle(self, message: str, *, error: str | None = None) -> Updates:
        state = "failed" if error else "idle"
        return {
            **self.release(),
            self.tab.status: token_html.status(message, state=state, name=STATUS),
            self.tab.progress: "",
            self.tab.error: token_html.error(error, name=ERROR),
        }

    def _live(self, state: BenchState, elapsed_s: float, cancel: threading.Event) -> Updates:
        message = "Stopping" if cancel.is_set() else state.phase
        return {
            self.tab.status: token_html.status(
                message, state="busy", elapsed_s=elapsed_s, name=STATUS
            ),
            self.tab.progress: bench_results.progress(state.done, state.total, state.line),
        }

    def _done(self, document: dict[str, Any], *, stopped: bool) -> Updates:
        tab = self.tab
        some = bool(document.get("rows"))
        sweep = bool(document.get("sweep"))
        kinds = some and bool(bench_charts.compared(document))
        return {
            **self._idle("Stopped" if stopped else "Done"),
            tab.results: gr.update(visible=True),
            tab.summary: bench_results.headline(document, stopped=stopped),
            tab.tables: bench_results.tables(document),
            tab.kinds: gr.update(
                value=bench_charts.kinds_chart(document) if kinds else None, visible=kinds
            ),
            tab.sweep: gr.update(
                value=bench_charts.sweep_chart(document) if sweep else None, visible=sweep
            ),
            tab.downloads: bench_results.downloads(document),
        }
