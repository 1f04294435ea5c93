"""Choosing models: a search over the Hub, pairs to start from, and whether the choice fits here.

Layout, handlers and wiring of this one area; what a search or a plan is, is not its business. None
of its events takes the models' slot, so that one can look around while something runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from uag_core.errors import UAGError
from uag_core.models import presets
from uag_core.ui import model_field, token_html
from uag_core.ui.logins import asking_as

ROLES = ("Target", "Assistant")
LIMIT = 10
SEARCHING = "Searching."
_QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
Search = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class ModelPicker:
    """The components of the area. `pairs` are the buttons of presets and what they set."""

    pairs: list[tuple[gr.Button, str, str]]
    drawer: gr.Accordion
    query: gr.Textbox
    role: gr.Radio
    found: gr.Radio
    notice: gr.HTML
    plan: gr.HTML


def create_picker() -> ModelPicker:
    """Lays the area out inside the current Blocks."""
    plan = gr.HTML(plan_html([]), elem_id="plan", apply_default_css=False)
    pairs = []
    with gr.Row(elem_id="pairs"):
        gr.HTML('<span class="uag-label">Pairs to try</span>', apply_default_css=False)
        for preset in presets.usable():
            text = preset.label + (" (gated)" if preset.gated else "")
            button = gr.Button(text, size="sm", min_width=0, elem_classes="uag-chip")
            pairs.append((button, preset.target, preset.assistant))
    with gr.Accordion("Find models", open=False, elem_id="picker") as drawer:
        with gr.Row(elem_classes="uag-tight"):
            query = gr.Textbox(
                label="Search the Hub",
                placeholder="words of a model's name",
                max_lines=1,
                scale=3,
                min_width=180,
                elem_id="model-query",
                html_attributes=gr.InputHTMLAttributes(autocorrect="off", spellcheck=False),
            )
            role = gr.Radio(
                list(ROLES), value=ROLES[0], label="Use as", scale=2, min_width=180, elem_id="role"
            )
        notice = gr.HTML(elem_id="picker-notice", apply_default_css=False)
        found = gr.Radio([], label="Models", elem_id="found")
    return ModelPicker(pairs, drawer, query, role, found, notice, plan)


def notice_html(message: str | None) -> str:
    """A quiet line, or nothing."""
    if not message:
        return ""
    return f'<p class="uag-note" role="status">{token_html.text(message)}</p>'


def plan_html(lines: list[tuple[str, str, bool]]) -> str:
    """What each model would need: (role, line, would it work)."""
    items = "".join(
        f'<li data-kind="{"good" if good else "bad"}">'
        f"<strong>{token_html.text(role)}</strong> {token_html.text(line)}</li>"
        for role, line, good in lines
    )
    return f'<ul class="uag-plan" aria-live="polite">{items}</ul>' if items else ""


def search_models(
    query: str | None, search: Search | None = None, login: gr.OAuthToken | None = None
) -> tuple[Any, str, list[str]]:
    """New choices for the list of models, the line above it, and the names that were found."""
    from uag_core.models import catalogue

    try:
        found = asking_as(login, search or catalogue.search)(query or "", LIMIT)
    except UAGError as error:
        return gr.update(choices=[], value=None), notice_html(str(error)), []
    choices = [(catalogue.label(entry), entry["id"]) for entry in found["models"]]
    notice = found["notice"] or (None if choices else "No model was found.")
    names = [entry["id"] for entry in found["models"]]
    return gr.update(choices=choices, value=None), notice_html(notice), names


def plan_models(
    target: Any, assistant: Any, dtype: Any, device: Any, login: gr.OAuthToken | None = None
) -> str:
    """What the chosen pair would need here, a line for each model."""
    from uag_core.models import planning, registry

    names = [str(name).strip() if name else "" for name in (target, assistant)]
    if not names[0]:
        return plan_html([])
    found = asking_as(login, planning.plan_pair)(
        names[0],
        names[1] or None,
        dtype=str(dtype or "auto"),
        device=str(device or "auto"),
        spare=registry.spare(),
    )
    return plan_html(
        [
            (role, planning.line(plan), not plan["refusal"])
            for role, plan in zip(ROLES, (found["target"], found["assistant"]), strict=True)
            if plan is not None
        ]
    )


def wire(
    picker: ModelPicker,
    inputs: dict[str, Component],
    fields: Sequence[tuple[model_field.Role, gr.Dropdown]] = (),
    search: Search | None = None,
) -> None:
    """Connects the area with the form's model fields.

    What a search finds is offered by every one of `fields` as well, whatever tab it stands in.
    """
    target, assistant = inputs["target"], inputs["assistant"]
    for button, first, second in picker.pairs:
        button.click(
            lambda first=first, second=second: (first, second),
            outputs=[target, assistant],
            queue=False,
            **_QUIET,
        )

    def find(query: str, login: gr.OAuthToken | None = None) -> Iterator[tuple[Any, ...]]:
        yield gr.skip(), notice_html(SEARCHING), *(gr.skip() for _ in fields)
        choices, notice, names = search_models(query, search, login)
        yield choices, notice, *(model_field.offer(role, names) for role, _ in fields)

    # "always_last" keeps one search running and one waiting, however fast somebody types.
    gr.on(
        [picker.drawer.expand, picker.query.input, picker.query.submit],
        find,
        inputs=picker.query,
        outputs=[picker.found, picker.notice, *(field for _, field in fields)],
        trigger_mode="always_last",
        concurrency_limit=4,
        **_QUIET,
    )
    picker.found.input(
        lambda name, role: (name, gr.skip()) if role == ROLES[0] else (gr.skip(), name),
        inputs=[picker.found, picker.role],
        outputs=[target, assistant],
        queue=False,
        **_QUIET,
    )
    # The mark goes, so that the same model can be chosen for the other role as well.
    picker.role.input(lambda: None, outputs=picker.found, queue=False, **_QUIET)
    planned = [target, assistant, inputs["dtype"], inputs["device"]]
    gr.on(
        [component.change for component in planned],  # type: ignore[attr-defined]
        plan_models,
        inputs=planned,
        outputs=picker.plan,
        trigger_mode="always_last",
        concurrency_limit=4,
        **_QUIET,
    )
