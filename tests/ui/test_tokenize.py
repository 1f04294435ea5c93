"""The Tokenize tab in a browser, and `/tokenize` as a client uses it."""

from __future__ import annotations

import json

import pytest
from gradio_client import Client
from hypothesis import given

from tests.fixtures.strategies import texts
from tests.ui.fake_pair import HOSTILE, FakePair
from tests.ui.tokenizers_here import get
from uag_core.tokenization.side_by_side import side_by_side
from uag_core.ui.build import build_demo
from uag_core.ui.theme import launch_options
from uag_core.ui.tokenize_json import MAX_DRAWN, drawing_json, summary_html

VIEW = "#tokenize-drawing .uag-drawing"
TEXT = "#tokenize-text textarea"


def found(text: str) -> dict:
    return side_by_side(text, get("embedded/target"), get("embedded/assistant"))


@given(text=texts)
def test_the_drawing_holds_the_text_in_both_rows(text) -> None:
    data = json.loads(drawing_json(found(text)))
    for row in ("upper", "lower"):
        raw = b"".join(t[1].encode("utf-8", "surrogateescape") for t in data[row])
        if row == "lower":
            assert raw == text.encode()
        else:  # SentencePiece cannot tell a metaspace from a space
            assert raw == text.replace("▁", " ").encode()


def test_a_long_text_is_counted_in_full_and_drawn_in_part() -> None:
    shown = json.loads(drawing_json(found("word " * 2_000)))
    assert sum(len(t[1]) for t in shown["lower"]) <= MAX_DRAWN
    assert "first" in shown["note"]
    assert "Tokens of this text" in summary_html(found("word " * 2_000))


def test_tables_escape_what_somebody_typed() -> None:
    html = summary_html(side_by_side(HOSTILE * 2, get("wordpiece"), get("unigram_nfkc")))
    assert "<script" not in html
    assert "<img" not in html
    assert "What the target does not give back" in html


@pytest.fixture(scope="module")
def address():
    demo = build_demo(FakePair, get_tokenizer=get)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    yield url
    demo.close(verbose=False)


@pytest.fixture(scope="module")
def client(address):
    return Client(address, verbose=False)


def test_the_endpoint_answers_by_name_with_plain_json(client) -> None:
    answer = client.predict("Hello wörld", api_name="/tokenize")
    assert answer == json.loads(json.dumps(found("Hello wörld")))
    assert answer["target"]["name"] == "byte_level_a"
    other = client.predict("Hello", target="wordpiece", api_name="/tokenize")
    assert other["target"]["round_trip"]["losses"][0]["reason"] == "normaliser"


def test_the_endpoint_is_documented_with_its_arguments(client) -> None:
    listed = client.view_api(return_format="dict")["named_endpoints"]["/tokenize"]
    names = [item["parameter_name"] for item in listed["parameters"]]
    assert names == ["text", "target", "assistant"]
    assert listed["parameters"][1]["parameter_default"] == "embedded/target"
    assert listed["returns"][0]["type"]["type"] == "object"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"text": "x" * 20_001}, "at most 20,000"),
        ({"text": "x", "target": "no/such"}, "There is no model named"),
    ],
)
def test_bad_input_is_one_line(client, arguments, line) -> None:
    with pytest.raises(Exception, match=line) as caught:
        client.predict(**arguments, api_name="/tokenize")
    assert "\n" not in str(caught.value)


@pytest.mark.browser
def test_the_tab_answers_while_somebody_types(address, browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(30_000)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    page.click("#tabs button[role=tab]:has-text('Tokenize')")
    page.wait_for_selector(f"{VIEW} .uag-token")
    page.fill(TEXT, "")
    page.locator(TEXT).press_sequentially("x <b>y</b>  z")
    joined = "s => [...document.querySelectorAll(s)].map(e => e.textContent).join('')"
    below = f"{VIEW} .uag-line .uag-row:last-child .uag-token"
    page.wait_for_function(f"s => ({joined})(s) === 'x·<b>y</b>··z'", arg=below)
    assert page.locator(f"{VIEW} b").count() == 0
    assert page.inner_text("#tokenize-error").strip() == ""
    page.locator(below).first.focus()
    detail = page.inner_text(f"{VIEW} .uag-detail")
    for word in ("Target token 1", "id", "bytes", "78"):
        assert word in detail
    page.keyboard.press("ArrowRight")
    assert "Target token 2" in page.inner_text(f"{VIEW} .uag-detail")
    page.keyboard.press("ArrowUp")
    assert "Assistant token" in page.inner_text(f"{VIEW} .uag-detail")
    page.fill(TEXT, HOSTILE * 6)
    page.wait_for_function(f"document.querySelectorAll('{VIEW} .uag-line').length > 3")
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for name in (VIEW, "#tokenize-summary .uag-table", "#tokenize-summary .uag-note"):
        box = page.locator(name).first.bounding_box()
        assert box["x"] + box["width"] <= 390
    page.fill(TEXT, "y" * 20_001)
    page.wait_for_selector("#tokenize-error :text('at most 20,000')")
    page.fill(TEXT, "fine again")
    page.wait_for_selector("#tokenize-error .uag-error", state="detached")
    assert faults == []
    page.close()
