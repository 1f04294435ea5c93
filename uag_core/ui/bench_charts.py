"""Plotly figures of a benchmark: speedups by kind of prompt, and over the draft length.

Pure: the `bench --json` object in, a figure out, with error bars where there is an interval. Only
trace types that plotly.js 3 knows. Imports neither torch nor gradio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from uag_core.ui import methods
from uag_core.ui.verdict import times

Document = Mapping[str, Any]
NEUTRAL = "#767a82"
GRID = "rgba(128,132,140,0.25)"
# Told apart by colour-blind readers, on light and on dark; the symbols differ as well.
COLOURS = {
    "uag": "#0e8a7d",
    "lookup": "#c9822b",
    "uag+lookup": "#5b84c4",
    "transformers": "#8b8e95",
    "transformers_uag": "#8b6bb8",
    "transformers_lookup": "#a8485a",
}
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross")


def compared(document: Document) -> list[str]:
    """The methods that are set against plain decoding."""
    return [name for name in document.get("summary") or {} if name != "baseline"]


def kinds_chart(document: Document) -> go.Figure:
    """A row per kind of prompt, a point per method with its interval, a line at 1."""
    shown = compared(document)
    groups = list((document.get("categories") or {}).items())
    if len(groups) > 1:
        groups.append(("all prompts", document["summary"]))
    groups.reverse()  # plotly draws the first category at the bottom
    figure = go.Figure()
    height = len(groups)
    for index, name in enumerate(shown):
        points = [
            (row, entry)
            for row, (_, values) in enumerate(groups)
            if (entry := _speedup(values.get(name))) is not None
        ]
        # A little apart from one another, in the order of the legend from above.
        shift = (len(shown) - 1) / 2 - index
        figure.add_trace(
            go.Scatter(
                name=_name(name),
                x=[entry["geomean"] for _, entry in points],
                y=[row + shift * min(0.14, 0.7 / max(1, len(shown))) for row, _ in points],
                mode="markers",
                marker={
                    "color": COLOURS.get(name, NEUTRAL),
                    "size": 9,
                    "symbol": SYMBOLS[index % len(SYMBOLS)],
                },
                error_x=_bars([entry for _, entry in points], COLOURS.get(name, NEUTRAL)),
                customdata=[_label(groups[row][0]) for row, _ in points],
                hovertemplate="%{customdata}: %{x:.3g}×<extra>" + _name(name) + "</extra>",
            )
        )
    figure.add_vline(x=1, line={"color": NEUTRAL, "width": 2, "dash": "dot"})
    figure.update_layout(
        _layout(
            kinds_sentence(document),
            height=150 + 20 * len(shown) + max(1, height) * max(30, 10 * len(shown)),
            engines=len(shown),
            xaxis={
                "title": _title("decode speedup (×, 1 = plain decoding)"),
                "rangemode": "tozero",
            },
            yaxis={
                "tickvals": list(range(height)),
                "ticktext": [_label(category) for category, _ in groups],
                "range": [-0.6, height - 0.4],
                "automargin": True,
                "ticksuffix": "  ",
            },
        )
    )
    return figure


def sweep_chart(document: Document) -> go.Figure:
    """Speedup over the number of draft tokens; 0 is plain decoding as it was measured."""
    figure = go.Figure()
    labels: list[str] = []
    for points in (document.get("sweep") or {}).values():
        for point in points:
            label = _count(point)
            if label not in labels:
                labels.append(label)
    labels.sort(key=lambda label: (label == "auto", int(label) if label != "auto" else 0))
    for index, (name, points) in enumerate((document.get("sweep") or {}).items()):
        found = [(p, entry) for p in points if (entry := _speedup(p)) is not None]
        figure.add_trace(
            go.Scatter(
                name=_name(name),
                x=[_count(point) for point, _ in found],
                y=[entry["geomean"] for _, entry in found],
                mode="lines+markers",
                line={"color": COLOURS.get(name, NEUTRAL)},
                marker={"size": 8, "symbol": SYMBOLS[index % len(SYMBOLS)]},
                error_y=_bars([entry for _, entry in found], COLOURS.get(name, NEUTRAL)),
                hovertemplate="%{x} draft tokens: %{y:.3g}×<extra>" + _name(name) + "</extra>",
            )
        )
    figure.add_hline(y=1, line={"color": NEUTRAL, "width": 2, "dash": "dot"})
    figure.update_layout(
        _layout(
            sweep_sentence(document),
            height=360 + 20 * len(figure.data),
            engines=len(figure.data),
            xaxis={
                "title": _title("draft tokens a round (0 = plain decoding)"),
                "type": "category",
                "categoryorder": "array",
                "categoryarray": labels,
            },
            yaxis={
                "title": {**_title("decode speedup (×)"), "standoff": 12},
                "rangemode": "tozero",
                "automargin": True,
            },
        )
    )
    return figure


def kinds_sentence(document: Document) -> str:
    """The finding in one sentence: the chart's title, and what a screen reader is told."""
    found = [
        (entry["geomean"], name)
        for name in compared(document)
        if name in methods.NAMES
        and (entry := _speedup((document["summary"]).get(name))) is not None
    ]
    if not found:
        return "No speedup was measured"
    value, best = max(found)
    word = "as fast as" if value >= 1 else "the speed of"
    return f"{_name(best)} decodes {times(value)} {word} the fastest plain decoding"


