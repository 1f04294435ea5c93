"""What all charts share: the parts of one, its CSV, its colours and layout.

Colours of text and grid are neutral here and sharpened for light and dark by the style sheet. Knows
no run document.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

NEUTRAL = "#767a82"
GRID = "rgba(128,132,140,0.25)"
FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"
# Told apart by colour-blind readers, on light and dark; the first is the assisted run's.
TEAL, ORANGE, BLUE, PURPLE, GREY = "#0e8a7d", "#c9822b", "#5b84c4", "#8b6bb8", "#8b8e95"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Cell = str | int | float | None


@dataclass(frozen=True)
class Chart:
    """A figure, the sentence it shows, and its numbers as rows; `name` is a file's stem.

    `note` explains a term or an assumption, in plain text.
    """

    name: str
    title: str
    figure: go.Figure
    head: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""

    def csv(self) -> str:
        """All rows, in full precision; texts cannot be taken for formulas by a spreadsheet."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(self.head)
        for row in self.rows:
            writer.writerow([f"'{c}" if _looks_like_formula(c) else c for c in row])
        return out.getvalue()


def _looks_like_formula(cell: Cell) -> bool:
    return isinstance(cell, str) and cell.startswith(_FORMULA)


def axis(title: str, **changes: Any) -> dict[str, Any]:
    """An axis with its title (and unit); it can be read but not dragged."""
    return {
        "title": {"text": title, "font": {"size": 12}, "standoff": 8},
        "gridcolor": GRID,
        "linecolor": GRID,
        "zerolinecolor": GRID,
        "automargin": True,
        "fixedrange": True,
        "rangemode": "tozero",
        **changes,
    }


def counted(title: str, most: int, **changes: Any) -> dict[str, Any]:
    """An axis of whole numbers up to `most`: no ticks between them."""
    return axis(title, dtick=1 if most < 10 else None, **changes)


def layout(title: str, x: dict[str, Any], y: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The layout of a chart of the Charts view: title above, legend below, same height for all."""
    lines = wrap(title, 46)
    return {
        "template": "none",
        "title": {
            "text": "<br>".join(lines),
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 0.955,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 4},
            "font": {"size": 14},
        },
        "font": {"family": FONT, "size": 12, "color": NEUTRAL},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "xaxis": x,
        "yaxis": y,
        "margin": {"l": 8, "r": 16, "t": 30 + 19 * max(2, len(lines)), "b": 8},
        "height": 380,
        "hovermode": "closest",
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": -0.2,
            "yanchor": "top",
            "font": {"size": 12},
        },
        **changes,
    }


def marked(color: str, **changes: Any) -> dict[str, Any]:
    return {"color": color, "line": {"width": 0}, **changes}
