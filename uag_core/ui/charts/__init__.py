"""Plotly figures of a run, each with a title that says what was found and the rows of its table.

Pure: a run document in, figures and rows out; every number drawn is the document's own or worked
out from it alone. Only trace types that plotly.js 3 knows are used, since that is what the page
draws with. Imports neither torch nor gradio.
"""

from __future__ import annotations

from typing import Any

from uag_core.ui.charts import acceptance, course, timeline, what_if
from uag_core.ui.charts.chart import Chart
from uag_core.ui.charts.speedup import (
    FASTER,
    SLOWER,
    TABLE_HEAD,
    speedup_chart,
    speedups,
    table,
)
from uag_core.ui.charts.speedup import chart as speedup

__all__ = [
    "CHARTS",
    "FASTER",
    "SLOWER",
    "TABLE_HEAD",
    "Chart",
    "charts",
    "speedup",
    "speedup_chart",
    "speedups",
    "table",
]

# In the order of the page. Each takes a run document and gives a chart, None without its data.
CHARTS = (
    timeline.tokens_over_time,
    what_if.what_if,
    course.time_per_round,
    course.drafts_over_answer,
    acceptance.accepted_per_round,
    acceptance.by_position,
)


def charts(run: dict[str, Any]) -> list[Chart | None]:
    """One entry for each of `CHARTS`; None where the run holds nothing to draw."""
    return [make(run) for make in CHARTS]
