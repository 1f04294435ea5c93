"""An access token of this machine, or of a visitor, appears nowhere that anybody can look."""

from __future__ import annotations

import logging

import httpx
import pytest
from gradio_client import Client

from tests.fixtures.hub_here import hub_server
from tests.fixtures.hub_server import Repo
from uag_core.models import registry
from uag_core.ui.build import build_demo
from uag_core.ui.runner import default_pair
from uag_core.ui.theme import launch_options

__all__ = ["hub_server"]
TOKEN = "hf_markerMarkerMarker"


@pytest.fixture
def app(hub_server, monkeypatch):
    """The real app, with a token in its environment and a gated model on the Hub."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub_server.repos["o/gated"] = Repo({"config.json": b"{}"}, gated="manual")
    hub_server.repos["o/bin"] = Repo({"config.json": b"{}", "pytorch_model.bin": b"x"})
    demo = build_demo(default_pair)
    _, address, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    yield address
    demo.close(verbose=False)
    registry.evict_all()


def ask(client: Client, target: str) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - gradio's own kind
        client.predict("Hello", target=target, api_name="/compare")
    return str(caught.value)


@pytest.mark.parametrize("known", [False, True])
def test_the_marker_is_in_no_page_answer_log_or_file(
    app, hub_server, known, caplog, capfd, tmp_path
) -> None:
    caplog.set_level(logging.DEBUG)
    if known:
        hub_server.tokens.add(TOKEN)
    client = Client(app, verbose=False)
    shown = [ask(client, name) for name in ("o/gated", "o/bin", "o/missing")]
    assert ("is gated" if known else "access token") in shown[0]
    try:
        shown.append(str(client.predict("o", 5, api_name="/list_models")))
    except Exception as error:  # an unknown token is refused for the search as well
        shown.append(str(error))
    shown += [httpx.get(app).text, httpx.get(f"{app}config").text, caplog.text]
    shown += list(capfd.readouterr())
    assert any(request.token == TOKEN for request in hub_server.requests)
    assert not [text for text in shown if TOKEN in text]
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]


def test_a_hosted_app_never_lends_its_own_token(app, hub_server, monkeypatch) -> None:
    monkeypatch.setenv("UAG_HOSTED", "1")
    hub_server.tokens.add(TOKEN)
    hub_server.repos["o/gated"].readers = (TOKEN,)
    client = Client(app, verbose=False)
    assert "is gated" in ask(client, "o/gated")
    client.predict("o", 5, api_name="/list_models")
    assert {request.token for request in hub_server.requests} == {None}
    for path in ("/etc", "./assets/assistant", "~/x", "/tmp/model.gguf"):
        assert "cannot be used here" in ask(client, path)
