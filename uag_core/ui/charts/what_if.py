"""What if drafts were longer or the assistant better: the speedup that measured costs predict."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from uag_core.costs import MAX_DRAFT, Costs, costs_of
from uag_core.ui.charts.chart import BLUE, NEUTRAL, ORANGE, TEAL, Chart, axis, layout
from uag_core.ui.charts.folds import events_of, method_of
from uag_core.ui.verdict import times

CHANCES = (0.3, 0.5, 0.7, 0.9)
_DASHES = ("dot", "dashdot", "dash", "longdash")
_LENGTHS = list(range(MAX_DRAFT + 1))


def what_if(run: dict[str, Any]) -> Chart | None:
    """Predicted speedup over the draft length: a curve for each acceptance, the run's own bold."""
    result = run["result"]
    costs = costs_of(result, events_of(run, method_of(run)), run.get("profile"))
    if costs is None or costs.chance is None:
        return None
    unit = "candidate" if _drafts_nothing(run) else "draft"
    traces = [
        _curve(costs, chance, f"{chance:.0%}", {"color": BLUE, "dash": dash, "width": 1.5})
        for chance, dash in zip(CHANCES, _DASHES, strict=True)
    ]
    own = f"{costs.chance:.0%} (this run)"
    traces.append(_curve(costs, costs.chance, own, {"color": TEAL, "width": 3}))
    measured = result.get("decode_speedup")
    if measured is not None:
        traces.append(_measured(costs, measured))
    title = _finding(costs)
    figure = go.Figure(traces)
    figure.add_hline(
        y=1,
        line={"color": NEUTRAL, "width": 2, "dash": "dot"},
        annotation={"text": "break-even", "font": {"size": 11}, "xanchor": "right"},
    )
    x = axis(f"draft length ({unit} tokens)", range=[0, MAX_DRAFT])
    y = axis("predicted speedup (×)")
    if costs.padded:
        _mark_extrapolation(figure, costs)
    figure.update_layout(layout(title, x, y, showlegend=True))
    figure.update_layout(
        legend={"title": {"text": "Candidates accepted, once reached", "side": "top"}, "y": -0.25}
    )
    head = ("Draft length", *(f"{chance:.0%} accepted" for chance in CHANCES), f"{own}")
    rows = [
        (length, *(costs.speedup(length, chance) for chance in (*CHANCES, costs.chance)))
        for length in _LENGTHS
    ]
    return Chart("what-if", title, figure, head, rows, _note(costs, measured))


def _drafts_nothing(run: dict[str, Any]) -> bool:
    return not (run["result"].get("assisted") or {}).get("num_draft_tokens")


def _curve(costs: Costs, chance: float, name: str, line: dict[str, Any]) -> go.Scatter:
    return go.Scatter(
        x=_LENGTHS,
        y=[costs.speedup(length, chance) for length in _LENGTHS],
        name=name,
        mode="lines",
        line=line,
        hovertemplate="%{y:.2f}× with %{x} drafted<extra>%{fullData.name}</extra>",
    )


def _measured(costs: Costs, speedup: float) -> go.Scatter:
    return go.Scatter(
        x=[costs.draft_length],
        y=[speedup],
        name="measured",
        mode="markers",
        marker={"color": ORANGE, "size": 12, "symbol": "diamond", "line": {"width": 0}},
        hovertemplate="measured %{y:.4g}× with %{x:.1f} drafted on average<extra></extra>",
    )


def _mark_extrapolation(figure: go.Figure, costs: Costs) -> None:
    end = (costs.positions - 1) / costs.candidates_per_draft
    if 0 < end < MAX_DRAFT:
        figure.add_vrect(
            x0=end, x1=MAX_DRAFT, fillcolor=NEUTRAL, opacity=0.08, line_width=0, layer="below"
        )


def _finding(costs: Costs) -> str:
    best = costs.best_length()
    predicted = costs.speedup(best)
    needed = costs.break_even(costs.draft_length)
    rate = f"{costs.chance or 0:.0%}"
    if needed is None:
        return (
            f"At these costs drafts of {costs.draft_length:.1f} tokens cannot pay, whatever is "
            "accepted"
        )
    if needed < 0.005:
        pays = f"At these costs drafts of {costs.draft_length:.1f} tokens pay whatever is accepted"
        return f"{pays}. Best predicted: {times(predicted)} with {best} drafted"
    pays = (
        f"Drafts of {costs.draft_length:.1f} tokens pay where {needed:.0%} of the candidates that "
        f"are reached are accepted; here {rate} were"
    )
    if (costs.chance or 0) < needed:
        end = "no length is predicted to pay" if predicted < 1 else f"{best} drafted would pay"
        return f"{pays}, and {end}"
    return f"{pays}. Best predicted: {times(predicted)} with {best} drafted"


def _note(costs: Costs, measured: float | None) -> str:
    t1 = costs.plain_s
    parts = [
        "Speedup = expected tokens of a round / (v + d c + o), each candidate accepted "
        "independently. From this run's medians, in plain steps of "
        f"{1000 * t1:.1f} ms: v = {costs.verify_s / t1:.2f} for {costs.positions:.3g} "
        f"positions, {costs.verify_slope_s / t1:.3f} more for "
        f"each further one; c = {costs.draft_step_s / t1:.3f} for a draft token; o = "
        f"{costs.host_s / t1:.3f} for host work. A draft token makes "
        f"{costs.candidates_per_draft:.2f} candidates."
    ]
    if costs.padded:
        parts.append("Shaded: more positions than this run verified at once, so extrapolated.")
    if measured is not None:
        parts.append(
            f"The measured point ({times(measured)}) counts the whole run, rounds without a draft "
            "included."
        )
    return " ".join(parts)
