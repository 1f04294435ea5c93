"""The Tokenize tab and the endpoint `/tokenize`: any text in two tokenizers, no weights loaded.

Lays the tab out, answers while somebody types, and serves programs. Knows how to get tokenizers by
name; what is computed and drawn is not its business. Annotations of the endpoint stay real objects
(no `from __future__ import annotations`): gradio reads its types off them.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_TARGET
from uag_core.errors import UAGError
from uag_core.tokenization.side_by_side import Named, check_text, side_by_side
from uag_core.ui import model_field, token_html
from uag_core.ui.logins import asking_as
from uag_core.ui.scripts import drawing
from uag_core.ui.tokenize_json import drawing_json, summary_html

logger = logging.getLogger(__name__)

GetTokenizer = Callable[..., Named]
SAMPLE = (
    "Universal Assisted Generation: naïve café, 今天天气很好 🦙, 3.14159\n"
    "def f(x):\n\treturn x != 1"
)
_SLOT = "tokenize"
_AT_ONCE = 4


def default_tokenizer(ref: str, token: str | None = None) -> Named:
    """The real thing. Imported on first use, so that the page itself starts without torch."""
    from uag_core.models.tokenizers import load_tokenizer

    return load_tokenizer(ref, token=token)


@dataclass(frozen=True)
class TokenizeTab:
    """The components of the tab."""

    text: gr.Textbox
    target: gr.Dropdown
    assistant: gr.Dropdown
    error: gr.HTML
    summary: gr.HTML
    drawing: gr.HTML


def create_tokenize_tab() -> TokenizeTab:
    """Lays the tab out inside the current Blocks."""
    with gr.Row():
        text = gr.Textbox(
            SAMPLE,
            label="Text",
            lines=5,
            max_lines=12,
            placeholder="Type or paste any text.",
            elem_id="tokenize-text",
            scale=3,
            min_width=320,
        )
        with gr.Column(scale=2, min_width=300):
            info = "only its tokenizer is read, no weights"
            target = model_field.create("target", "tokenize-target", info)
            assistant = model_field.create("assistant", "tokenize-assistant", info)
    return TokenizeTab(
        text=text,
        target=target,
        assistant=assistant,
        error=gr.HTML(elem_id="tokenize-error", apply_default_css=False),
        drawing=drawing("uagTokenize", "axis", "tokenize", elem_id="tokenize-drawing"),
        summary=gr.HTML(elem_id="tokenize-summary", apply_default_css=False),
    )


def wire(tab: TokenizeTab, front: gr.Tab, get: GetTokenizer) -> None:
    """Tokenizes when the tab is opened, while somebody types, and when a model is chosen.

    While one answer is computed only the newest text waits, so that typing never queues up.
    """
    inputs: list[Component] = [tab.text, tab.target, tab.assistant]

    def show(
        text: str, target: str, assistant: str, login: gr.OAuthToken | None = None
    ) -> Iterator[tuple[Any, Any, Any]]:
        yield from _show(asking_as(login, get), text, target, assistant)

    gr.on(
        [front.select, tab.text.change, tab.target.change, tab.assistant.change],
        show,
        inputs=inputs,
        outputs=[tab.error, tab.summary, tab.drawing],
        trigger_mode="always_last",
        concurrency_id=_SLOT,
        concurrency_limit=_AT_ONCE,
        show_progress="hidden",
        api_visibility="private",
    )


def _show(
    get: GetTokenizer, text: str, target: str, assistant: str
) -> Iterator[tuple[Any, Any, Any]]:
    try:
        check_text(text)
        found = side_by_side(text, get(target), get(assistant))
        yield "", summary_html(found), drawing_json(found)
    except UAGError as error:
        yield token_html.error(str(error)), gr.skip(), gr.skip()
    except Exception as error:
        logger.error("Tokenizing failed", exc_info=error)
        line = f"This text could not be tokenized ({type(error).__name__})."
        yield token_html.error(line), gr.skip(), gr.skip()


def serve(get: GetTokenizer) -> None:
    """Adds the endpoint `/tokenize` to the current Blocks."""
    gr.api(
        make_tokenize(get),
        api_name="tokenize",
        concurrency_id=_SLOT,
        concurrency_limit=_AT_ONCE,
    )


def make_tokenize(get: GetTokenizer) -> Callable[..., Any]:
    """The endpoint's function, bound to a source of tokenizers."""

    def tokenize(
        text: str,
        target: str = DEFAULT_TARGET,
        assistant: str = DEFAULT_ASSISTANT,
        login: gr.OAuthToken | None = None,
    ) -> dict:
        """Tokenizes a text with the tokenizers of two models; no weights are loaded.

        Returns {"text", "same_tokenizer", "target", "assistant", "shared_boundaries"}. For each
        tokenizer: "name", "revision", "vocab_size", "count", "characters", "bytes",
        "chars_per_token", "bytes_per_token", "tokens": [{"id", "text" (null for a part of a
        character), "bytes" (hex), "start", "end" (byte offsets), "control"}] and "round_trip":
        {"exact", "text", "num_losses", "losses": [{"reason", "why", "start", "end", "before",
        "after"}]}. "shared_boundaries": {"count", "target", "assistant", "percent"}, boundaries
        inside the text. At most 20,000 characters.
        """
        try:
            named = asking_as(login, get)
            return side_by_side(check_text(text), named(target), named(assistant))
        except UAGError as error:
            raise gr.Error(str(error), print_exception=False) from None

    return tokenize
