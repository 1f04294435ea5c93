"""The views of a run: one module for each tab of the results.

To add one, write a module here and name it in `VIEWS`. It has

- `LABEL`: what its tab says;
- `create()`: lays its components out inside the tab and returns those that `render` fills, in
  order. Their values at that time are what an unrendered view shows;
- `render(run)`: one value (or `gr.update`) for each of them. A pure function of a run document as
  `uag_core.runs.document.load_run` returns it: its form can be relied on, its texts are hostile,
  and parts may be None or missing (`result.assisted`, an engine's events) where a run was stopped.

A view is rendered when its tab is first opened after a run is shown, never while text streams.
"""

from __future__ import annotations

from typing import Any, Protocol

from gradio.components import Component

from uag_core.ui.views import alignment, charts, replay, summary


class View(Protocol):
    """What a module of this package offers."""

    LABEL: str

    def create(self) -> list[Component]: ...
    def render(self, run: dict[str, Any]) -> list[Any]: ...


VIEWS: tuple[View, ...] = (summary, alignment, charts, replay)
