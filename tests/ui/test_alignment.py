"""The Alignment view: its JSON, and the drawing in a real browser."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given

from tests.fixtures.strategies import any_bytes, some_text
from tests.ui.rounds_pair import ENDING, PROSE, TEXTS, RoundsPair, rounds_of
from uag_core.events import to_json
from uag_core.ui.alignment_json import ORIGINS, alignment_json, compact, label
from uag_core.ui.build import build_demo
from uag_core.ui.theme import launch_options
from uag_core.ui.views import VIEWS, alignment

VIEW = "#alignment .uag-drawing"
NEXT = f"{VIEW} button[aria-label='Next round']"


def run_of(text: str) -> dict:
    events = [to_json(event) for event in rounds_of(text)]
    return {"result": {"method": "uag"}, "events": {"uag": events}}


def texts(data: dict) -> tuple[str, bytes]:
    """The text that the view shows, and the bytes of its committed tokens."""
    tokens = [token for shown in data["rounds"] for token in shown["e"]]
    raw = b"".join(t[1].encode("utf-8", "surrogateescape") for t in tokens if not t[5])
    return "".join(token[6] for token in tokens), raw


@given(text=some_text)
def test_the_view_holds_the_text_byte_for_byte(text) -> None:
    data = json.loads(alignment_json(run_of(text)))
    assert texts(data) == (text, text.encode())


@pytest.mark.parametrize("name", TEXTS)
def test_every_origin_and_fate_is_told(name) -> None:
    data = json.loads(alignment_json(run_of(TEXTS[name] * 4)))
    origins = {ORIGINS[token[4]] for shown in data["rounds"] for token in shown["e"]}
    assert origins == set(ORIGINS)
    assert {token[5] for shown in data["rounds"] for token in shown["c"]} == {0, 1, 2}


@given(data=any_bytes)
def test_a_label_gives_its_bytes_back(data) -> None:
    assert json.loads(compact(label(data))).encode("utf-8", "surrogateescape") == data


def test_the_json_cannot_become_markup() -> None:
    shown = alignment_json(run_of(TEXTS["fake/hostile"]))
    assert shown.isascii()
    assert not set("<>&") & set(shown)


def test_a_run_without_assisted_events_has_no_rounds() -> None:
    for run in ({"result": {"method": "uag"}, "events": {}}, {"result": {}, "events": {}}):
        assert json.loads(alignment_json(run))["rounds"] == []


def test_the_view_is_one_of_the_page() -> None:
    assert alignment in VIEWS
    assert len(alignment.render(run_of(PROSE))) == 1


# In the browser


@pytest.fixture(scope="module")
def address():
    demo = build_demo(RoundsPair)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    yield url
    demo.close(verbose=False)


@pytest.fixture(scope="module")
def open_view(address, browser):
    """Opens the page, runs, and opens the view; a page is kept for the tests that follow."""
    pages = {}

    def opened(target: str = "fake/prose"):
        if target not in pages:
            pages[target] = page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.set_default_timeout(20_000)
            page.faults = []
            page.on("pageerror", lambda error: page.faults.append(str(error)))
            page.goto(f"{address}?__theme=light")
            page.wait_for_selector("#assisted .uag-panel")
            page.fill("#target input", target)
            page.press("#target input", "Enter")
            page.fill("#prompt textarea", "Go")
            page.click("#run")
            page.wait_for_selector("#results .uag-number")
            page.click("#views button[role=tab]:has-text('Alignment')")
            page.wait_for_selector(f"{VIEW} .uag-token")
            assert heading(page).startswith("Round 1 of")
        page = pages[target]
        page.focus(f"{VIEW} .uag-stage")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        return page

    yield opened
    for page in pages.values():
        assert page.faults == []
        page.close()


def heading(page) -> str:
    return page.inner_text(f"{VIEW} .uag-round h3")


@pytest.mark.browser
def test_arrow_keys_step_through_the_rounds(open_view) -> None:
    page = open_view()
    assert heading(page).startswith("Round 1 of")
    page.focus(f"{VIEW} .uag-stage")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert heading(page).startswith("Round 3 of")
    page.keyboard.press("ArrowLeft")
    assert heading(page).startswith("Round 2 of")
    page.keyboard.press("Home")
    assert heading(page).startswith("Round 0 of")
    assert "read the prompt" in page.inner_text(f"{VIEW} .uag-say")
    assert page.is_disabled(f"{VIEW} button[aria-label='Previous round']")
    page.focus(f"{VIEW} .uag-slider")
    page.keyboard.press("ArrowRight")
    assert heading(page).startswith("Round 1 of")


@pytest.mark.browser
def test_play_goes_on_by_itself_and_pauses(open_view) -> None:
    page = open_view()
    page.click(f"{VIEW} .uag-play")
    later = re.compile(r"Round ([3-9]|\d\d+) of")  # a busy machine may not draw the third
    page.locator(f"{VIEW} .uag-round h3", has_text=later).wait_for()
    page.click(f"{VIEW} .uag-play")
    assert page.inner_text(f"{VIEW} .uag-play") == "Play"
    stopped = heading(page)
    page.wait_for_timeout(1500)
    assert heading(page) == stopped


@pytest.mark.browser
def test_a_token_tells_about_itself_and_shows_its_partners(open_view) -> None:
    page = open_view()
    token = page.locator(f"{VIEW} .uag-row.is-draft .uag-token").first
    token.hover()
    detail = page.inner_text(f"{VIEW} .uag-detail")
    for word in ("Draft token 1", "id", "bytes", "round", "position", "confidence"):
        assert word in detail
    assert page.locator(f"{VIEW} .uag-row.is-candidates .uag-token.is-partner").count() >= 1
    assert page.locator(f"{VIEW} .uag-link.is-partner").count() >= 1
    page.focus(f"{VIEW} .uag-row.is-candidates .uag-token >> nth=0")
    detail = page.inner_text(f"{VIEW} .uag-detail")
    assert "Candidate 1" in detail
    assert "accepted" in detail
    assert page.locator(f"{VIEW} .uag-row.is-draft .uag-token.is-partner").count() >= 1


@pytest.mark.browser
def test_boxes_of_equal_bytes_lie_below_each_other(open_view) -> None:
    page = open_view()
    script = """view => {
      const tokens = [...document.querySelectorAll(view + ' .uag-token')];
      const span = e => [e.offsetLeft, e.offsetLeft + e.offsetWidth];
      const rows = ['is-draft', 'is-candidates'].map(r => tokens
        .filter(e => e.parentElement.classList.contains(r)).map(span));
      const gaps = rows.flatMap(r => r.slice(1).map(([s], i) => s - r[i][1]));
      return [rows.map(r => [r[0][0], r[r.length - 1][1]]), Math.min(...gaps)];
    }"""
    (draft, candidates), gap = page.evaluate(script, VIEW)
    assert draft == candidates  # this round's draft was re-encoded in full
    assert gap >= 0


@pytest.mark.browser
def test_a_corrected_token_is_not_cut_where_others_end(open_view) -> None:
    page = open_view()
    token = f"{VIEW} .uag-row.is-committed .uag-token[data-origin=corrected]"
    for _ in range(40):
        if page.locator(token).count():
            assert page.locator(f"{token} .uag-piece").count() == 1
            inside = "e => e.scrollWidth <= e.clientWidth + 1"
            assert page.locator(token).evaluate(inside)
        page.keyboard.press("ArrowRight")


@pytest.mark.browser
def test_a_stretch_of_the_answer_opens_its_round(open_view) -> None:
    page = open_view()
    stretch = page.locator(f"{VIEW} .uag-stretch[data-origin=bonus]").nth(1)
    wanted = stretch.get_attribute("aria-label").split(",")[0]
    stretch.click()
    assert heading(page).startswith(wanted)
    page.keyboard.press("Tab")  # back to the answer's one stop
    page.focus(f"{VIEW} .uag-stretch[tabindex='0']")
    page.keyboard.press("ArrowRight")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")
    assert heading(page).startswith(label.split(",")[0])


@pytest.mark.browser
@pytest.mark.parametrize("name", ["fake/prose", "fake/hostile"])
def test_the_answer_is_shown_byte_for_byte_and_nothing_in_it_runs(open_view, name) -> None:
    page = open_view(name)
    assert (
        page.evaluate(f"document.querySelector('{VIEW} .uag-origin-text').textContent")
        == (TEXTS[name])
    )
    panel = page.text_content("#assisted .uag-text")  # which spells controls out
    assert panel == TEXTS[name].replace("\x07", "\\x07")
    while not page.is_disabled(NEXT):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("window.pwned") is None
    assert page.locator(f"{VIEW} :is(script, img, b:not(.uag-fact b))").count() == 0
    ending = page.locator(f"{VIEW} .uag-stretch").last
    assert ending.get_attribute("data-control") == ENDING


@pytest.mark.browser
def test_a_page_that_moves_under_a_resting_pointer_chooses_no_token(open_view) -> None:
    page = open_view()
    second = page.locator(f"{VIEW} .uag-token").nth(1)
    second.scroll_into_view_if_needed()
    box = second.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] - 200 + box["height"] / 2)
    page.focus(f"{VIEW} .uag-token >> nth=0")
    page.evaluate("document.body.style.transform = 'translateY(-200px)'")
    page.wait_for_function(f"document.querySelectorAll('{VIEW} .uag-token')[1].matches(':hover')")
    assert "Draft token 1" in page.inner_text(f"{VIEW} .uag-detail")
    second.hover(position={"x": 2, "y": 2})
    assert "Draft token 2" in page.inner_text(f"{VIEW} .uag-detail")
    page.evaluate("document.body.style.transform = ''")


@pytest.mark.browser
def test_the_table_says_what_the_drawing_says(open_view) -> None:
    page = open_view()
    page.click(f"{VIEW} .uag-round-table summary")
    page.wait_for_selector(f"{VIEW} .uag-round-table td")
    rows = page.locator(f"{VIEW} .uag-round-table tbody tr")
    assert rows.count() == page.locator(f"{VIEW} .uag-token").count()
    assert "rejected" in page.inner_text(f"{VIEW} .uag-round-table")


@pytest.mark.browser
def test_whitespace_and_unfinished_characters_are_visible(open_view) -> None:
    page = open_view()
    seen = ""
    while not page.is_disabled(NEXT):
        seen += page.inner_text(f"{VIEW} .uag-axis")
        page.click(NEXT)
    for mark in ("·", "⏎", "→", "E4", "U+0007"):
        assert mark in seen
    assert "\ufffd" not in seen


@pytest.mark.browser
def test_the_theme_changes_the_colours_of_origins(open_view) -> None:
    page = open_view()
    script = f"getComputedStyle(document.querySelector('{VIEW} .uag-stretch[data-origin=bonus]'))"
    light = page.evaluate(f"{script}.borderBottomColor")
    page.evaluate("document.body.classList.toggle('dark')")
    assert page.evaluate(f"{script}.borderBottomColor") != light
    page.evaluate("document.body.classList.toggle('dark')")
    assert page.evaluate(f"{script}.borderBottomColor") == light


@pytest.mark.browser
def test_in_a_frame_on_a_phone_only_the_view_scrolls(address, browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content(
        "<body style='margin:0'>"
        f'<iframe src="{address}?__theme=dark" width="390" height="840" style="border:0"></iframe>'
    )
    page.wait_for_selector("iframe")
    frame = page.frame_locator("iframe")
    frame.locator("#target input").fill("fake/prose")
    frame.locator("#prompt textarea").fill("Go")
    frame.locator("#run").click()
    frame.locator("#results .uag-number").wait_for(timeout=30_000)
    frame.locator("#views button[role=tab]:has-text('Alignment')").click()
    frame.locator(f"{VIEW} .uag-token").first.focus()
    assert "Draft token 1" in frame.locator(f"{VIEW} .uag-detail").inner_text()
    box = frame.locator(VIEW).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    sizes = frame.locator(VIEW).evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert sizes[0] <= sizes[1]
    assert frame.locator("body").evaluate("e => e.ownerDocument.documentElement.scrollWidth") <= 390
    page.close()
