"""Every view of every kind of run: its texts are the outputs, its numbers the document's own."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from typing import Any

import pytest

from benchmarks.views import long_run
from tests.fixtures.models import tiny
from tests.runs.make import FIXTURE, compared
from uag_core.benchmark.compare import CompareDone
from uag_core.config import AssistantConfig, GenerationSettings
from uag_core.pair import ModelPair
from uag_core.runs.document import build_run, dump_run, load_run
from uag_core.runs.library import SHIPPED
from uag_core.ui import charts as drawing
from uag_core.ui.charts import charts
from uag_core.ui.verdict import milliseconds, one_plain
from uag_core.ui.views import VIEWS, alignment, replay, summary

REPEATING = "a b c a b c a b c a b c a b c a b"
ASKED_FOR = (3, 60, 150, 200, 260)  # how often a run looks at its flag before it is set


class Flag:
    """Set once it has been looked at `most` times."""

    def __init__(self, most: int) -> None:
        self.left = most

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def _lookup(method: str, prompt: str, count: int) -> dict[str, Any]:
    assistant = None if method == "lookup" else tiny("byte_level_b", seed=1)
    pair = ModelPair.from_models(tiny("byte_level_a"), assistant)
    settings = GenerationSettings(max_new_tokens=count)
    *_, done = pair.compare_stream(prompt, settings, AssistantConfig(method=method), raw=True)
    assert isinstance(done, CompareDone)
    _, request = compared(max_new_tokens=1, references=(), repeats=1)
    return build_run(done, {**request, "method": method, "references": []})


@cache
def _made(kind: str) -> str:
    """A run document as JSON: shipped, an old file, stopped somewhere, or of another method."""
    name, _, rest = kind.partition(" ")
    if name == "shipped":
        return (SHIPPED / f"{rest}.json").read_text(encoding="utf-8")
    if name == "fixture":
        return FIXTURE.read_text(encoding="utf-8")
    if name == "long":
        return dump_run(long_run(int(rest)))
    if name == "stopped":
        done, request = compared(
            cancel=Flag(int(rest)), max_new_tokens=60, references=(), repeats=1
        )
        return dump_run(build_run(done, request))
    if name == "tokens":
        done, request = compared(max_new_tokens=int(rest), references=(), repeats=1)
        return dump_run(build_run(done, request))
    return dump_run(_lookup(name, REPEATING, 24))


SHIPPED_NAMES = [f"shipped {path.stem}" for path in sorted(SHIPPED.glob("*.json"))]
WHOLE = [*SHIPPED_NAMES, "fixture", "long 300", "lookup", "uag+lookup"]
BROKEN = ["tokens 0", "tokens 1", *(f"stopped {count}" for count in ASKED_FOR)]


def run_of(kind: str) -> dict[str, Any]:
    return load_run(_made(kind))


def numbers(value: Any) -> set[float]:
    """Every number that a document holds, booleans aside."""
    if isinstance(value, dict):
        return set().union(*map(numbers, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(numbers, value)) if value else set()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {float(value)} if is_number else set()


@pytest.mark.parametrize("kind", [*WHOLE, *BROKEN])
def test_every_view_takes_every_run(kind: str) -> None:
    run = run_of(kind)
    for view in VIEWS:
        assert view.render(run)
    for text in (*alignment.render(run), *replay.render(run)):
        assert json.loads(text)
        assert text.isascii()
        assert not set("<>&") & set(text)


@pytest.mark.parametrize("kind", [*WHOLE, *BROKEN])
def test_the_tokens_of_the_views_give_the_outputs_back(kind: str) -> None:
    run = run_of(kind)
    method = run["result"]["method"]
    rounds = json.loads(alignment.render(run)[0])["rounds"]
    tokens = [token for shown in rounds for token in shown["e"]]
    if events := run["events"].get(method):
        output, ids = events[-1]["text"], events[-1]["token_ids"]
        raw = b"".join(t[1].encode("utf-8", "surrogateescape") for t in tokens if not t[5])
        assert "".join(token[6] for token in tokens) == output
        assert raw.decode("utf-8", "replace") == output
        assert [token[0] for token in tokens] == ids
    else:
        assert tokens == []
    lanes = json.loads(replay.render(run)[0])["lanes"]
    for lane in lanes:
        written = "".join(frame[2] for frame in lane["frames"])
        assert written == run["events"][lane["key"]][-1]["text"]


@pytest.mark.parametrize("kind", WHOLE)
def test_every_number_of_the_bars_and_lines_is_in_the_document(kind: str) -> None:
    run = run_of(kind)
    known = numbers(run)
    for chart in charts(run):
        if chart is None or chart.name == "what-if":  # predictions; its own test is elsewhere
            continue
        for trace in chart.figure.data:
            scale = 1000 if chart.name == "time-per-round" else 1
            assert all(value / scale in known or value == 0 for value in trace.y), chart.name
            if chart.name == "tokens-over-time":
                assert set(trace.x) <= known
    shown = {name: value for name, _, value in drawing.speedups(run["result"])}
    own = {k: run["result"][k] for k in ("decode_speedup", "wall_speedup")}
    assert set(own.values()) - {None} <= set(shown.values())


@pytest.mark.parametrize("kind", WHOLE)
def test_tables_and_downloads_hold_what_is_drawn(kind: str) -> None:
    for chart in [*charts(run_of(kind)), drawing.speedup(run_of(kind)["result"])]:
        if chart is None:
            continue
        head, *rows = csv.reader(io.StringIO(chart.csv()))
        assert tuple(head) == chart.head
        assert [tuple(row) for row in rows] == [
            tuple("" if cell is None else str(cell) for cell in row) for row in chart.rows
        ]
        told = {float(c) for row in chart.rows for c in row if isinstance(c, int | float)}
        scale = 1000 if chart.name == "time-per-round" else 1
        for trace in chart.figure.data:
            values = trace.x if trace.orientation == "h" else trace.y
            if trace.name != "measured":
                assert all(value / scale in told for value in values), chart.name


def test_one_plain_decoding_is_told_once() -> None:
    run = run_of("fixture")
    assert one_plain(run["result"])  # float32 is not padded
    markup = summary.render(run)[0]
    assert "Plain decoding" in markup
    assert "same shapes" not in markup
    assert drawing.speedups(run["result"])[0][0] == "Plain decoding"
    padded = run_of("shipped code")
    assert not one_plain(padded["result"])
    assert "Plain, same shapes" in summary.render(padded)[0]


def test_titles_name_the_one_plain_decoding_and_write_large_numbers_out() -> None:
    title = charts(run_of("fixture"))[0].title
    assert "same shapes" not in title
    assert "of the same shapes" in charts(run_of("shipped code"))[0].title
    assert "2,000 tokens" in charts(run_of("long 2000"))[0].title


def test_drafts_that_always_pay_have_no_share_to_reach() -> None:
    run = run_of("shipped code")
    for event in run["events"]["uag"]:
        if event["type"] in ("Verified", "Drafted"):
            event |= {name: 1e-6 for name in event if name.endswith("_s")}
    what_if = next(c for c in charts(run) if c is not None and c.name == "what-if")
    assert "pay whatever is accepted" in what_if.title


def test_a_lookup_has_no_assistant_in_its_words() -> None:
    run = run_of("lookup")
    shown = " ".join(c.note for c in charts(run) if c) + summary.render(run)[0]
    assert "the assistant proposes" not in shown
    assert "assistant's reading" not in shown
    assert "the text so far proposes" in shown


def test_a_run_without_numbers_shows_no_empty_table() -> None:
    run = run_of("stopped 3")
    markup, _, table, _ = summary.render(run)
    assert table == ""
    assert "No decode speedup was measured" in markup
    assert "no candidates" in markup


def test_a_stopped_run_says_up_to_where_its_speed_goes() -> None:
    run = run_of("stopped 260")
    assert run["result"]["assisted"]["finish_reason"] == "cancelled"
    assert "until it was stopped" in summary.render(run)[0]


def test_a_lookup_is_not_told_to_change_its_assistant() -> None:
    run = run_of("lookup")
    run["result"]["decode_speedup"] = 0.5
    markup = summary.render(run)[0]
    assert "no assistant" in markup
    assert "Most worth changing: the assistant" not in markup


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "–"), (0, "0 ms"), (1.2345, "1,234 ms"), (0.0123, "12 ms"), (0.0042, "4.2 ms")],
)
def test_short_times_keep_their_digits(seconds: float | None, shown: str) -> None:
    assert milliseconds(seconds) == shown
