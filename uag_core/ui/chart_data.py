"""What stands under a chart: a note, the downloads, and the chart's numbers as a table.

Pure strings. The CSV travels inside its link, so nothing is kept on the server for it; the picture
is made in the browser (assets/js/charts.js).
"""

from __future__ import annotations

import base64
from typing import Any

from uag_core.ui import token_html
from uag_core.ui.charts import Chart

MOST_ROWS = 200  # of a table in the page; the download holds all
# For a component that holds links: saves and fits the chart beside it.
CHART_TOOLS = "uagCharts(element);"


def data_html(chart: Chart) -> str:
    """The note, the downloads and, folded up, the table of a chart."""
    step = -(-len(chart.rows) // MOST_ROWS)
    rows = [tuple(_cell(cell) for cell in row) for row in chart.rows[::step]]
    caption = chart.title
    if step > 1:
        caption += f" (one row of {step}; the CSV holds all {len(chart.rows):,})"
    note = f'<p class="uag-note">{token_html.text(chart.note)}</p>' if chart.note else ""
    return (
        f"{note}{links(chart)}<details><summary>The numbers as a table</summary>"
        f"{token_html.table(caption, chart.head, rows)}</details>"
    )


def links(chart: Chart) -> str:
    """The table as CSV, and the button for the picture."""
    csv = base64.b64encode(chart.csv().encode("utf-8-sig")).decode("ascii")
    name = token_html.text(f"uag-{chart.name}")
    return (
        f'<p class="uag-chart-links"><a class="uag-download" download="{name}.csv" '
        f'href="data:text/csv;base64,{csv}">CSV</a>'
        f'<button type="button" class="uag-download" data-picture="{name}">PNG</button></p>'
    )


def _cell(cell: Any) -> str:
    if cell is None:
        return "–"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
