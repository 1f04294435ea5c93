"""How long the views of a long run take to open, and a step through its rounds, in chromium.

    python -m benchmarks.views [--tokens 2000] [--repeats 5] [--steps 200]

Makes a run of that many tokens out of a shipped one, serves the page and opens the run from its
link and each view from its tab. Prints one JSON line: medians and the slowest, in milliseconds,
from the click (or the request for the page) until the view is drawn and on the screen, and of a
step from the key to the next frame. The browser and the server share this machine's cores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from uag_core import metrics
from uag_core.events import from_json
from uag_core.runs.document import dump_run, load_run
from uag_core.runs.library import SHIPPED, RunLibrary
from uag_core.runs.store import RunStore

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
VIEWS = {
    "Alignment": "#alignment .uag-token",
    "Charts": "#chart-grid .js-plotly-plot .gtitle",
    "Replay": "#replay .uag-lane",
}
DRAWN = """selector => new Promise(done => {
  const look = () => document.querySelector(selector)
    ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())))
    : setTimeout(look, 5);
  look();
})"""
OPEN = f"""async ([name, selector]) => {{
  const drawn = {DRAWN};
  const tab = [...document.querySelectorAll('#views button[role=tab]')]
    .find(button => button.textContent.trim() === name);
  const start = performance.now();
  tab.click();
  return await drawn(selector) - start;
}}"""
STEP = """async (count) => {
  const stage = document.querySelector('#alignment .uag-stage'), times = [];
  const frame = () => new Promise(requestAnimationFrame);
  stage.focus();
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    stage.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
    const drawing = performance.now() - start;
    await frame(); await frame();
    times.push([drawing, performance.now() - start]);
  }
  return times;
}"""


def long_events(events: list[dict[str, Any]], tokens: int) -> list[dict[str, Any]]:
    """The rounds of an engine over and over, until it has written so many tokens."""
    started, *middle, finished = events
    prefill = next(e for e in middle if e["type"] == "Verified" and not e["round"])
    rounds = [e for e in middle if e["type"] in ("Drafted", "Verified") and e["round"]]
    most, length = max(e["round"] for e in rounds), max(e["t"] for e in rounds)
    kept = [started, prefill]
    ids = [piece["id"] for piece in prefill["tokens"]]
    text, turn, forwards = prefill["text"], 0, 1
    while len(ids) < tokens:
        for event in rounds:
            later = {"round": event["round"] + turn * most, "t": event["t"] + turn * length}
            if event["type"] == "Verified":
                if len(ids) + len(event["tokens"]) > tokens:
                    break
                ids += [piece["id"] for piece in event["tokens"]]
                text += event["text"]
                forwards += 1
            kept.append({**event, **later})
        else:
            turn += 1
            continue
        break
    while kept[-1]["type"] == "Drafted":
        kept.pop()
    verified = [e for e in kept if e["type"] == "Verified"]
    parts = {k: sum(e[k] for e in verified) for k in ("draft_s", "reencode_s", "verify_s")}
    end = kept[-1]["t"]
    finish = {"token_ids": ids, "text": text, "num_target_forwards": forwards, "wall_s": end}
    other = end - finished["prefill_s"] - sum(parts.values())
    return [*kept, {**finished, **parts, **finish, "other_s": other, "t": end}]


def long_run(tokens: int, name: str = "code") -> dict[str, Any]:
    """A valid run document of about that many tokens, with every engine of a shipped run."""
    run = json.loads((SHIPPED / f"{name}.json").read_bytes())
    run["events"] = {k: long_events(events, tokens) for k, events in run["events"].items()}
    run["title"] = f"A run of {tokens:,} tokens"
    result = run["result"]
    for part, engine, summed in (
        ("baseline", "baseline", metrics.timing),
        ("assisted", result["method"], metrics.summarize),
    ):
        result[part] |= summed([from_json(event) for event in run["events"][engine]])
    return load_run(run)


def measured(url: str, browser: Any, steps: int) -> dict[str, list[float]]:
    """Milliseconds of one visit, by what was done."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(60_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    times: dict[str, list[float]] = {}
    page.goto(url)
    page.wait_for_selector("#assisted .uag-panel")
    start = time.perf_counter()
    page.click("#recorded button >> nth=0")
    page.evaluate(DRAWN, "#results .uag-number")
    times["open_run"] = [1000 * (time.perf_counter() - start)]
    page.evaluate(DRAWN, "#chart .bars path")
    times["open_run_and_chart"] = [1000 * (time.perf_counter() - start)]
    for name, selector in VIEWS.items():
        times[f"open_{name.lower()}"] = [page.evaluate(OPEN, [name, selector])]
    page.evaluate(OPEN, ["Alignment", VIEWS["Alignment"]])
    taken = page.evaluate(STEP, steps)
    times["step_drawing"], times["step_to_frame"] = ([t[i] for t in taken] for i in (0, 1))
    for view, selector in (("compare", "#results .uag-number"), ("alignment", VIEWS["Alignment"])):
        start = time.perf_counter()
        page.goto(f"{url}?run=long&view={view}")
        page.evaluate(DRAWN, selector)
        times[f"link_{view}"] = [1000 * (time.perf_counter() - start)]
    page.close()
    if faults:
        raise SystemExit(f"The page failed: {faults[0]}")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()

    from playwright.sync_api import sync_playwright

    from uag_core.ui.build import build_demo
    from uag_core.ui.theme import launch_options

    run = long_run(args.tokens)
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = Path(folder)
        (place / "long.json").write_text(dump_run(run), encoding="utf-8")
        demo = build_demo(library=RunLibrary(RunStore(place / "shared"), place))
        _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options())
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        measured(url, browser, 5)  # loads what is loaded once
        for _ in range(args.repeats):
            for name, values in measured(url, browser, args.steps).items():
                times.setdefault(name, []).extend(values)
        browser.close()
        demo.close(verbose=False)
    rounds = sum(e["type"] == "Verified" for e in run["events"][run["result"]["method"]])
    report: dict[str, Any] = {
        "tokens": run["result"]["assisted"]["num_new_tokens"],
        "rounds": rounds,
        "document_mb": round(len(dump_run(run).encode()) / 2**20, 2),
        "repeats": args.repeats,
    }
    for name, values in times.items():
        report[f"{name}_ms"] = {"median": round(median(values), 1), "max": round(max(values), 1)}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
