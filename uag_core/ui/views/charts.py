"""The Charts view: every chart of a run with its numbers as a table and both as downloads.

The drawing is gradio's.
Knows how to lay out and fill its components, nothing of events.
"""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.components import Component

from uag_core.ui.chart_data import CHART_TOOLS, data_html
from uag_core.ui.charts import CHARTS, charts
from uag_core.ui.scripts import script

LABEL = "Charts"
NOTHING = '<p class="uag-note">There is nothing to draw: the run ended before its first token.</p>'
NO_DRAFT = (
    '<p class="uag-note">No candidate was verified in this run, so there are no charts of drafts '
    "and acceptance.</p>"
)


def create() -> list[Component]:
    components: list[Component] = [gr.HTML(elem_id="chart-note", apply_default_css=False)]
    with gr.Row(elem_id="chart-grid"):
        for index in range(len(CHARTS)):
            with gr.Column(elem_classes="uag-chart", min_width=420):
                plot = gr.Plot(show_label=False, container=False, elem_classes="uag-plot")
                below = gr.HTML(
                    js_on_load=CHART_TOOLS,
                    head=script("charts") if index == 0 else None,
                    elem_classes="uag-chart-data",
                    apply_default_css=False,
                )
            components += [plot, below]
    return components


def render(run: dict[str, Any]) -> list[Any]:
    shown = charts(run)
    values: list[Any] = [NOTHING if not any(shown) else NO_DRAFT if not shown[-1] else ""]
    for chart in shown:
        if chart is None:
            values += [gr.update(value=None, visible=False), ""]
        else:
            values += [gr.update(value=chart.figure, visible=True), data_html(chart)]
    return values
