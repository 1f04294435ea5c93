"""The app inside a FastAPI application of your own: `python docs/serve_fastapi.py [PORT]`.

The page is at /studio, your own routes beside it; any ASGI server takes `create_app()`, for example
`uvicorn --factory docs.serve_fastapi:create_app`. One process only: the queue, the sessions and the
lock of the device live in it. docs/serve.md says how to put it behind Ray Serve.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import FastAPI

if __package__ in (None, ""):  # started as a script: the checkout is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from uag_core.ui.build import build_demo
from uag_core.ui.runner import default_pair
from uag_core.ui.theme import launch_options


def create_app(path: str = "/studio", make_pair: Callable[..., Any] = default_pair) -> FastAPI:
    """A FastAPI application with the page mounted at `path`."""
    app = FastAPI(title="UAG Studio", docs_url=None, redoc_url=None)

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    return gr.mount_gradio_app(app, build_demo(make_pair), path=path, **launch_options())


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(create_app(), port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
