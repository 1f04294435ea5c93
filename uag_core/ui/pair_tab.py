"""The Pair tab and the endpoint `/inspect_pair`: what to expect of two models before loading them.

Layout, its one event and the public endpoint. Knows the report's producer and nothing of models.
Annotations stay real objects (no `from __future__ import annotations`): gradio reads the
endpoint's types off them.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from uag_core import serialization
from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_TARGET
from uag_core.errors import UAGError
from uag_core.ui import model_field, pair_html
from uag_core.ui.logins import asking_as

Inspect = Callable[..., dict[str, Any]]  # target, assistant, text, and token= of a visitor
SLOT: dict[str, Any] = {"concurrency_id": "inspect", "concurrency_limit": 2}
MAX_TEXT = 200_000  # characters that are taken at all


@dataclass(frozen=True)
class PairTab:
    """The components of the tab."""

    target: gr.Dropdown
    assistant: gr.Dropdown
    text: gr.Textbox
    inspect: gr.Button
    status: gr.HTML
    error: gr.HTML
    report: gr.HTML


def _inspect(
    target: str, assistant: str, text: str | None, token: str | None = None
) -> dict[str, Any]:
    from uag_core.inspection import inspect_pair

    report = inspect_pair(target, assistant, (text or "")[:MAX_TEXT] or None, token=token)
    # Through JSON, so that a client gets what a file would hold and nothing else.
    return dict(json.loads(serialization.dumps(report)))


def create_pair_tab() -> PairTab:
    """Lays the tab out inside the current Blocks and returns its components."""
    with gr.Row(elem_id="pair-ask"):
        with gr.Column(scale=2, min_width=300):
            target = model_field.create("target", "pair-target")
            assistant = model_field.create("assistant", "pair-assistant")
        with gr.Column(scale=3, min_width=320):
            text = gr.Textbox(
                label="Text",
                info="what tokens are counted on; a sample where it is left blank",
                lines=5,
                max_lines=12,
                elem_id="pair-text",
            )
    with gr.Row(elem_id="pair-actions"):
        inspect = gr.Button(
            "Inspect", variant="primary", min_width=96, scale=0, elem_id="pair-inspect"
        )
        status = gr.HTML("", elem_id="pair-status", min_width=200, apply_default_css=False)
    error = gr.HTML("", elem_id="pair-error", apply_default_css=False)
    report = gr.HTML(pair_html.PLACEHOLDER, elem_id="pair-report", apply_default_css=False)
    return PairTab(target, assistant, text, inspect, status, error, report)


def wire(tab: PairTab, inspect: Inspect = _inspect) -> None:
    """The button's event and the public endpoint."""

    def shown(
        target: str, assistant: str, text: str, login: gr.OAuthToken | None = None
    ) -> tuple[str, str, str]:
        try:
            report = asking_as(login, inspect)(target or "", assistant or "", text)
            return "", "", pair_html.report_html(report)
        except UAGError as error:
            return "", pair_html.error(str(error)), ""
        except Exception:
            logging.getLogger(__name__).exception("inspection failed")
            return "", pair_html.error("The inspection failed inside."), ""

    gr.on(
        [tab.inspect.click],
        shown,
        inputs=[tab.target, tab.assistant, tab.text],
        outputs=[tab.status, tab.error, tab.report],
        show_progress="minimal",
        show_progress_on=tab.status,
        api_visibility="private",
        **SLOT,
    )
    gr.api(_endpoint(inspect), api_name="inspect_pair", **SLOT)


def _endpoint(inspect: Inspect) -> Callable[..., Any]:
    def inspect_pair(
        target: str = DEFAULT_TARGET,
        assistant: str = DEFAULT_ASSISTANT,
        text: str | None = None,
        login: gr.OAuthToken | None = None,
    ) -> dict:
        """Reports how two models and their tokenizers fit together, without loading weights.

        Returns the object that `inspect --json` prints: "same_tokenizer", "vocabulary",
        "fertility", "boundaries", "hazards", "control_tokens", "method", "verdict" and what the
        configurations say of both models. `text` is what tokens are counted on.
        """
        try:
            return dict(asking_as(login, inspect)(target, assistant, text))
        except UAGError as error:
            raise gr.Error(str(error), print_exception=False) from None

    return inspect_pair
