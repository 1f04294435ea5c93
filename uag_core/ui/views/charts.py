"""The Charts view: every chart of a run with its numbers as a table and both as downloads.

The drawing is gradio's; saving a picture asks plotly in the browser, the table travels as a link.
Knows how to lay out and fill its components, nothing of events.
"""

from __future__ import annotations

import base64
from typing import Any

import gradio as gr
from gradio.components import Component

from uag_core.ui import token_html
from uag_core.ui.charts import CHARTS, Chart, charts
from uag_core.ui.scripts import script

LABEL = "Charts"
MOST_ROWS = 200  # of a table in the page; the download holds all
_SAVE = "element.addEventListener('click', (event) => uagSaveChart(event));"


def create() -> list[Component]:
    components: list[Component] = []
    with gr.Row(elem_id="chart-grid"):
        for index in range(len(CHARTS)):
            with gr.Column(elem_classes="uag-chart", min_width=420):
                plot = gr.Plot(show_label=False, container=False, elem_classes="uag-plot")
                below = gr.HTML(
                    js_on_load=_SAVE,
                    head=script("charts") if index == 0 else None,
                    elem_classes="uag-chart-data",
                    apply_default_css=False,
                )
            components += [plot, below]
    return components


def render(run: dict[str, Any]) -> list[Any]:
    values: list[Any] = []
    for chart in charts(run):
        if chart is None:
            values += [gr.update(value=None, visible=False), ""]
        else:
            values += [gr.update(value=chart.figure, visible=True), data_html(chart)]
    return values


def data_html(chart: Chart) -> str:
    """The note, the downloads and the table of a chart."""
    step = -(-len(chart.rows) // MOST_ROWS)
    rows = [tuple(_cell(cell) for cell in row) for row in chart.rows[::step]]
    caption = chart.title
    if step > 1:
        caption += f" (one row of {step}; the CSV holds all {len(chart.rows):,})"
    csv = base64.b64encode(chart.csv().encode("utf-8-sig")).decode("ascii")
    note = f'<p class="uag-note">{token_html.text(chart.note)}</p>' if chart.note else ""
    name = token_html.text(f"uag-{chart.name}")
    return (
        f'{note}<p class="uag-chart-links">'
        f'<a class="uag-download" download="{name}.csv" href="data:text/csv;base64,{csv}">CSV</a>'
        f'<button type="button" class="uag-download" data-picture="{name}">PNG</button></p>'
        f"<details><summary>The numbers as a table</summary>"
        f"{token_html.table(caption, chart.head, rows)}</details>"
    )


def _cell(cell: Any) -> str:
    if cell is None:
        return "–"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
