"""The course of the assisted run: where each round's time went, and what each draft achieved."""

from __future__ import annotations

from statistics import median
from typing import Any

import plotly.graph_objects as go

from uag_core.ui.charts.chart import (
    GREY,
    NEUTRAL,
    ORANGE,
    PURPLE,
    TEAL,
    Chart,
    axis,
    counted,
    layout,
    marked,
)
from uag_core.ui.charts.folds import method_of, rounds_of, written_before

# As in the bar of the summary: verify at the bottom, since it is what plain decoding pays as well.
_PARTS = (
    ("verify_s", "verify", TEAL),
    ("draft_s", "draft", ORANGE),
    ("reencode_s", "re-encode", PURPLE),
    ("other_s", "other", GREY),
)

MOST_BARS = 400  # of a browser that is to stay quick; more rounds are drawn as stacked areas


def _area(color: str) -> dict[str, Any]:
    line = {"width": 0, "shape": "hv"}
    return {"mode": "lines", "stackgroup": "round", "line": line, "fillcolor": color}


def time_per_round(run: dict[str, Any]) -> Chart | None:
    """One stacked bar for each round, in milliseconds."""
    rounds = rounds_of(run)
    if not rounds:
        return None
    numbers = [event.round for event in rounds]
    few = len(rounds) <= MOST_BARS
    traces = [
        (go.Bar if few else go.Scatter)(
            x=numbers,
            y=[1000 * getattr(event, key) for event in rounds],
            name=name,
            hovertemplate="round %{x}: %{y:.2f} ms<extra>%{fullData.name}</extra>",
            **({"marker": marked(color)} if few else _area(color)),
        )
        for key, name, color in _PARTS
    ]
    sums = {key: sum(getattr(event, key) for event in rounds) for key, _, _ in _PARTS}
    total = sum(sums.values())
    wholes = [sum(getattr(event, key) for key, _, _ in _PARTS) for event in rounds]
    share = f", {sums['verify_s'] / total:.0%} of it verification" if total > 0 else ""
    drafting = f" and {sums['draft_s'] / total:.0%} drafting" if total > 0 else ""
    title = f"A round takes {1000 * median(wholes):.1f} ms (median){share}{drafting}"
    figure = go.Figure(traces)
    figure.update_layout(
        layout(
            title,
            axis("round", rangemode="normal"),
            axis("time (ms)"),
            barmode="stack",
            bargap=0.1 if len(rounds) < 150 else 0,
            showlegend=True,
        )
    )
    head = ("Round", *(f"{name} (s)" for _, name, _ in _PARTS))
    rows = [(event.round, *(getattr(event, key) for key, _, _ in _PARTS)) for event in rounds]
    drafts = method_of(run).startswith("uag")
    note = "The first draft also holds the assistant's reading of the prompt." if drafts else ""
    return Chart("time-per-round", title, figure, head, rows, note)


def drafts_over_answer(run: dict[str, Any]) -> Chart | None:
    """Draft tokens, candidates and accepted tokens of every round, along the answer."""
    rounds = rounds_of(run)
    if not any(event.num_candidates for event in rounds):
        return None
    before = written_before(run)
    widths = [max(1, len(event.tokens)) for event in rounds]
    few = len(rounds) < 150
    bars: dict[str, Any] = {"x": before, "width": widths, "offset": 0}
    traces = [
        go.Bar(
            y=[event.num_candidates for event in rounds],
            name="candidates",
            marker={
                "color": "rgba(128,132,140,0.22)",
                "line": {"color": NEUTRAL, "width": 0.6 if few else 0},
            },
            hovertemplate="token %{x}: %{y} candidates<extra></extra>",
            **bars,
        ),
        go.Bar(
            y=[event.num_accepted for event in rounds],
            name="accepted",
            marker=marked(TEAL),
            hovertemplate="token %{x}: %{y} accepted<extra></extra>",
            **bars,
        ),
    ]
    drafted = [
        (at + width / 2, event.num_draft_tokens)
        for at, width, event in zip(before, widths, rounds, strict=True)
        if event.num_draft_tokens
    ]
    if drafted:
        traces.append(
            go.Scatter(
                x=[at for at, _ in drafted],
                y=[count for _, count in drafted],
                name="draft tokens",
                mode="markers",
                marker={"color": ORANGE, "symbol": "diamond", "size": 6 if few else 3},
                hovertemplate="%{y} draft tokens<extra></extra>",
            )
        )
    title = _course(run)
    figure = go.Figure(traces)
    x = axis("tokens already written when the round began", rangemode="normal")
    most = max(max(event.num_candidates, event.num_draft_tokens) for event in rounds)
    y = counted("tokens in the round", most)
    figure.update_layout(layout(title, x, y, barmode="overlay", showlegend=True))
    head = ("Round", "Tokens before", "Draft tokens", "Candidates", "Accepted")
    rows = [
        (event.round, at, event.num_draft_tokens, event.num_candidates, event.num_accepted)
        for event, at in zip(rounds, before, strict=True)
    ]
    note = "Draft tokens are the assistant's, candidates the same text in the target's tokens."
    return Chart("drafts-over-answer", title, figure, head, rows, note)


def _course(run: dict[str, Any]) -> str:
    rounds = rounds_of(run)
    idle = sum(not event.num_candidates for event in rounds)
    half = len(rounds) // 2
    shares = []
    for part in (rounds[:half], rounds[half:]):
        candidates = sum(event.num_candidates for event in part)
        accepted = sum(event.num_accepted for event in part)
        shares.append(accepted / candidates if candidates else None)
    rate = (run["result"].get("assisted") or {}).get("acceptance_rate") or 0.0
    title = f"{rate:.0%} of the candidates were accepted"
    if rate and shares[0] is not None and shares[1] is not None:
        title += f": {shares[0]:.0%} in the first half of the rounds, {shares[1]:.0%} in the second"
    return f"{title}; {idle} of {len(rounds)} rounds had none" if idle else title
