"""The speedups of a comparison as bars with a line at 1, and the rows of the table beside it."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from uag_core.ui.charts.chart import FONT, GRID, NEUTRAL, Chart
from uag_core.ui.verdict import Document, one_plain, pace, speed_sentence, times

# Told apart by colour-blind readers, seen on light and dark, and dark enough for white numbers.
FASTER, SLOWER = "#0b7a6e", "#b4550f"
TABLE_HEAD = ("Compared with", "Speedup", "Ours is")

_COMPARISONS = (
    ("decode_speedup", "Fastest plain", "tokens/s after the first token"),
    ("decode_speedup_same_shape", "Same-shape plain", "tokens/s after the first token"),
    ("wall_speedup", "Plain, end to end", "wall time, prompt included"),
)
_ONE_PLAIN = (
    ("decode_speedup", "Plain decoding", "tokens/s after the first token"),
    _COMPARISONS[2],
)
_REFERENCES = {
    "transformers": "transformers, plain",
    "transformers_uag": "transformers, UAG",
    "transformers_lookup": "transformers, lookup",
}


def speedups(document: Document) -> list[tuple[str, str, float]]:
    """(name, what is compared, speedup) for every comparison the document has a number for.

    Against a reference engine the ratio is of end-to-end tokens per second.
    """
    rows = [
        (name, basis, float(document[key]))
        for key, name, basis in (_ONE_PLAIN if one_plain(document) else _COMPARISONS)
        if document.get(key) is not None
    ]
    ours = (document.get("assisted") or {}).get("end_to_end_tokens_per_second")
    for reference in document.get("references") or ():
        theirs = reference.get("end_to_end_tokens_per_second")
        if ours and theirs:
            engine = str(reference.get("engine"))
            rows.append((_REFERENCES.get(engine, engine), "end-to-end tokens/s", ours / theirs))
    return rows


def table(document: Document) -> list[tuple[str, ...]]:
    """The chart's numbers as rows of text, for those who cannot see it."""
    return [
        (f"{name} ({basis})", times(value), pace(value))
        for name, basis, value in speedups(document)
    ]


def _title(sentence: str) -> str:
    return "<br>".join(wrap(sentence, 36))


def chart(document: Document) -> Chart:
    """The bars with their numbers, for a download."""
    rows = [(name, basis, value) for name, basis, value in speedups(document)]
    head = ("Compared with", "Of what", "Speedup")
    return Chart("speedup", speed_sentence(document), speedup_chart(document), head, rows)


def speedup_chart(document: Document) -> go.Figure:
    """Bars from zero with a line at 1: left of the line is a slowdown, and coloured as one."""
    rows = speedups(document)
    rows.reverse()  # plotly draws the first category at the bottom
    values = [value for _, _, value in rows]
    top = max([1.0, *values]) * 1.12
    figure = go.Figure(
        go.Bar(
            orientation="h",
            x=values,
            y=[name for name, _, _ in rows],
            text=[f"{times(value)}, {pace(value)}" for value in values],
            customdata=[basis for _, basis, _ in rows],
            textposition=["inside" if value > 0.42 * top else "outside" for value in values],
            insidetextanchor="start",
            constraintext="none",
            insidetextfont={"color": "#ffffff"},
            outsidetextfont={"color": NEUTRAL},
            marker={"color": [FASTER if value >= 1 else SLOWER for value in values]},
            hovertemplate="%{y}: %{x:.4g}×<br>%{customdata}<extra></extra>",
            width=0.62,
        )
    )
    crossed = top > 2.2  # then the line would run through the numbers that stand in the bars
    line = {"color": NEUTRAL, "width": 2, "dash": "dot"}
    figure.add_vline(x=1, line=line, layer="below" if crossed else "above")
    figure.update_layout(_layout(speed_sentence(document), top, len(rows)))
    return figure


def _layout(sentence: str, top: float, count: int) -> dict[str, Any]:
    axis = {"gridcolor": GRID, "linecolor": GRID, "zerolinecolor": GRID}
    return {
        "template": "none",
        "title": {
            "text": _title(sentence),
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "pad": {"l": 4},
            "font": {"size": 14},
        },
        "font": {
            "family": FONT,
            "size": 13,
            "color": NEUTRAL,
        },
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "xaxis": {
            **axis,
            "title": {"text": "speedup (×, 1 = no gain)", "font": {"size": 12}},
            "range": [0, top],
            "fixedrange": True,
        },
        "yaxis": {**axis, "automargin": True, "fixedrange": True, "ticksuffix": "  "},
        "margin": {"l": 8, "r": 16, "t": 64, "b": 48},
        "height": 150 + 44 * max(count, 1),
        "showlegend": False,
    }
