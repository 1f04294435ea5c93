"""Embedding: opening what an address names, and the snippets that put this page into another one.

A compact view (`?view=compare|alignment|chart`) is the same page with its frame hidden by a style,
opened on a recorded run, so that nothing is computed until its reader presses Run. Knows the form,
the results and the library of runs.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import gradio as gr
from gradio.blocks import Block

from uag_core.errors import UAGError
from uag_core.ui import addresses, token_html
from uag_core.ui.results_area import unpack
from uag_core.ui.run_page import RunPage
from uag_core.ui.views import VIEWS

HEIGHTS = {"compare": 640, "alignment": 520, "chart": 560}  # pixels
TABS = {"compare": "summary", "alignment": "alignment", "chart": "charts"}  # modules of `views`
THEMES = ("system", "light", "dark")
OPEN_LINK = (
    '<p id="uag-open"><a href="./" target="_blank" rel="noopener">Open in UAG Studio</a></p>'
)
COMPLETE = "(...texts) => window.uagWholeAddress(...texts)"
QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}

Updates = dict[Any, Any]


def tab_of(view: str) -> int:
    """The index of a compact view among the tabs of the results."""
    names = [str(getattr(module, "__name__", "")).rpartition(".")[2] for module in VIEWS]
    return names.index(TABS[view]) if TABS[view] in names else 0


def opener(page: RunPage) -> Callable[[Updates, gr.Request], Updates]:
    """What happens when the page is loaded: it shows what its address names."""
    tab, results = page.tab, page.tab.results

    def open_address(data: Updates, request: gr.Request) -> Updates:
        query = dict(getattr(request, "query_params", None) or {})
        view = addresses.view_of(query)
        updates: Updates = {tab.error: gr.skip()}
        if view is not None:
            data = {**data, results.active: tab_of(view)}
        try:
            values = addresses.from_query(query)
            run_id = query.get("run")
            if run_id is None and view is not None and "prompt" not in values:
                run_id = next(iter(page.library.shipped()), None)
            if run_id is not None:
                updates = page.open_id(run_id, data)
        except UAGError as error:
            return {tab.error: token_html.error(str(error))}
        for name, value in values.items():
            if name in tab.inputs:
                updates[tab.inputs[name]] = gr.update(value=value)
        if view is not None:
            updates[results.active] = tab_of(view)
        return updates

    return open_address


def snippets(parts: dict[str, str], view: str, theme: str) -> tuple[str, str, str]:
    """A link to the whole page, an iframe of a compact view, and gradio's web component.

    With "{page}" where the browser puts the page's own address.
    """
    shown = {"view": view, **parts}
    if theme != "system":
        shown["__theme"] = theme
    source = html.escape(addresses.address(shown), quote=True)
    frame = (
        f'<iframe src="{source}" title="UAG Studio" width="100%" height="{HEIGHTS[view]}" '
        'loading="lazy" style="border:0"></iframe>'
    )
    mode = "" if theme == "system" else f' theme_mode="{theme}"'
    script = f"https://gradio.s3-us-west-2.amazonaws.com/{gr.__version__}/gradio.js"
    component = (
        f'<script type="module" src="{script}"></script>\n'
        f'<gradio-app src="{{page}}"{mode}></gradio-app>'
    )
    return addresses.address(parts), frame, component


def create_panel(page: RunPage) -> None:
    """The Embed panel under the results, and its events."""
    tab, results = page.tab, page.tab.results
    gr.HTML(OPEN_LINK, apply_default_css=False)
    with gr.Accordion("Embed", open=False, elem_id="embed") as panel:
        with gr.Row():
            view = gr.Radio(
                list(addresses.VIEWS), value="compare", label="View", elem_id="embed-view"
            )
            theme = gr.Radio(list(THEMES), value="system", label="Theme", elem_id="embed-theme")
        note = gr.HTML(elem_id="embed-note", apply_default_css=False)
        boxes = [
            gr.Textbox(
                label=label, lines=lines, interactive=False, buttons=["copy"], elem_id=elem_id
            )
            for label, lines, elem_id in (
                ("Link", 2, "embed-link"),
                ("Frame, for any page", 4, "embed-frame"),
                ("Web component, for the whole app", 3, "embed-component"),
            )
        ]
    usual = {name: component.value for name, component in tab.inputs.items()}

    def fill(data: Updates) -> list[str]:
        packed = data.get(results.current)
        run_id = unpack(packed)["id"] if packed else None
        if run_id:
            parts, line = {"run": run_id}, "Opens on the run that is shown; nothing is computed."
        else:
            form = {name: data.get(component) for name, component in tab.inputs.items()}
            try:
                parts = addresses.to_query(form, usual)
            except UAGError as error:
                return [
                    token_html.error(str(error)).replace(' id="uag-error-text"', ""),
                    "",
                    "",
                    "",
                ]
            line = (
                "Keeps the pair, the prompt and the settings. To open it on a run, share the run "
                "or open a recorded one."
            )
        texts = snippets(parts, data.get(view) or "compare", data.get(theme) or "system")
        return [f'<p class="uag-share-note">{line}</p>', *texts]

    reads: set[Block] = {*tab.inputs.values(), results.current, view, theme}
    for event in (panel.expand, view.change, theme.change):
        event(fill, inputs=reads, outputs=[note, *boxes], **QUIET).then(
            None, inputs=boxes, outputs=boxes, js=COMPLETE, **QUIET
        )
