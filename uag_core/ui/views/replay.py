"""The race as it would be: the recorded time lines of the engines, played side by side.

The playing is done in the browser (assets/js/replay.js) from one JSON text. Knows how to make that
text, nothing of the drawing.
"""

from __future__ import annotations

from typing import Any

from gradio.components import Component

from uag_core.ui.replay_json import replay_json
from uag_core.ui.scripts import drawing

LABEL = "Replay"


def create() -> list[Component]:
    return [drawing("uagReplay", "replay", elem_id="replay")]


def render(run: dict[str, Any]) -> list[Any]:
    return [replay_json(run)]
