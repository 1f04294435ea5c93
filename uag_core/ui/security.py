"""What every answer of the server carries and what no request may do: an ASGI middleware.

Headers (who may embed the page, no guessing of content types), a limit for the size of a request,
and a closed door before those routes of gradio that this app has no use for. Knows HTTP only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.middleware import Middleware

from uag_core.errors import InputError

ANCESTORS_VARIABLE = "UAG_FRAME_ANCESTORS"
MAX_BODY_BYTES = 16_000_000  # the longest prompt, escaped, several times over
MAX_UPLOAD_BYTES = 68_000_000  # a file as large as gradio takes here, and what surrounds it

# Recording, re-writing the app, monitoring, proxying, media streams, stored states.
_CLOSED = re.compile(
    r"/(?:gradio_api/(?:deep_link|vibe-|undo-vibe|proxy=|process_recording|run-history|runs|"
    r"profiling|stream/|dev/|custom_component/)|monitoring)"
)
_SOURCE = re.compile(
    r"https?://(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::(?:\d{1,5}|\*))?"
)
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"strict-origin-when-cross-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def frame_ancestors(text: str | None) -> str | None:
    """The sources of a `frame-ancestors` directive; None where anybody may embed the page.

    `text` is what UAG_FRAME_ANCESTORS holds: nothing or `*` for anybody (the default, so that the
    page works inside of documentation and on a Space), `none`, or a list of `self` and of origins
    such as `https://docs.example.org` or `https://*.hf.space`. Raises `InputError`.
    """
    words = [word.strip("'") for word in (text or "").replace(",", " ").split()]
    if not words or words == ["*"]:
        # Not even `*` is sent: it would shut out pages that are opened from a file.
        return None
    if words == ["none"]:
        return "'none'"
    for word in words:
        if word != "self" and not _SOURCE.fullmatch(word):
            raise InputError(
                f"{ANCESTORS_VARIABLE} has {word[:60]!r}: give *, none, self or origins like "
                "https://docs.example.org."
            )
    return " ".join("'self'" if word == "self" else word for word in words)


class Guard:
    """The middleware. `ancestors` as `frame_ancestors` returns them."""

    def __init__(self, app: App, ancestors: str | None = None, limit: int = MAX_BODY_BYTES):
        self._app, self._limit = app, limit
        policy = "object-src 'none'" + (f"; frame-ancestors {ancestors}" if ancestors else "")
        self._headers = [*_HEADERS, (b"content-security-policy", policy.encode("ascii"))]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit
        if scope["path"].endswith("/gradio_api/upload"):
            limit = max(limit, MAX_UPLOAD_BYTES)
        received = 0
        started = False

        async def with_headers(message: Message) -> None:
            nonlocal started
            if received > limit and not started:
                return  # what the app makes of half a request is of no interest
            if message["type"] == "http.response.start":
                started = True
                present = {name.lower() for name, _ in message["headers"]}
                extra = [item for item in self._headers if item[0] not in present]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        if _CLOSED.search(scope["path"]):
            await _answer(with_headers, 404, "Not found.")
            return
        too_large = f"The request is larger than {limit:,} bytes."
        if _declared(scope) > limit:
            await _answer(with_headers, 413, too_large)
            return

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body") or b"")
            return message if received <= limit else {"type": "http.disconnect"}

        try:
            await self._app(scope, counted, with_headers)
        except Exception:
            if received <= limit:
                raise
        if received > limit and not started:
            received = 0
            await _answer(with_headers, 413, too_large)


def _declared(scope: Message) -> int:
    for name, value in scope["headers"]:
        if name.lower() == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0


async def _answer(send: Send, status: int, line: str) -> None:
    body = json.dumps({"detail": line}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def middleware() -> list[Middleware]:
    """For `FastAPI(middleware=...)`, as the environment wants it."""
    ancestors = frame_ancestors(os.environ.get(ANCESTORS_VARIABLE))
    return [Middleware(Guard, ancestors=ancestors)]
