"""The results under the panels: one tab for each view, filled from a run document.

Keeps the shown run for its visitor as compressed JSON, and which views have been rendered for it:
a view costs nothing until its tab is opened. Knows the views only by their three names.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr
from gradio.components import Component

from uag_core.runs.document import RunDocument, dump_run
from uag_core.serialization import loads
from uag_core.ui.runs_layout import RunActions, Versus, create_actions, create_versus
from uag_core.ui.views import VIEWS, View

Updates = dict[Any, Any]
KEPT_S = 4 * 3600  # a visitor's run is dropped from memory after that


@dataclass(frozen=True)
class Slot:
    """A view in its tab. `blank` are its components' values before anything is shown."""

    view: View
    tab: gr.Tab
    components: list[Component]
    blank: list[Any]


@dataclass(frozen=True)
class ResultsArea:
    """The components of the results.

    `current` holds the run that is shown, packed; `active` the index of the tab in front;
    `drawn` the indices of the views that show `current`. `actions` and `versus` are filled by
    `RunPage`.
    """

    column: gr.Column
    actions: RunActions
    versus: Versus
    tabs: gr.Tabs
    slots: list[Slot]
    current: gr.State
    active: gr.State
    drawn: gr.State

    @property
    def outputs(self) -> list[Any]:
        """Everything that showing a run fills."""
        views = [component for slot in self.slots for component in slot.components]
        actions, versus = self.actions, self.versus
        around = [actions.line, actions.panel, actions.link]
        around += [versus.previous, versus.other, versus.table]
        return [self.column, self.tabs, self.current, self.drawn, *around, *views]

    def show(self, run: RunDocument, active: Any) -> Updates:
        """Fills the view in front; the others wait, empty, until they are opened."""
        front = active if isinstance(active, int) and 0 <= active < len(self.slots) else 0
        updates: Updates = {
            self.column: gr.update(visible=True),
            self.tabs: gr.update(selected=front),
            self.current: pack(run),
            self.drawn: [front],
        }
        for index, slot in enumerate(self.slots):
            values = slot.view.render(run) if index == front else slot.blank
            updates.update(zip(slot.components, values, strict=True))
        return updates

    def open(self, index: int, data: Updates) -> Updates:
        """A tab came to the front: renders its view where that has not been done yet."""
        drawn, packed = data.get(self.drawn) or [], data.get(self.current)
        updates: Updates = {self.active: index}
        if packed and index not in drawn:
            slot = self.slots[index]
            values = slot.view.render(unpack(packed))
            updates.update(zip(slot.components, values, strict=True))
            updates[self.drawn] = [*drawn, index]
        return updates

    def wire(self) -> None:
        """Every tab renders its own view when it is selected."""
        for index, slot in enumerate(self.slots):
            slot.tab.select(
                partial(self.open, index),
                inputs={self.current, self.drawn},
                outputs=[*slot.components, self.active, self.drawn],
                queue=False,
                show_progress="hidden",
                api_visibility="private",
            )


def pack(run: RunDocument) -> bytes:
    return zlib.compress(dump_run(run).encode("utf-8"), 1)


def unpack(packed: bytes) -> RunDocument:
    """A run that was packed here; it was checked before."""
    run = loads(zlib.decompress(packed))
    assert isinstance(run, dict)
    return run


def create_results(shipped: Mapping[str, str]) -> ResultsArea:
    """Lays out the actions, the tabs over all views and the comparison of two runs.

    Hidden until there is something to show. `shipped`: titles of the recorded runs by id.
    """
    slots = []
    with gr.Column(visible=False, elem_id="results") as column:
        actions = create_actions()
        with gr.Tabs(elem_id="views", selected=0) as tabs:
            for index, view in enumerate(VIEWS):
                with gr.Tab(view.LABEL, id=index) as tab:
                    components = view.create()
                blank = [getattr(component, "value", None) for component in components]
                slots.append(Slot(view, tab, components, blank))
        versus = create_versus(shipped)
    return ResultsArea(
        column=column,
        actions=actions,
        versus=versus,
        tabs=tabs,
        slots=slots,
        current=gr.State(None, time_to_live=KEPT_S),
        active=gr.State(0),
        drawn=gr.State([]),
    )
