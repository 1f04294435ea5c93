"""What the page does when somebody presses a button: generators over plain values.

Inputs arrive as one dictionary keyed by component and become a frozen `CompareRequest` at once.
Errors never leave these functions as exceptions: they are shown in the page, and Run is enabled
again. Knows the tab's components and the runner; computes nothing about models.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import gradio as gr

from uag_core.errors import UAGError
from uag_core.runs.document import build_run
from uag_core.ui import compare_tab, methods, token_html
from uag_core.ui.compare_tab import CompareTab
from uag_core.ui.flags import session_of
from uag_core.ui.logins import asking_as
from uag_core.ui.progress import Lane, Progress
from uag_core.ui.request import (
    NUMBER_NAMES,
    CompareRequest,
    build_request,
    parse_number,
    parse_stop_lines,
)
from uag_core.ui.run_page import RunPage
from uag_core.ui.runner import Failure, MakePair, batches
from uag_core.ui.verdict import cancelled

Updates = dict[Any, Any]


class CompareHandlers:
    """The tab's handlers, bound to its components, a pair factory and what shows runs."""

    def __init__(self, tab: CompareTab, make_pair: MakePair, page: RunPage | None = None) -> None:
        self.tab = tab
        self.make_pair = make_pair
        self.page = page or RunPage(tab)
        self.flags = self.page.flags

    # What the person asked for

    def read(self, data: Updates) -> CompareRequest:
        """The request in the form. Raises `InputError` with the line to show."""
        values = {name: data.get(component) for name, component in self.tab.inputs.items()}
        for name in NUMBER_NAMES:
            values[name] = parse_number(str(self.tab.inputs[name].label), values[name])
        values["stop"] = list(parse_stop_lines(values.get("stop")))
        return build_request(values)

    # Events

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
            tab.status: token_html.status("Waiting for its turn", state="busy"),
            tab.error: token_html.error(None),
        }

    def run(
        self, data: Updates, request: gr.Request, login: gr.OAuthToken | None = None
    ) -> Iterator[Updates]:
        """Runs the comparison: a batch of updates every tick, the results at the end.

        `login` is the visitor's own, where the page has a login button.
        """
        session = session_of(request)
        cancel = self.flags.start(session)
        try:
            asked = self.read(data)
            yield from self._run(asked, cancel, data, asking_as(login, self.make_pair))
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
                tab.status: token_html.status("Stopping", state="busy"),
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
        self, asked: CompareRequest, cancel: threading.Event, data: Updates, make_pair: MakePair
    ) -> Iterator[Updates]:
        tab, started = self.tab, time.monotonic()
        progress = Progress(method=asked.drafting.method, repeats=asked.repeats)
        yield {tab.results.column: gr.update(visible=False), **self._live(progress, 0.0, cancel)}
        last: Any = None
        for batch in batches(asked, make_pair, cancel):
            for item in batch:
                progress.add(item)
                last = item
            if last is not None and (hasattr(last, "document") or isinstance(last, Failure)):
                break
            yield self._live(progress, time.monotonic() - started, cancel)
        if hasattr(last, "document"):
            run = build_run(last, asked.to_dict())
            stopped = cancelled(run["result"])
            yield {**self.page.show_run(run, data), **self._idle("Stopped" if stopped else "Done")}
        elif isinstance(last, Failure) and last.cancelled:
            yield {**self._lanes(progress, over=True), **self._idle(last.message)}
        else:
            message = last.message if isinstance(last, Failure) else "The run ended without result."
            yield {
                **self._lanes(progress, over=True),
                **self._idle("The run failed", error=message),
            }

    def _idle(self, message: str, *, error: str | None = None) -> Updates:
        return {
            **self.release(),
            self.tab.status: token_html.status(message, state="failed" if error else "idle"),
            self.tab.error: token_html.error(error),
        }

    def _live(self, progress: Progress, elapsed_s: float, cancel: threading.Event) -> Updates:
        message = "Stopping" if cancel.is_set() else progress.phase
        return {
            self.tab.status: token_html.status(message, state="busy", elapsed_s=elapsed_s),
            **self._lanes(progress),
        }

    def _lanes(self, progress: Progress, *, over: bool = False) -> Updates:
        growing = progress.lane
        return {
            self.tab.plain: _panel(
                compare_tab.PLAIN_TITLE,
                compare_tab.PLAIN_SUBTITLE,
                progress.plain,
                growing is progress.plain and not over,
                over,
            ),
            self.tab.assisted: _panel(
                methods.name(progress.method),
                methods.hint(progress.method),
                progress.assisted,
                growing is progress.assisted and not over,
                over,
            ),
        }


def _panel(title: str, subtitle: str, lane: Lane, active: bool, over: bool) -> str:
    return token_html.panel(
        title=title,
        subtitle=subtitle,
        answer=lane.text,
        num_new_tokens=lane.num_new_tokens,
        tokens_per_second=lane.tokens_per_second,
        finish_reason=lane.finish_reason,
        active=active,
        placeholder="Nothing was written." if over else "" if active else "Not started yet.",
    )
