"""The charts: every number drawn is the run's, titles tell slowdowns, downloads hold all rows."""

from __future__ import annotations

import base64
import csv
import io
import json
import re

import pytest

from tests.fixtures.measured import measured, run_of
from tests.runs.make import FIXTURE
from uag_core.events import Verified
from uag_core.runs.document import load_run
from uag_core.ui import results_html
from uag_core.ui.chart_data import MOST_ROWS, data_html
from uag_core.ui.charts import CHARTS, Chart, charts
from uag_core.ui.charts.course import MOST_BARS
from uag_core.ui.replay_json import replay_json
from uag_core.ui.views import charts as view
from uag_core.ui.views import replay, summary

ACCEPTED = [4, 2, 0, 1, None, 3, 4, 0, 2, 1]
NAMES = (
    "tokens-over-time",
    "what-if",
    "time-per-round",
    "drafts-over-answer",
    "accepted-per-round",
    "acceptance-by-position",
)


def run_with(accepted=ACCEPTED, **changes):
    return run_of(*measured(accepted, **changes))


def chart(run, name: str) -> Chart:
    return next(c for c in charts(run) if c is not None and c.name == name)


def rounds(run) -> list[dict]:
    events = run["events"][run["result"]["method"]]
    return [e for e in events if e["type"] == "Verified" and e["round"] > 0]


@pytest.mark.parametrize("name", NAMES)
def test_every_chart_has_title_units_table_and_valid_json(name) -> None:
    shown = chart(run_with(), name)
    assert shown.title in shown.figure.layout.title.text.replace("<br>", " ")
    assert shown.figure.layout.xaxis.title.text
    assert shown.figure.layout.yaxis.title.text
    assert shown.rows
    assert all(len(row) == len(shown.head) for row in shown.rows)
    assert "NaN" not in shown.figure.to_json()
    assert {trace.type for trace in shown.figure.data} <= {"bar", "scatter"}


def test_lines_over_time_are_the_events() -> None:
    run = run_with()
    shown = chart(run, "tokens-over-time")
    for trace, engine in ((shown.figure.data[-1], "uag"), (shown.figure.data[0], "baseline")):
        steps = [e for e in run["events"][engine] if e["type"] == "Verified"]
        assert list(trace.x) == [e["t"] for e in steps]
        assert trace.y[-1] == run["result"]["assisted"]["num_new_tokens"]
    assert shown.figure.data[-1].line.shape == "hv"  # tokens of a round appear together


def test_bars_are_the_results_own_numbers() -> None:
    run = run_with()
    assisted = run["result"]["assisted"]
    histogram = chart(run, "accepted-per-round")
    assert list(histogram.figure.data[0].y) == assisted["acceptance_histogram"]
    positions = chart(run, "acceptance-by-position")
    assert list(positions.figure.data[0].y) == assisted["acceptance_per_position"]


def test_rounds_are_the_events_own_numbers() -> None:
    run = run_with()
    for trace, key in zip(
        chart(run, "time-per-round").figure.data,
        ("verify_s", "draft_s", "reencode_s", "other_s"),
        strict=True,
    ):
        assert list(trace.y) == [1000 * e[key] for e in rounds(run)]
    candidates, accepted, drafted = chart(run, "drafts-over-answer").figure.data
    assert list(candidates.y) == [e["num_candidates"] for e in rounds(run)]
    assert list(accepted.y) == [e["num_accepted"] for e in rounds(run)]
    assert list(drafted.y) == [n for e in rounds(run) if (n := e["num_draft_tokens"])]


def test_the_measured_point_is_the_decode_speedup() -> None:
    run = run_with()
    shown = chart(run, "what-if")
    point = next(trace for trace in shown.figure.data if trace.name == "measured")
    assert list(point.y) == [run["result"]["decode_speedup"]]
    assert shown.figure.layout.shapes[0].y0 == 1


def test_a_slowdown_is_told_in_the_titles() -> None:
    run = run_with([0, 0, 1, 0, 0, 0, 0, 0], draft_step_s=0.01)
    assert "slower" in chart(run, "tokens-over-time").title
    title = chart(run, "what-if").title
    assert "cannot pay" in title or "no length is predicted to pay" in title
    assert "nothing was accepted" in chart(run, "accepted-per-round").title