def sweep_sentence(document: Document) -> str:
    found = [
        (entry["geomean"], _count(point), name)
        for name, points in (document.get("sweep") or {}).items()
        if name in methods.NAMES
        for point in points
        if (entry := _speedup(point)) is not None
    ]
    if not found:
        return "No draft length was measured"
    value, count, name = max(found)
    if count == "0":
        return "Plain decoding is the fastest: no draft length pays"
    how = "choosing its draft length" if count == "auto" else f"with {count} draft tokens"
    return f"{_name(name)} is fastest {how}: {times(value)}"


def _speedup(entry: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    found = (entry or {}).get("decode_speedup")
    return found if found and found.get("geomean") is not None else None


def _count(point: Mapping[str, Any]) -> str:
    count = point.get("num_assistant_tokens")
    return "auto" if count is None else str(count)


def _bars(entries: Sequence[Mapping[str, Any]], colour: str) -> dict[str, Any]:
    """Asymmetric error bars; none where one prompt says nothing about others."""

    def distance(entry: Mapping[str, Any], key: str) -> float:
        return 0.0 if entry.get(key) is None else abs(entry[key] - entry["geomean"])

    return {
        "type": "data",
        "symmetric": False,
        "array": [distance(entry, "high") for entry in entries],
        "arrayminus": [distance(entry, "low") for entry in entries],
        "color": colour,
        "thickness": 1.5,
        "width": 3,
    }


def _name(method: str) -> str:
    return ENGINE_NAMES.get(method, method)


ENGINE_NAMES = {
    "baseline": "Plain decoding",
    **methods.NAMES,
    "transformers": "transformers, plain",
    "transformers_uag": "transformers, UAG",
    "transformers_lookup": "transformers, lookup",
}


def _label(category: str) -> str:
    """A category as plotly may show it: without the markup that it would follow."""
    return category.replace("<", "‹").replace(">", "›").replace("&", "＆").replace("$", "＄")


def _title(text: str) -> dict[str, Any]:
    return {"text": text, "font": {"size": 12}}


def _layout(
    sentence: str, *, height: int, engines: int, xaxis: dict[str, Any], yaxis: dict[str, Any]
) -> dict[str, Any]:
    axis = {"gridcolor": GRID, "linecolor": GRID, "zerolinecolor": GRID, "fixedrange": True}
    return {
        "template": "none",
        "title": {
            "text": "<br>".join(wrap(sentence, 42)),
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "pad": {"l": 4},
            "font": {"size": 14},
        },
        "font": {
            "family": "system-ui, -apple-system, 'Segoe UI', sans-serif",
            "size": 13,
            "color": NEUTRAL,
        },
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "xaxis": {**axis, **xaxis},
        "yaxis": {**axis, **yaxis},
        "margin": {"l": 8, "r": 16, "t": 64, "b": 64 + 20 * engines},
        "height": height,
        "showlegend": True,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
    }
