"""A public host, entrance by entrance: no local path, no forbidden or huge model, no token shown.

The app is the real one; a local server stands in for the Hub.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import pytest
from gradio import helpers
from gradio_client import Client

from tests.fixtures.hub_here import hub_server
from tests.fixtures.hub_server import HubServer, Repo
from tests.models.conftest import _saved, make_folder
from uag_core.models import references, tokenizers
from uag_core.ui.build import build_demo
from uag_core.ui.theme import launch_options

__all__ = ["_saved", "hub_server", "make_folder"]

VISITOR, SERVER = "hf_visitorMarkerToken", "hf_serverMarkerToken"
ENDPOINTS: dict[str, dict[str, Any]] = {
    "/compare": {"prompt": "the cat", "raw": True, "max_new_tokens": 2},
    "/benchmark": {"prompts": ["the cat"], "methods": ["baseline", "uag"], "max_new_tokens": 2},
    "/inspect_pair": {"text": "the cat"},
    "/tokenize": {"text": "the cat"},
}


class Host:
    """A running app, what its page shows, and who its only visitor is."""

    def __init__(self, session: dict[str, Any], hub: HubServer) -> None:
        self.session, self.hub = session, hub
        self.demo = build_demo()
        options = launch_options()
        _, self.url, _ = self.demo.launch(prevent_thread_lock=True, quiet=True, **options)
        self.client = Client(self.url, verbose=False)

    def log_in(self, token: str | None) -> None:
        """From now on the visitor is logged in, as gradio finds it in a session."""
        self.session.clear()
        if token:
            info = {"access_token": token, "scope": "", "expires_at": time.time() + 999}
            self.session["oauth_info"] = {**info, "userinfo": {}}

    def ask(self, endpoint: str, target: str, assistant: str) -> str:
        """The answer of an endpoint, or its error, as text."""
        arguments = {**ENDPOINTS[endpoint], "target": target, "assistant": assistant}
        try:
            return repr(self.client.predict(**arguments, api_name=endpoint))
        except Exception as error:
            return f"error: {error}"

    def press(self, target: str, assistant: str) -> dict[str, str]:
        """What the tabs show for a pair, by the name of the tab."""
        functions = [fn.fn for fn in self.demo.fns.values() if hasattr(fn.fn, "__qualname__")]
        handlers = {function.__qualname__: function for function in functions}
        login = None
        if info := self.session.get("oauth_info"):
            login = gr.OAuthToken(info["access_token"], "", info["expires_at"])
        shown = {}
        for tab, name, values in (
            ("Pair", "wire.<locals>.shown", (target, assistant, "the cat")),
            ("Tokenize", "wire.<locals>.show", ("the cat", target, assistant)),
            ("plan", "plan_models", (target, assistant, "float32", "cpu")),
        ):
            answer = handlers[name](*values, login)
            shown[tab] = repr(list(answer) if tab == "Tokenize" else answer)
        for tab, name in (("Compare", "CompareHandlers"), ("Benchmark", "BenchmarkHandlers")):
            run = handlers[f"{name}.run"].__self__
            form = {
                "prompt": "the cat",
                "prompts": "the cat",
                "raw": True,
                "methods": ["uag"],
                "max_new_tokens": "2",
                "target": target,
                "assistant": assistant,
            }
            inputs = run.tab.inputs
            data = {inputs[key]: component.value for key, component in inputs.items()}
            data |= {inputs[key]: value for key, value in form.items() if key in inputs}
            shown[tab] = repr([run.begin(data), *run.run(data, None, login)])
        return shown


@pytest.fixture
def host(hub_server, make_folder, monkeypatch):
    """A host with the tiny model as o/n; the server has an access token of its own."""
    monkeypatch.setenv("UAG_HOSTED", "1")
    monkeypatch.setenv("HF_TOKEN", SERVER)
    hub_server.tokens = {VISITOR, SERVER}
    hub_server.repos["o/n"] = Repo.from_folder(make_folder())
    session: dict[str, Any] = {}
    monkeypatch.setattr(helpers, "_session_from_request", lambda request: session)
    tokenizers._loaded.clear()
    here = Host(session, hub_server)
    yield here
    here.demo.close(verbose=False)
    tokenizers._loaded.clear()


def everywhere(host: Host, target: str, assistant: str) -> dict[str, str]:
    answers = {name: host.ask(name, target, assistant) for name in ENDPOINTS}
    return {**answers, **host.press(target, assistant)}


def refused(answers: dict[str, str], words: str) -> None:
    for entrance, answer in answers.items():
        assert words in answer, (entrance, answer)
        assert "Traceback" not in answer
        assert not answer.startswith("error:") or "\n" not in answer


@pytest.mark.parametrize("name", ["/etc", "../secret", "~/model", "model.gguf", "C:\\model"])
def test_no_entrance_looks_at_the_disk(host, monkeypatch, name) -> None:
    def look(*_: object, **__: object) -> bool:
        raise AssertionError("the disk was looked at")

    monkeypatch.setattr(references, "_exists", look)
    refused(everywhere(host, name, "o/n"), "of the server cannot be used here")
    refused(everywhere(host, "o/n", name), "of the server cannot be used here")


def test_no_entrance_opens_a_model_that_is_not_allowed(host, monkeypatch) -> None:
    monkeypatch.setenv("UAG_ALLOWED_MODELS", "o/*")
    refused(everywhere(host, "bad/model", "o/n"), "not among the models that may be used here")
    refused(everywhere(host, "o/n", "bad/model"), "not among the models that may be used here")
    assert not host.hub.asked("bad/model")


def test_no_entrance_takes_a_model_that_is_too_large(host) -> None:
    huge = Repo(dict(host.hub.repos["o/n"].files))
    huge.sizes["model.safetensors"] = 30_000_000_000
    host.hub.repos["o/huge"] = huge
    huge.files["model.gguf"] = b"GGUF"
    huge.sizes["model.gguf"] = 30_000_000_000
    for pair in (("o/huge", "o/n"), ("o/n", "o/huge")):
        refused(everywhere(host, *pair), "here at most 10 GB are allowed")
    for entrance in ("/inspect_pair", "/tokenize"):
        answer = host.ask(entrance, "o/huge:model.gguf", "o/n")
        assert "here at most 10 GB are allowed" in answer
    weights = [r for r in host.hub.asked("/model.") if r.path.startswith("/o/huge/")]
    assert all(request.range for request in weights)  # headers at most


def test_a_gated_model_opens_for_the_visitors_own_login_alone(
    host, caplog, capfd, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    gated = Repo(dict(host.hub.repos["o/n"].files), gated="manual", readers=(VISITOR,))
    host.hub.repos["o/gated"] = gated
    before = everywhere(host, "o/gated", "o/n")
    refused(before, "o/gated is gated")
    host.log_in(VISITOR)
    opened = everywhere(host, "o/gated", "o/n")
    for entrance, answer in opened.items():
        assert "gated." not in answer, (entrance, answer)
        assert "error:" not in answer, (entrance, answer)
    for words, entrance in (("'done'", "/compare"), ("'done'", "/benchmark"), ("Done", "Compare")):
        assert words in opened[entrance]
    host.log_in(None)  # the next visitor: the model is in memory, and stays closed
    after = everywhere(host, "o/gated", "o/n")
    refused(after, "o/gated is gated")
    host.log_in("hf_someOtherMarker")
    refused(everywhere(host, "o/gated", "o/n"), "does not accept your access token")

    asked = {request.token for request in host.hub.requests}
    assert asked == {None, VISITOR, "hf_someOtherMarker"}  # never the server's own
    pages = [httpx.get(f"{host.url}{path}").text for path in ("", "config", "gradio_api/info")]
    shown = [*before.values(), *opened.values(), *after.values(), *pages, caplog.text]
    shown += list(capfd.readouterr())
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    for token in (VISITOR, SERVER, "hf_someOtherMarker"):
        assert not [text for text in shown if token in text]
        assert not [data for data in files if token.encode() in data]


def test_the_search_asks_as_the_visitor(host) -> None:
    host.hub.requests.clear()
    assert host.client.predict("n", 5, api_name="/list_models")["source"] == "hub"
    host.log_in(VISITOR)
    found = host.client.predict("o/n", 5, api_name="/list_models")
    assert [model["id"] for model in found["models"]] == ["o/n"]
    assert [request.token for request in host.hub.asked("/api/models")] == [None, VISITOR]
