"""Finding and choosing models in the page, and the endpoint behind it."""

from __future__ import annotations

import json
import re

import gradio as gr
import pytest
from gradio_client import Client

from uag_core.errors import InputError, NetworkError
from uag_core.models import catalogue
from uag_core.ui import build, model_field, model_picker
from uag_core.ui.compare_tab import create_compare_tab
from uag_core.ui.handlers import CompareHandlers

BEHIND = """e => {
  let colour = () => getComputedStyle(e).backgroundColor;
  while (e.parentElement && colour() === 'rgba(0, 0, 0, 0)') e = e.parentElement;
  return colour();
}"""
HOSTILE = "<img src=x onerror=alert(1)>"


def test_what_is_found_becomes_choices() -> None:
    entry = {"id": "o/n", "parameters": 10**9, "licence": "mit", "likes": 7, "gated": True}
    entry |= {"fits": False, "cached": True}
    update, notice, names = model_picker.search_models(
        "n", lambda query, limit: {"models": [entry], "notice": None}
    )
    assert names == ["o/n"]
    ((label, value),) = update["choices"]
    assert value == "o/n"
    for part in ("1.0 B", "mit", "♥ 7", "gated", "too big here", "on disk"):
        assert part in label
    assert notice == ""


@pytest.mark.parametrize("message", ["The Hub is out of reach", HOSTILE])
def test_an_error_is_a_quiet_line(message: str) -> None:
    def fail(query: str, limit: int) -> None:
        raise NetworkError(message)

    update, notice, names = model_picker.search_models("n", fail)
    assert update["choices"] == names == []
    assert "<img" not in notice
    assert message.split("<")[0] in notice


def test_the_plan_of_a_pair_is_escaped_and_honest() -> None:
    html = model_picker.plan_models("embedded/nothing", HOSTILE, "auto", "cpu")
    assert "There is no embedded model" in html
    assert "<img" not in html
    assert html.count('data-kind="bad"') == 2
    assert model_picker.plan_models("", None, None, None) == ""


def test_the_endpoint(url) -> None:
    client = Client(url, verbose=False)
    found = client.predict("embedded", 5, api_name="/list_models")
    assert {model["id"] for model in found["models"]} == {"embedded/target", "embedded/assistant"}
    assert found["source"] == "cache"
    assert "out of reach" in found["notice"]
    assert any(preset["original"] for preset in found["presets"])
    with pytest.raises(Exception, match="limit must be between 1 and 50"):
        client.predict("", 0, api_name="/list_models")


def test_a_visitors_token_goes_to_the_pair_and_nowhere_else(monkeypatch) -> None:
    given = []

    def make_pair(*args: object, token: str | None = None, **options: object):
        given.append(token)
        raise InputError("not today")

    with gr.Blocks(analytics_enabled=False):
        handlers = CompareHandlers(create_compare_tab(), make_pair)
    tab = handlers.tab
    values = {name: component.value for name, component in tab.inputs.items()}
    values |= {"prompt": "Hello", "max_new_tokens": "4"}
    data = {tab.inputs[name]: value for name, value in values.items()}
    login = gr.OAuthToken(token="hf_marker", scope="", expires_at=0)
    updates = list(handlers.run(data, None, login))  # type: ignore[arg-type]
    assert given == ["hf_marker"]
    assert "hf_marker" not in str(updates)
    list(handlers.run(data, None))  # type: ignore[arg-type]
    assert given == ["hf_marker", None]


