"""Showing a run, wherever it comes from: just made, uploaded, recorded, or behind a link.

`show_run` is the one way in which a run reaches the page. Every problem is one line in the page,
and leaves what is there alone. Knows the components and the library of runs; measures nothing.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from uag_core.errors import InputError, UAGError
from uag_core.runs.document import RunDocument
from uag_core.runs.files import file_name, read_run, save_run
from uag_core.runs.library import Opened, RunLibrary, id_in
from uag_core.ui import compare_tab, methods, runs_layout, token_html
from uag_core.ui.compare_tab import CompareTab
from uag_core.ui.flags import StopFlags, session_of
from uag_core.ui.request import form_values
from uag_core.ui.results_area import pack, unpack

Updates = dict[Any, Any]
_GONE = "There is no run to {}: run a comparison or open one."


class RunPage:
    """Handlers around runs, bound to the tab's components and to a library."""

    def __init__(self, tab: CompareTab, library: RunLibrary | None = None) -> None:
        self.tab = tab
        self.library = library or RunLibrary()
        self.flags = StopFlags()

    @property
    def inputs(self) -> set[Any]:
        """What `show_run` reads."""
        return {self.tab.results.active, self.tab.results.current}

    @property
    def outputs(self) -> list[Any]:
        """What `show_run` fills when it restores the form, and the lines that say how it went."""
        tab = self.tab
        shown = [tab.plain, tab.assisted, *tab.results.outputs, *tab.inputs.values()]
        return [*shown, tab.status, tab.error]

    # Showing

    def show_run(
        self,
        run: RunDocument,
        data: Updates,
        *,
        restore: bool = False,
        expires: float | None = None,
    ) -> Updates:
        """The whole page for one run: both panels, the views and, to `restore`, the form.

        A run that was just made leaves the form alone: its visitor may be typing already.
        """
        tab, result = self.tab, run["result"]
        return {
            tab.plain: _panel(
                compare_tab.PLAIN_TITLE, compare_tab.PLAIN_SUBTITLE, result["baseline"]
            ),
            tab.assisted: _panel(
                methods.name(result["method"]), methods.hint(result["method"]), result["assisted"]
            ),
            **tab.results.show(run, data.get(tab.results.active)),
            **self._head(run, data, expires),
            **(self.fill_form(run["request"]) if restore else {}),
        }

    def _head(self, run: RunDocument, data: Updates, expires: float | None) -> Updates:
        """The line above the views; the share panel closed, the other run forgotten."""
        results = self.tab.results
        actions, versus = results.actions, results.versus
        before = data.get(results.current)
        choices = [(title, run_id) for run_id, title in self.library.shipped().items()]
        if before:
            choices.insert(0, ("The run shown before", runs_layout.PREVIOUS))
        return {
            actions.line: runs_layout.run_line(run, expires=expires),
            actions.panel: gr.update(visible=False),
            actions.link: gr.update(value="", visible=False),
            versus.previous: before,
            versus.other: gr.update(choices=choices, value=None),
            versus.table: "",
        }

    def fill_form(self, request: dict[str, Any]) -> Updates:
        """The form as it was when a run was asked for."""
        known = form_values(request)
        return {
            component: gr.update(value=known[name])
            for name, component in self.tab.inputs.items()
            if name in known
        }

    def _opened(self, opened: Opened, data: Updates, what: str) -> Updates:
        return {
            **self.show_run(opened.run, data, restore=True, expires=opened.expires),
            self.tab.status: token_html.status(what),
            self.tab.error: token_html.error(None),
        }

    def _failed(self, error: UAGError) -> Updates:
        return {self.tab.error: token_html.error(str(error))}

    def _not_while_running(self, request: gr.Request | None) -> None:
        if self.flags.running(session_of(request)):
            raise InputError("A comparison is running: stop it before you open a run.")

    # Opening

    def opener(self, run_id: str) -> Callable[[Updates, gr.Request], Updates]:
        """What a recorded run's button does: opens it, without any model."""

        def open_recorded(data: Updates, request: gr.Request) -> Updates:
            try:
                self._not_while_running(request)
                return self._opened(self.library.open(run_id), data, "Opened a recorded run")
            except UAGError as error:
                return self._failed(error)

        return open_recorded

    def open_id(self, run_id: str, data: Updates) -> Updates:
        """The page with the run of that id. Raises `InputError` where there is none."""
        return self._opened(self.library.open(run_id), data, "Opened a run from its link")

    def open_file(self, data: Updates, request: gr.Request) -> Updates:
        """Opens an uploaded file. Whatever is wrong with it, the page stays as it is."""
        button = self.tab.bar.upload
        emptied = {button: gr.update(value=None)}
        try:
            self._not_while_running(request)
            run = self._uploaded(data.get(button))
            return {**self._opened(Opened(run, None), data, "Opened a run file"), **emptied}
        except UAGError as error:
            return {**self._failed(error), **emptied}

    def _uploaded(self, name: Any) -> RunDocument:
        """The run in an uploaded file, which is deleted. An id in it is nobody's proof."""
        if not isinstance(name, str):
            raise InputError("No file arrived: choose it again.")
        path = Path(name)
        try:
            return {**read_run(path), "id": None}
        finally:
            with contextlib.suppress(OSError):
                path.unlink()

    # Keeping

    def _current(self, data: Updates, verb: str) -> RunDocument:
        packed = data.get(self.tab.results.current)
        if not packed:
            raise InputError(_GONE.format(verb))
        return unpack(packed)

    def download(self, data: Updates) -> Updates:
        """Writes the run into the app's own temporary files, from where the browser takes it."""
        file = self.tab.results.actions.file
        try:
            run = self._current(data, "download")
            folder = Path(file.GRADIO_CACHE) / secrets.token_hex(16)
            folder.mkdir(parents=True)
            path = folder / file_name(run)
            save_run(run, path)
        except UAGError as error:
            return {file: None, **self._failed(error)}
        return {file: str(path), self.tab.error: token_html.error(None)}

    def ask_to_share(self, data: Updates) -> Updates:
        """Says what a link would hold; a run that has an id gets its link at once."""
        actions = self.tab.results.actions
        try:
            run = self._current(data, "share")
        except UAGError as error:
            return self._failed(error)
        known = run["id"]
        note = '<p class="uag-share-note">This run has a link already.</p>'
        return {
            actions.panel: gr.update(visible=True),
            actions.note: note if known else runs_layout.SHARE_NOTE,
            actions.create: gr.update(visible=not known),
            actions.link: gr.update(value=f"?run={known}" if known else "", visible=bool(known)),
        }

    def share(self, data: Updates) -> Updates:
        """Keeps the run under a new id and shows its link, which the browser completes."""
        actions, current = self.tab.results.actions, self.tab.results.current
        try:
            run = self._current(data, "share")
            run_id, expires = self.library.share(run)
        except UAGError as error:
            return self._failed(error)
        until = f"Anyone with this link can read the run until {runs_layout.day(expires)}."
        return {
            current: pack({**run, "id": run_id}),
            actions.note: f'<p class="uag-share-note" role="status">{token_html.text(until)}</p>',
            actions.create: gr.update(visible=False),
            actions.link: gr.update(value=f"?run={run_id}", visible=True),
            self.tab.error: token_html.error(None),
        }

    # Comparing two runs

    def compare_chosen(self, data: Updates) -> Updates:
        """This run beside the one that was chosen."""
        versus = self.tab.results.versus
        chosen = data.get(versus.other)
        return self._compare(data, lambda: self._chosen(chosen, data.get(versus.previous)))

    def compare_file(self, data: Updates) -> Updates:
        """This run beside one from a file."""
        button = self.tab.results.versus.upload
        updates = self._compare(data, lambda: self._uploaded(data.get(button)))
        return {**updates, button: gr.update(value=None)}

    def _chosen(self, chosen: Any, previous: bytes | None) -> RunDocument:
        if not isinstance(chosen, str) or not chosen.strip():
            raise InputError("Choose the run to compare with.")
        if chosen == runs_layout.PREVIOUS:
            if not previous:
                raise InputError("No run was shown before this one.")
            return unpack(previous)
        return self.library.open(id_in(chosen)).run

    def _compare(self, data: Updates, other: Callable[[], RunDocument]) -> Updates:
        table = self.tab.results.versus.table
        try:
            this = self._current(data, "compare")
            return {table: runs_layout.versus_html(this, other())}
        except UAGError as error:
            return {table: token_html.error(str(error)).replace(' id="uag-error-text"', "")}


def _panel(title: str, subtitle: str, run: Any) -> str:
    run = run or {}
    return token_html.panel(
        title=title,
        subtitle=subtitle,
        answer=run.get("text") or "",
        num_new_tokens=run.get("num_new_tokens") or 0,
        tokens_per_second=run.get("tokens_per_second"),
        finish_reason=run.get("finish_reason"),
        placeholder="Nothing was written.",
    )
