"""How many candidates were accepted: per round as a histogram, and by position in the draft."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from uag_core.ui.charts.chart import BLUE, TEAL, Chart, axis, counted, layout, marked


def accepted_per_round(run: dict[str, Any]) -> Chart | None:
    """`acceptance_histogram` of the result, as bars."""
    assisted = run["result"].get("assisted") or {}
    counts = assisted.get("acceptance_histogram") or []
    total = sum(counts)
    if not total:
        return None
    numbers = list(range(len(counts)))
    most = max(numbers, key=lambda n: counts[n])
    title = (
        f"Most often {most} accepted: in {counts[most]} of {total} rounds with a draft; nothing "
        f"was accepted in {counts[0]}"
    )
    if most == 0:
        title = f"Most often nothing was accepted: in {counts[0]} of {total} rounds with a draft"
    x = axis("accepted tokens in a round", dtick=1 if len(counts) < 16 else None)
    figure = go.Figure(
        go.Bar(
            x=numbers,
            y=counts,
            text=counts,
            textposition="outside",
            cliponaxis=False,
            marker=marked(TEAL),
            hovertemplate="%{y} rounds with %{x} accepted<extra></extra>",
        )
    )
    figure.update_layout(layout(title, x, counted("rounds", max(counts)), showlegend=False))
    rows = [(n, count, count / total) for n, count in zip(numbers, counts, strict=True)]
    head = ("Accepted in a round", "Rounds", "Share of rounds with a draft")
    return Chart("accepted-per-round", title, figure, head, rows)


def by_position(run: dict[str, Any]) -> Chart | None:
    """`acceptance_per_position` of the result: it can only fall, since a rejection ends a round."""
    assisted = run["result"].get("assisted") or {}
    rates = assisted.get("acceptance_per_position") or []
    if not rates:
        return None
    positions = list(range(1, len(rates) + 1))
    title = f"The first candidate is accepted in {rates[0]:.0%} of the rounds with a draft"
    if len(rates) > 1:
        title += f", the {_ordinal(len(rates))} in {rates[-1]:.0%}"
    figure = go.Figure(
        go.Bar(
            x=positions,
            y=rates,
            text=[f"{rate:.0%}" for rate in rates],
            textposition="outside",
            cliponaxis=False,
            marker=marked(BLUE),
            hovertemplate="position %{x}: %{y:.1%} of rounds<extra></extra>",
        )
    )
    y = axis("accepted (share of rounds with a draft)", range=[0, 1.08], tickformat=".0%")
    x = axis("position in the draft (candidate tokens)", dtick=1 if len(rates) < 16 else None)
    figure.update_layout(layout(title, x | {"rangemode": "normal"}, y, showlegend=False))
    rows = list(zip(positions, rates, strict=True))
    note = "A candidate counts as accepted only if all before it were."
    return Chart("acceptance-by-position", title, figure, ("Position", "Accepted"), rows, note)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
