"""Draws a benchmark's charts as pictures for a document, by the system's chromium.

    python -m uag_core bench ... --json > result.json
    python -m benchmarks.figures result.json docs/images/benchmark

Writes PREFIX-kinds.png and, where the draft length was swept, PREFIX-sweep.png. Measures nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import plotly.graph_objects as go
from playwright.sync_api import sync_playwright

from uag_core.ui.bench_charts import kinds_chart, sweep_chart

WIDTH = 860


def draw(figure: go.Figure, path: Path) -> None:
    """One figure as a PNG file, on white, at twice the resolution."""
    height = int(figure.layout.height or 420)
    figure.update_layout(paper_bgcolor="white", plot_bgcolor="white", width=WIDTH)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        size = {"width": WIDTH + 20, "height": height + 20}
        page = browser.new_page(viewport=size, device_scale_factor=2)
        page.set_content(figure.to_html(config={"displayModeBar": False}))
        page.wait_for_selector(".main-svg")
        page.locator(".plotly-graph-div").screenshot(path=path)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("result", type=Path, help="what `bench --json` printed")
    parser.add_argument("prefix", type=Path)
    args = parser.parse_args()
    document = json.loads(args.result.read_text(encoding="utf-8"))
    charts = {"kinds": kinds_chart(document)}
    if document.get("sweep"):
        charts["sweep"] = sweep_chart(document)
    args.prefix.parent.mkdir(parents=True, exist_ok=True)
    for name, figure in charts.items():
        path = args.prefix.with_name(f"{args.prefix.name}-{name}.png")
        draw(figure, path)
        print(path)


if __name__ == "__main__":
    main()
