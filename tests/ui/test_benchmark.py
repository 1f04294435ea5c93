"""The Benchmark tab's request, markup, charts and handlers, without a browser."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from tests.ui import fake_bench
from tests.ui.fake_pair import FakePair
from uag_core.benchmark.plan import ALL_METHODS, Plan
from uag_core.benchmark.suites import BenchPrompt
from uag_core.errors import InputError
from uag_core.ui import bench_charts, bench_results
from uag_core.ui.bench_request import (
    MAX_BYTES,
    build_bench_request,
    parse_sweep,
    prompts_of,
    read_upload,
)
from uag_core.ui.benchmark_handlers import BenchmarkHandlers
from uag_core.ui.benchmark_tab import create_benchmark_tab

SESSION = SimpleNamespace(session_hash="s")
HOSTILE = "<script>window.pwned=1</script>&lt; ${x}"


def finished(**changes: Any) -> dict[str, Any]:
    import threading

    prompts = tuple(BenchPrompt(f"p{n}", f"kind {n % 3}", "x") for n in range(9))
    plan = Plan(**{"prompts": prompts, "methods": ALL_METHODS, **changes})
    return list(fake_bench.stream(plan, "fake/fast", threading.Event()))[-1].document


@pytest.fixture
def handlers() -> BenchmarkHandlers:
    with gr.Blocks(analytics_enabled=False):
        return BenchmarkHandlers(create_benchmark_tab(), FakePair)


def form(handlers: BenchmarkHandlers, **changes: Any) -> dict[Any, Any]:
    tab = handlers.tab
    values = {name: component.value for name, component in tab.inputs.items()}
    values |= {"prompts": "One\nTwo", "target": "fake/fast", **changes}
    return {tab.ticket: 0, **{tab.inputs[name]: value for name, value in values.items()}}


# The request


def test_nothing_given_is_one_prompt_of_each_of_the_project_s_kinds() -> None:
    for given in (None, "", "  \n", []):
        found = prompts_of(given, None)
        assert len(found) == len({item.category for item in found}) == 10
    assert len(prompts_of("", 30)) == 30


def test_prompts_may_be_text_lines_objects_or_lists() -> None:
    assert [p.prompt for p in prompts_of("One\nTwo", None)] == ["One", "Two"]
    objects = [{"prompt": "a", "category": "k"}, "b\nwith a line"]
    found = prompts_of(objects, None)
    assert [(p.prompt, p.category) for p in found] == [("a", "k"), ("b\nwith a line", "other")]


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"prompts": 3}, "prompts must be"),
        ({"prompts": [object()]}, "prompts must be"),
        ({"prompts": [3]}, 'no text under "prompt"'),
        ({"prompts": "x" * (MAX_BYTES + 1)}, "more than"),
        ({"prompts": "a\n" * 3000, "repeats": 2}, "runs; at most"),
        ({"methods": ["magic"]}, "Unknown method 'magic'"),
        ({"methods": 7}, "methods must be"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"repeats": 1.5}, "repeats must be a whole number"),
        ({"max_new_tokens": -1}, "max_new_tokens"),
        ({"target": ""}, "target is empty"),
        ({"dtype": "int4"}, "dtype must be one of"),
    ],
)
def test_what_cannot_be_measured_is_one_line(values: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=re.escape(line)):
        build_bench_request({"target": "t", "assistant": "a", "prompts": "x", **values})


def test_an_assistant_is_only_named_where_one_is_used() -> None:
    values = {"prompts": "x", "target": "t", "assistant": "a"}
    assert build_bench_request({**values, "methods": ["lookup"]}).assistant is None
    assert build_bench_request({**values, "methods": ["uag"]}).assistant == "a"


def test_draft_lengths() -> None:
    assert parse_sweep(" ") == (None,)
    assert parse_sweep("0, 2 8,AUTO") == (0, 2, 8, None)
    for typed in ("-1", "65", "two"):
        with pytest.raises(InputError, match="Draft lengths"):
            parse_sweep(typed)


def test_uploads_are_checked(tmp_path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_text('{"prompt": "a"}\n', encoding="utf-8")
    assert read_upload(str(good)) == '{"prompt": "a"}\n'
    for name, data in (("a.exe", b"x"), ("a.txt", b"\xff\xfe"), ("b.txt", b"x" * (MAX_BYTES + 1))):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(InputError):
            read_upload(str(path))


# Markup, charts, downloads


def test_results_say_speedups_with_intervals_and_a_slowdown_as_one() -> None:
    shown = bench_results.headline(finished()) + bench_results.tables(finished())
    assert "UAG + lookup decodes" in shown
    assert "Stopped" not in shown
    assert re.search(r"1\.83× \(1\.\d\d to \d\.\d\d\)", shown)
    assert "transformers, UAG" in shown
    assert "kind 2" in shown
    slow = finished(methods=("transformers_uag",))
    assert 'data-pace="slower"' in bench_results.headline(slow)


def test_hostile_names_are_shown_not_run() -> None:
    prompts = (BenchPrompt(HOSTILE, HOSTILE, "x"), BenchPrompt("b", "other", "y"))
    document = finished(prompts=prompts)
    assert "<script" not in bench_results.headline(document) + bench_results.tables(document)
    figure = bench_charts.kinds_chart(document).to_json()
    assert "<script" not in figure
    assert "\\u003cscript" not in figure


def test_a_table_of_formulas_is_only_text() -> None:
    prompts = (BenchPrompt("=cmd()", '+"a",b', "x"),)
    rows = list(csv.DictReader(io.StringIO(bench_results.as_csv(finished(prompts=prompts)))))
    assert len(rows) == len(ALL_METHODS)
    assert {row["prompt_id"] for row in rows} == {"'=cmd()"}
    assert float(rows[1]["decode_speedup"]) > 0


def test_charts_hold_the_document_s_numbers() -> None:
    document = finished(sweep=(0, 2, 4, None))
    kinds = bench_charts.kinds_chart(document)
    assert [trace.name for trace in kinds.data][:3] == ["UAG", "Prompt lookup", "UAG + lookup"]
    total = document["summary"]["uag"]["decode_speedup"]["geomean"]
    assert total in kinds.data[0].x
    sweep = bench_charts.sweep_chart(document)
    assert list(sweep.data[0].x) == ["0", "2", "4", "auto"]
    assert sweep.data[0].y[0] == document["summary"]["baseline"]["decode_speedup"]["geomean"]
    json.loads(kinds.to_json())


def test_nothing_measured_is_said() -> None:
    empty = {"rows": [], "summary": {}, "categories": {}, "sweep": {}}
    assert "Nothing was measured" in bench_results.headline(empty, stopped=True)
    assert bench_results.downloads(empty) == ""


# Handlers


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"methods": []}, "Choose at least one engine"),
        ({"sweep": "lots"}, "Draft lengths"),
        ({"repeats": "many"}, "Repeats must be a number"),
        ({"prompts": '{"prompt": 1}'}, "no text under"),
        ({"limit": "0"}, "limit must be at least 1"),
    ],
)
def test_bad_input_is_said_before_anything_runs(handlers, changes, line: str) -> None:
    updates = handlers.begin(form(handlers, **changes))
    assert line in updates[handlers.tab.error].replace("&quot;", '"')
    assert handlers.tab.ticket not in updates


def test_a_run_tells_its_progress_and_ends_with_results(handlers) -> None:
    data = form(handlers, prompts="", target="fake/paced")
    assert handlers.begin(data)[handlers.tab.ticket] == 1
    updates = list(handlers.run(data, SESSION))
    tab, last = handlers.tab, updates[-1]
    assert last[tab.results]["visible"]
    assert last[tab.kinds]["visible"]
    assert not last[tab.sweep]["visible"]
    assert last[tab.run]["interactive"]
    assert "Download JSON" in last[tab.downloads]
    assert "Done" in last[tab.status]
    assert any("of 40" in update.get(tab.progress, "") for update in updates)
    assert len(handlers.flags) == 0


def test_a_stop_shows_what_was_measured(handlers) -> None:
    data = form(handlers, target="fake/long", methods=["uag"], prompts="One\nTwo\nThree\nFour")
    stream = handlers.run(data, SESSION)
    for update in stream:
        if "Run 3 of 8" in update.get(handlers.tab.progress, ""):
            break
    handlers.stop({handlers.tab.withdrawn: 0}, SESSION)
    last = list(stream)[-1]
    assert "over 1 prompt. Stopped before the end." in last[handlers.tab.summary]
    assert "Stopped" in last[handlers.tab.status]


def test_a_closed_tab_frees_the_engine(handlers) -> None:
    stream = handlers.run(form(handlers, target="fake/long"), SESSION)
    next(stream)
    next(stream)
    stream.close()
    deadline = time.monotonic() + 5
    while FakePair.active and time.monotonic() < deadline:
        time.sleep(0.01)
    assert FakePair.active == 0


@pytest.mark.parametrize(
    ("target", "line"),
    [("fake/unknown", "no model named"), ("fake/fails", "failed inside the engine (ValueError)")],
)
def test_failures_are_one_line(handlers, target: str, line: str) -> None:
    last = list(handlers.run(form(handlers, target=target), SESSION))[-1]
    assert line in last[handlers.tab.error]
    assert "secret" not in last[handlers.tab.error]
    assert last[handlers.tab.run]["interactive"]


def test_an_upload_fills_the_text_box_and_leaves_no_file(handlers, tmp_path) -> None:
    path = tmp_path / "set.txt"
    path.write_text("One\nTwo\n")
    updates = handlers.upload(str(path))
    assert updates[handlers.tab.prompts] == "One\nTwo\n"
    assert not path.exists()
    bad = tmp_path / "set.jsonl"
    bad.write_text('{"prompt": "a"}\nno')
    assert "Line 2 of set.jsonl is not JSON" in handlers.upload(str(bad))[handlers.tab.error]


# The endpoint and the page


@pytest.fixture(scope="module")
def client(url):
    from gradio_client import Client

    return Client(url, verbose=False)


def test_the_endpoint_streams_progress_and_ends_with_the_result(client) -> None:
    job = client.submit(
        ["One", {"prompt": "Two", "category": "list"}],
        target="fake/fast",
        methods=["uag", "transformers_uag"],
        repeats=2,
        api_name="/benchmark",
    )
    items = list(job)
    assert all(item["status"] == "running" for item in items[:-1])
    result = items[-1]["result"]
    assert items[-1]["status"] == "done"
    assert len(result["rows"]) == 2 * 3 * 2
    assert set(result["summary"]) == {"baseline", "uag", "transformers_uag"}


def test_its_arguments_and_defaults(client) -> None:
    listed = client.view_api(return_format="dict")["named_endpoints"]["/benchmark"]["parameters"]
    assert [item["parameter_name"] for item in listed] == [
        "prompts",
        "target",
        "assistant",
        "methods",
        "max_new_tokens",
        "repeats",
    ]
    assert all(item["parameter_has_default"] for item in listed)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"methods": ["magic"]}, "Unknown method"),
        ({"prompts": [""]}, "no text under"),
        ({"target": "fake/fails"}, "failed inside the engine"),
    ],
)
def test_errors_of_the_endpoint_are_one_line(client, arguments, line: str) -> None:
    with pytest.raises(Exception, match=line) as caught:
        client.predict(**{"prompts": "a\nb", **arguments}, api_name="/benchmark")
    assert "secret" not in str(caught.value)


@pytest.fixture
def open_tab(url, browser):
    """Opens the tab in a window of some size; whatever happens, no window outlives its test."""
    pages = []

    def opened(width: int, height: int):
        page = browser.new_page(viewport={"width": width, "height": height})
        pages.append(page)
        page.set_default_timeout(20_000)
        page.goto(url)
        page.get_by_role("tab", name="Benchmark").click()
        return page

    yield opened
    for page in pages:
        page.close()


@pytest.mark.browser
def test_the_tab_in_a_browser(open_tab) -> None:
    page = open_tab(1400, 900)
    page.fill("#bench-target input", "fake/fast")
    page.press("#bench-target input", "Enter")
    page.click("#bench-more button")
    page.fill("#bench-sweep-lengths :is(input, textarea)", "0, 2, 4, auto")
    page.click("#bench-run")
    page.wait_for_selector("#bench-summary .uag-number")
    page.wait_for_selector("#bench-kinds .scatterlayer .point")
    page.wait_for_selector("#bench-sweep .scatterlayer .point")
    assert "10 prompts" in page.inner_text("#bench-summary")
    with page.expect_download() as download:
        page.click("#bench-downloads a >> nth=1")
    assert download.value.suggested_filename == "uag-bench.csv"
    page.fill("#bench-target input", "fake/long")
    page.press("#bench-target input", "Enter")
    page.click("#bench-run")
    # A busy machine may not get to draw the second: any later one says the same.
    page.locator("#bench-progress", has_text=re.compile(r"Run ([2-9]|\d\d+) of")).wait_for()
    page.click("#bench-stop")
    page.wait_for_selector("#uag-bench-status-text:has-text('Stopped')")
    page.wait_for_selector("#bench-run:not([disabled])")


@pytest.mark.browser
def test_on_a_phone_nothing_scrolls_sideways(open_tab) -> None:
    page = open_tab(390, 844)
    page.fill("#bench-target input", "fake/fast")
    page.press("#bench-target input", "Enter")
    page.click("#bench-run")
    page.wait_for_selector("#bench-kinds .scatterlayer .point")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for name in ("#bench-kinds", "#bench-summary", "#bench-actions", "#bench-ask"):
        box = page.locator(name).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
