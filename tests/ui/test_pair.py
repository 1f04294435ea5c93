"""The Pair tab and `/inspect_pair`, on folders without weights."""

from __future__ import annotations

import pytest
from gradio_client import Client

from tests.fixtures.folders import outline_folder
from uag_core.inspection import inspect_pair
from uag_core.ui.pair_html import report_html, size

HOSTILE = "<img src=x onerror='window.pwned=1'>"


@pytest.fixture(scope="module")
def names(tmp_path_factory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("pair")
    left = outline_folder(root / "left", "byte_level_a", hidden_size=128)
    return left, outline_folder(root / "right", "wordpiece")


@pytest.fixture(scope="module")
def client(url):
    return Client(url, verbose=False)


def test_the_endpoint_gives_the_report(client, names) -> None:
    left, right = names
    report = client.predict(left, right, "The river runs.", api_name="/inspect_pair")
    assert report["method"]["path"] == "text"
    assert report["text"]["characters"] == 15
    assert report["verdict"]["level"] == "works"


def test_the_endpoint_is_documented(client) -> None:
    listed = client.view_api(return_format="dict")["named_endpoints"]["/inspect_pair"]
    assert [p["parameter_name"] for p in listed["parameters"]] == ["target", "assistant", "text"]
    assert listed["parameters"][0]["parameter_default"] == "embedded/target"
    assert listed["returns"][0]["type"]["type"] == "object"


def test_an_error_of_the_endpoint_is_one_line(client, names) -> None:
    with pytest.raises(Exception, match="no embedded model") as caught:
        client.predict("embedded/nothing", names[1], None, api_name="/inspect_pair")
    assert "Traceback" not in str(caught.value)


def test_the_report_is_escaped(names) -> None:
    report = inspect_pair(*names)
    report["control_tokens"]["target"]["eos"]["token"] = HOSTILE
    report["target"]["id"] = HOSTILE
    report["hazards"]["target"].append(
        {"kind": HOSTILE, "level": HOSTILE, "what": HOSTILE, "example": HOSTILE}
    )
    page = report_html(report)
    assert "<img" not in page
    assert page.count("&lt;img") == 5


@pytest.mark.parametrize(
    ("count", "shown"), [(None, "–"), (999, "999"), (134_515_008, "135M"), (7_241_732_096, "7.24B")]
)
def test_sizes_are_written_as_people_write_them(count, shown) -> None:
    assert size(count) == shown


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 390])
def test_the_tab_shows_verdict_hazards_and_tables(url, browser, names, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(20_000)
    page.goto(url)
    page.click("button[role=tab]:has-text('Pair')")
    for name, value in zip(("target", "assistant"), names, strict=True):
        page.fill(f"#pair-{name} input", value)
        page.press(f"#pair-{name} input", "Enter")
    page.fill("#pair-text textarea", "The river runs.")
    page.click("#pair-inspect")
    page.wait_for_selector("#pair-report .uag-verdict")
    assert "Works through text" in page.inner_text("#pair-report .uag-verdict")
    assert "capitals" in page.inner_text("#pair-report")
    assert page.locator("#pair-report table").count() == 5
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.fill("#pair-target input", "embedded/nothing")
    page.press("#pair-target input", "Enter")
    page.click("#pair-inspect")
    page.wait_for_selector("#pair-error .uag-error")
    assert page.locator("#pair-report .uag-verdict").count() == 0
    page.close()
