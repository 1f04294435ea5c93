"""The field for a model's name, the same in every tab: a list to choose from, or any name typed.

The list begins with the models of the presets; a search adds what it found. Knows no handler.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import gradio as gr

from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_TARGET
from uag_core.models import presets

Role = Literal["target", "assistant"]
DEFAULTS: dict[Role, str] = {"target": DEFAULT_TARGET, "assistant": DEFAULT_ASSISTANT}


def create(role: Role, elem_id: str, info: str | None = None) -> gr.Dropdown:
    """The field for the target or for the assistant, inside the current Blocks."""
    return gr.Dropdown(
        known(role),
        value=DEFAULTS[role],
        allow_custom_value=True,
        label=role.capitalize(),
        info=info,
        elem_id=elem_id,
    )


def known(role: Role, found: Iterable[str] = ()) -> list[str]:
    """Names for the list: what a search found, then the presets' models, each once."""
    fixed = (getattr(one, role) for one in presets.usable())
    return list(dict.fromkeys([*found, DEFAULTS[role], *fixed]))


def offer(role: Role, found: Iterable[str]) -> Any:
    """An update of the list; what stands in the field stays."""
    return gr.update(choices=known(role, found))