@pytest.mark.parametrize(
    ("environment", "there"),
    [
        ({}, False),
        ({"UAG_HOSTED": "1", "OAUTH_CLIENT_ID": "x"}, False),
        ({"SPACE_ID": "o/space"}, False),
        ({"SPACE_ID": "o/space", "OAUTH_CLIENT_ID": "x"}, True),
    ],
)
def test_visitors_log_in_only_on_a_space_with_logins(monkeypatch, environment, there) -> None:
    for name in ("SPACE_ID", "OAUTH_CLIENT_ID", "UAG_HOSTED"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(build, "find_spec", lambda name: True)
    assert build.has_login() is there
    monkeypatch.setattr(build, "find_spec", lambda name: None)
    assert not build.has_login()


def test_the_fields_offer_presets_and_what_was_found(monkeypatch) -> None:
    offered = model_field.offer("assistant", ["o/n", "Qwen/Qwen2-0.5B-Instruct"])["choices"]
    assert offered[:3] == ["o/n", "Qwen/Qwen2-0.5B-Instruct", "embedded/assistant"]
    assert "bigcode/tiny_starcoder_py" in offered
    assert len(set(offered)) == len(offered)
    monkeypatch.setenv("UAG_ALLOWED_MODELS", "Qwen/*")
    assert model_field.known("target") == ["embedded/target"]  # no pair of Qwen models alone


@pytest.fixture
def page(url, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(15_000)
    page.goto(url)
    page.wait_for_selector("#assisted .uag-panel")
    yield page
    page.close()


@pytest.mark.browser
def test_search_and_choose(page) -> None:
    page.click("#picker button:has-text('Find models')")
    page.wait_for_selector("#found label:has-text('embedded/target')")  # before anything is typed
    page.type("#model-query :is(input, textarea)", "embedded")
    page.wait_for_selector("#picker-notice:has-text('out of reach')")
    page.wait_for_selector("#found label:has-text('embedded/assistant')")
    page.click("#found label:has-text('embedded/assistant')")
    page.wait_for_function("document.querySelector('#target input').value.includes('assistant')")
    page.wait_for_selector("#plan .uag-plan li")
    assert "19 M parameters" in page.inner_text("#plan")
    page.click("#role label:has-text('Assistant')")
    page.wait_for_function("!document.querySelector('#found input:checked')")
    page.click("#found label:has-text('embedded/target')")
    page.wait_for_function("document.querySelector('#assistant input').value.includes('target')")


@pytest.mark.browser
def test_what_was_found_is_offered_in_every_tab(page) -> None:
    """Even the assistant's name as a target: whoever searches may want anything."""
    page.click("#picker button:has-text('Find models')")
    page.type("#model-query :is(input, textarea)", "embedded")
    page.wait_for_selector("#found label:has-text('embedded/assistant')")
    for tab, field in (("Pair", "pair-target"), ("Tokenize", "tokenize-target")):
        page.click(f"#tabs button[role=tab]:has-text('{tab}')")
        page.click(f"#{field} input")
        page.wait_for_selector("ul[role=listbox] li:has-text('embedded/assistant')")
        page.keyboard.press("Escape")


@pytest.mark.browser
def test_a_preset_fills_both_fields(page) -> None:
    page.click("#pairs button:has-text('Gemma 2 9B (gated)')")  # without opening anything
    page.wait_for_function("document.querySelector('#target input').value === 'google/gemma-2-9b'")
    assert page.input_value("#assistant input") == "double7/vicuna-68m"
    page.wait_for_selector("#plan li[data-kind=bad]:has-text('google/gemma-2-9b')")


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_label_of_the_open_tab_can_be_read(url, browser, theme: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{url}?__theme={theme}")
    chosen = page.wait_for_selector("#tabs button[role=tab][aria-selected=true]")
    colour = chosen.evaluate("e => getComputedStyle(e).color")
    behind = chosen.evaluate(BEHIND)
    assert contrast(*(tuple(map(int, re.findall(r"\d+", c)[:3])) for c in (colour, behind))) > 4.5
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """After WCAG 2."""

    def luminance(colour: tuple[int, ...]) -> float:
        parts = [
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
            for v in (c / 255 for c in colour)
        ]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_labels_survive_json() -> None:
    json.dumps(catalogue.search("embedded"))
