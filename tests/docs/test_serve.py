"""The app mounted in a FastAPI application, as docs/serve_fastapi.py shows it."""

from __future__ import annotations

import socket
import threading
import time

import httpx
import pytest
import uvicorn
from gradio_client import Client

from docs.serve_fastapi import create_app
from tests.ui.fake_pair import FakePair


@pytest.fixture(scope="module")
def address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = uvicorn.Config(create_app(make_pair=FakePair), port=port, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)


def test_own_routes_and_the_page_live_side_by_side(address) -> None:
    assert httpx.get(f"{address}/health").json() == {"status": "ok"}
    page = httpx.get(f"{address}/studio/")
    assert "UAG Studio" in page.text
    assert page.headers["x-content-type-options"] == "nosniff"


def test_a_client_compares_through_the_mounted_app(address) -> None:
    client = Client(f"{address}/studio/", verbose=False)
    items = list(client.submit("Hi", target="fake/fast", max_new_tokens=8, api_name="/compare"))
    assert items[-1]["result"]["assisted"]["num_new_tokens"] == 8
    with pytest.raises(Exception, match="There is no model named") as caught:
        client.predict("Hi", target="fake/unknown", api_name="/compare")
    assert "Traceback" not in str(caught.value)


def test_the_closed_doors_stay_closed_when_mounted(address) -> None:
    assert httpx.get(f"{address}/studio/monitoring").status_code == 404
    assert httpx.get(f"{address}/studio/gradio_api/file=/etc/passwd").status_code in (403, 404)
    body = {"data": ["x", "fake/fast"]}
    assert httpx.post(f"{address}/studio/gradio_api/run/compare", json=body).status_code == 404
