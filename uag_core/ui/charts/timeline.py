"""Tokens over wall-clock time: one line for each engine."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from uag_core.ui.charts.chart import (
    BLUE,
    GREY,
    NEUTRAL,
    ORANGE,
    PURPLE,
    TEAL,
    Chart,
    axis,
    layout,
)
from uag_core.ui.charts.folds import method_of, name_of, order_of
from uag_core.ui.charts.folds import tokens_over_time as fold
from uag_core.ui.verdict import one_plain, seconds, times, tokens

_LINES = {
    "baseline": (GREY, "dash", 2),
    "baseline_unpadded": (NEUTRAL, "solid", 2),
    "transformers": (ORANGE, "dot", 2),
    "transformers_uag": (PURPLE, "dashdot", 2),
    "transformers_lookup": (BLUE, "longdash", 2),
}
_OURS = (TEAL, "solid", 3)


def tokens_over_time(run: dict[str, Any]) -> Chart | None:
    """Steps, since the tokens of a round appear together."""
    lines = {engine: fold(run, engine) for engine in order_of(run)}
    lines = {engine: rows for engine, rows in lines.items() if rows}
    if not lines:
        return None
    traces = []
    for engine, rows in reversed(lines.items()):  # the last is drawn on top
        color, dash, width = _LINES.get(engine, _OURS)
        traces.append(
            go.Scatter(
                x=[t for t, _ in rows],
                y=[count for _, count in rows],
                name=name_of(engine, run),
                mode="lines",
                line={"shape": "hv", "color": color, "dash": dash, "width": width},
                hovertemplate="%{y} tokens after %{x:.3f} s<extra>%{fullData.name}</extra>",
            )
        )
    title = _finding(run)
    figure = go.Figure(traces)
    figure.update_layout(
        layout(title, axis("wall-clock time (s)"), axis("tokens written"))
        | {"legend": _legend(), "showlegend": True}
    )
    table = [
        (name_of(engine, run), count, t) for engine, line in lines.items() for t, count in line
    ]
    note = "Each engine ran alone, so that none disturbed another's timing; the clocks begin at 0."
    return Chart("tokens-over-time", title, figure, ("Engine", "Tokens", "Seconds"), table, note)


def _legend() -> dict[str, Any]:
    return {
        "orientation": "h",
        "x": 0,
        "y": -0.2,
        "yanchor": "top",
        "traceorder": "reversed",
        "font": {"size": 12},
    }


def _finding(run: dict[str, Any]) -> str:
    result = run["result"]
    plain, ours = result.get("baseline") or {}, result.get("assisted") or {}
    name = name_of(method_of(run), run)
    if not plain.get("wall_s") or not ours.get("wall_s"):
        return "Tokens over time, as far as the runs went"
    if plain.get("num_new_tokens") != ours.get("num_new_tokens"):
        return (
            f"{name} wrote {tokens(ours['num_new_tokens'])} in {seconds(ours['wall_s'])}, "
            f"plain decoding {plain['num_new_tokens']:,} in {seconds(plain['wall_s'])}"
        )
    ratio = plain["wall_s"] / ours["wall_s"]
    slower = ", so it is slower" if ratio < 1 else ""
    shapes = "" if one_plain(result) else " of the same shapes"
    return (
        f"{name} took {seconds(ours['wall_s'])} for {tokens(ours['num_new_tokens'])}, plain "
        f"decoding{shapes} {seconds(plain['wall_s'])}: {times(ratio)} end to end{slower}"
    )
