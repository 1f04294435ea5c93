"""Starts UAG Studio: builds the page and serves it on port 7860 (or GRADIO_SERVER_PORT)."""

from __future__ import annotations

import os

from uag_core.ui import zerogpu
from uag_core.ui.build import build_demo
from uag_core.ui.theme import launch_options

demo = build_demo()


def main() -> None:
    if zerogpu.enabled():
        zerogpu.preload()
    port = int(os.environ.get("GRADIO_SERVER_PORT", "7860"))
    demo.launch(server_port=port, **launch_options())


if __name__ == "__main__":
    main()
