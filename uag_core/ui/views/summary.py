"""The first view: verdict and numbers, the speedup chart and its table, the result as JSON.

Every number is the run's own. Knows how to lay out and fill its components, nothing of events.
"""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.components import Component

from uag_core import advice
from uag_core.ui import charts, results_html, token_html
from uag_core.ui.chart_data import CHART_TOOLS, links
from uag_core.ui.charts.folds import events_of, method_of
from uag_core.ui.scripts import script

LABEL = "Summary"


def create() -> list[Component]:
    summary = gr.HTML(elem_id="summary", apply_default_css=False)
    with gr.Row(elem_id="charts"):
        chart = gr.Plot(show_label=False, elem_id="chart", min_width=300, scale=3)
        table = gr.HTML(
            js_on_load=CHART_TOOLS,
            head=script("charts"),
            elem_id="chart-table",
            min_width=300,
            scale=2,
            apply_default_css=False,
        )
    download = gr.HTML(elem_id="download", apply_default_css=False)
    return [summary, chart, table, download]


def render(run: dict[str, Any]) -> list[Any]:
    result = run["result"]
    reasons = advice.explain(result, events_of(run, method_of(run)), run.get("profile"))
    chart = charts.speedup(result)
    table = token_html.table("The chart's numbers", charts.TABLE_HEAD, charts.table(result))
    return [
        results_html.results(result, reasons),
        gr.update(value=chart.figure, visible=bool(chart.rows)),
        table + links(chart) if chart.rows else "",
        results_html.download(result),
    ]
