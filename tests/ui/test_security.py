"""Hostile requests against a running app, and the headers of its answers."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from tests.ui.fake_pair import FakePair
from uag_core.errors import InputError
from uag_core.ui import security
from uag_core.ui.build import build_demo
from uag_core.ui.theme import launch_options


@pytest.fixture(scope="module")
def http(url):
    with httpx.Client(base_url=url, follow_redirects=False, timeout=30) as client:
        yield client


def test_anybody_may_embed_the_page_unless_it_is_said_otherwise(http) -> None:
    headers = http.get("/").headers
    assert "frame-ancestors" not in headers["content-security-policy"]
    assert "x-frame-options" not in headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "strict-origin-when-cross-origin"


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        (None, None),
        ("", None),
        ("*", None),
        ("none", "'none'"),
        ("'none'", "'none'"),
        ("self https://docs.example.org", "'self' https://docs.example.org"),
        ("https://*.hf.space, http://localhost:*", "https://*.hf.space http://localhost:*"),
    ],
)
def test_who_may_embed_is_configured(text, sources) -> None:
    assert security.frame_ancestors(text) == sources


@pytest.mark.parametrize("text", ["example.org", "* self", "self; script-src *", "https://a b\r\n"])
def test_nonsense_about_embedding_is_refused(text) -> None:
    with pytest.raises(InputError, match="UAG_FRAME_ANCESTORS"):
        security.frame_ancestors(text)


def test_the_configured_ancestors_are_sent(monkeypatch) -> None:
    monkeypatch.setenv(security.ANCESTORS_VARIABLE, "self https://docs.example.org")
    demo = build_demo(FakePair)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    try:
        for path in ("", "config", "gradio_api/info"):
            policy = httpx.get(f"{url}{path}").headers["content-security-policy"]
            assert "frame-ancestors 'self' https://docs.example.org" in policy
    finally:
        demo.close(verbose=False)


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file=../../../../etc/passwd",
        "/gradio_api/file=..%2f..%2f..%2fetc%2fpasswd",
        "/gradio_api/file=app.py",
        "/gradio_api/file=uag_core/config.py",
        "/gradio_api/file=assets/assistant/config.json",
        "/gradio_api/file=/proc/self/environ",
        "/gradio_api/file=http://127.0.0.1:9/",
        "/gradio_api/file/..%2f..%2fetc/passwd",
        "/static/..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "/assets/..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "/svelte/..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "/gradio_api/custom_component/x/client/component/..%2f..%2fetc",
        "/gradio_api/proxy=http://127.0.0.1:9/",
        "/gradio_api/deep_link?session_hash=x",
        "/gradio_api/vibe-code/",
        "/gradio_api/runs",
        "/gradio_api/run-history/records",
        "/monitoring",
        "/monitoring/summary",
        "/docs",
        "/redoc",
    ],
)
def test_no_file_and_no_unused_route_is_served(http, path) -> None:
    reply = http.get(path)
    assert reply.status_code in (302, 307, 401, 403, 404, 422), reply.text[:200]
    for trace in ("root:", "HOME=", "PATH=", "import ", "Traceback", '"vocab_size"'):
        assert trace not in reply.text


def test_a_large_request_is_refused_whether_it_says_so_or_not(http) -> None:
    body = b"x" * (security.MAX_BODY_BYTES + 1)
    reply = http.post("/gradio_api/queue/join", content=body)
    assert reply.status_code == 413
    chunks = (body[at : at + 1_000_000] for at in range(0, len(body), 1_000_000))
    reply = http.post(
        "/gradio_api/queue/join", content=chunks, headers={"content-type": "application/json"}
    )
    assert reply.status_code == 413
    assert "larger than" in reply.json()["detail"]


def test_a_large_upload_is_refused_before_it_is_sent(url) -> None:
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port)) as sender:
        head = f"POST /gradio_api/upload HTTP/1.1\r\nHost: {address.netloc}\r\n"
        sender.sendall(f"{head}Content-Length: {security.MAX_UPLOAD_BYTES + 1}\r\n\r\n".encode())
        assert b" 413 " in sender.recv(4096)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": "x", "fn_index": 0, "session_hash": "a"},
        {"data": [{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}], "fn_index": 2},
        {"data": [], "fn_index": 99999, "session_hash": "a"},
        {"data": [None] * 300, "fn_index": 1, "session_hash": "a"},
    ],
)
def test_malformed_requests_show_no_internals(url, body) -> None:
    reply = httpx.post(f"{url}gradio_api/queue/join", json=body)
    assert reply.status_code < 600
    assert "Traceback" not in reply.text
    assert "site-packages" not in reply.text
    assert "root:" not in reply.text


def test_nothing_is_recorded_or_monitored(http) -> None:
    config = http.get("/config").json()
    assert not config.get("run_history")
    assert not config.get("enable_monitoring")
    assert not config.get("show_error")
    assert not config.get("analytics_enabled")
    assert http.get("/gradio_api/startup-events").status_code < 500


def test_events_of_the_page_are_not_listed(http) -> None:
    listed = http.get("/gradio_api/info").json()
    public = {
        f"/{item['api_name']}"
        for item in http.get("/config").json()["dependencies"]
        if item.get("api_visibility") == "public"
    }
    assert set(listed["named_endpoints"]) == public
    assert "/compare" in public
    assert listed["unnamed_endpoints"] == {}