def test_what_was_not_recorded_is_left_out() -> None:
    stopped = {"result": {"method": "uag", "assisted": None}, "events": {}, "profile": None}
    assert charts(stopped) == [None] * len(CHARTS)
    note, *components = view.render(stopped)
    assert "nothing to draw" in note
    assert len(components) == 2 * len(CHARTS)
    idle = run_with([None] * 5)
    assert [c.name for c in charts(idle) if c] == ["tokens-over-time", "time-per-round"]
    assert "No candidate was verified" in view.render(idle)[0]
    assert view.render(run_with())[0] == ""


def test_a_recorded_run_fills_every_view() -> None:
    run = load_run(FIXTURE.read_bytes())
    assert all(charts(run))
    assert "Why this speed" in summary.render(run)[0]
    assert json.loads(replay.render(run)[0])["lanes"]


def test_the_csv_holds_all_rows_in_full_precision() -> None:
    run = run_with(ACCEPTED * 60)
    shown = chart(run, "time-per-round")
    markup = data_html(shown)
    encoded = re.search(r"data:text/csv;base64,([^\"]+)", markup)
    assert encoded is not None
    read = list(csv.reader(io.StringIO(base64.b64decode(encoded[1]).decode("utf-8-sig"))))
    assert tuple(read[0]) == shown.head
    assert len(read) == 1 + len(ACCEPTED) * 60
    assert float(read[1][1]) == rounds(run)[0]["verify_s"]
    assert markup.count("<tr>") <= MOST_ROWS + 1
    assert "the CSV holds all 600" in markup


def test_many_rounds_are_areas_of_the_same_numbers() -> None:
    run = run_with([1] * (MOST_BARS + 1))
    verify = chart(run, "time-per-round").figure.data[0]
    assert (verify.type, verify.stackgroup) == ("scatter", "round")
    assert list(verify.y) == [1000 * e["verify_s"] for e in rounds(run)]


def test_odd_numbers_in_a_document_break_nothing() -> None:
    result, events = measured(ACCEPTED, verify_s=0.0, draft_step_s=0.0, host_s=-0.001, ttft_s=9.0)
    run = run_of({**result, "settings": {"width": "wide"}}, events)
    assert all(charts(run))
    assert summary.render({**run, "result": _whole(run["result"])})


def test_hostile_names_stay_text() -> None:
    run = run_with()
    evil = "<img src=x onerror='window.pwned=1'>"
    run["events"][evil] = run["events"]["baseline"]
    shown = chart(run, "tokens-over-time")
    assert "<img" not in data_html(shown)
    assert "<img" not in replay_json(run)
    formula = Chart("n", "t", shown.figure, ("a",), [("=1+1",)])
    assert "'=1+1" in formula.csv()


def test_replay_gives_every_text_back_with_its_times() -> None:
    run = load_run(FIXTURE.read_bytes())
    lanes = {lane["key"]: lane for lane in json.loads(replay_json(run))["lanes"]}
    assert set(lanes) == set(run["events"])
    assert {key for key, lane in lanes.items() if lane["shown"]} == {"uag", "baseline"}
    for engine, events in run["events"].items():
        lane = lanes[engine]
        assert "".join(frame[2] for frame in lane["frames"]) == events[-1]["text"]
        assert lane["end"] == pytest.approx(events[-1]["wall_s"], abs=1e-6)
        assert lane["tokens"] == len(events[-1]["token_ids"])
        times = [frame[0] for frame in lane["frames"]]
        assert times == sorted(times)


def test_tokens_of_a_round_share_a_frame() -> None:
    result, events = measured(ACCEPTED)
    lanes = json.loads(replay_json(run_of(result, events)))["lanes"]
    assert [lane["key"] for lane in lanes] == ["baseline", "uag"]  # as the panels stand
    lane = lanes[1]
    counts = [frame[1] for frame in lane["frames"]]
    sizes = [len(e.tokens) for e in events if isinstance(e, Verified)]
    assert counts[: len(sizes)] == [sum(sizes[: i + 1]) for i in range(len(sizes))]


def test_reasons_are_shown_under_the_verdict() -> None:
    run = run_with([0, 0, 1, 0, 0, 0, 0, 0])
    markup = summary.render({**run, "result": {**_whole(run["result"])}})[0]
    assert markup.index("uag-verdict") < markup.index("Why this speed") < markup.index("<dl")
    assert "Low acceptance" in markup
    assert "Why this speed" not in results_html.results(_whole(run["result"]))


def _whole(result: dict) -> dict:
    return {**result, "target": {}, "assistant": {}, "path": "text"}
