"""How the two tokenizations line up, round by round, and where each part of the answer came from.

The drawing is done in the browser (rounds.js and alignment.js of assets/js) from one JSON text, so
that stepping asks the server for nothing. Knows how to make that text, nothing of the drawing.
"""

from __future__ import annotations

from typing import Any

from gradio.components import Component

from uag_core.ui.alignment_json import alignment_json
from uag_core.ui.scripts import drawing

LABEL = "Alignment"


def create() -> list[Component]:
    return [drawing("uagAlignment", "axis", "rounds", "alignment", elem_id="alignment")]


def render(run: dict[str, Any]) -> list[Any]:
    return [alignment_json(run)]
