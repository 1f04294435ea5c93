"""The events around runs: which button calls which handler of `RunPage`. Nothing else."""

from __future__ import annotations

from typing import Any

import gradio as gr

from uag_core.ui import embed
from uag_core.ui.run_page import RunPage

# The browser saves the file that the server made: a button's own value is fetched before a click.
SAVE_FILE = """(file) => {
  if (!file || !file.url) return;
  const link = document.createElement('a');
  link.href = file.url;
  link.download = file.orig_name || 'uag-run.json';
  document.body.appendChild(link);
  link.click();
  link.remove();
}"""
# Only the browser knows the address under which the visitor sees this page.
WHOLE_LINK = """(link) => link && link.startsWith('?')
  ? window.location.origin + window.location.pathname + link : link"""

QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}


def wire(page: RunPage, demo: gr.Blocks) -> None:
    """Binds every event around runs; `demo` opens the run that its address names."""
    tab, results = page.tab, page.tab.results
    actions, versus, current = results.actions, results.versus, results.current
    reads, fills = page.inputs, page.outputs

    results.wire()
    demo.load(embed.opener(page), inputs=reads, outputs=[*fills, results.active], **QUIET)
    for button, run_id in tab.bar.recorded:
        button.click(page.opener(run_id), inputs=reads, outputs=fills, **QUIET)
    upload = tab.bar.upload
    upload.upload(page.open_file, inputs={*reads, upload}, outputs=[*fills, upload], **QUIET)

    actions.download.click(
        page.download, inputs={current}, outputs=[actions.file, tab.error], **QUIET
    ).then(None, inputs=[actions.file], js=SAVE_FILE, **QUIET)
    panel = [actions.panel, actions.note, actions.create, actions.link]
    complete: dict[str, Any] = {"inputs": [actions.link], "outputs": [actions.link]}
    actions.share.click(
        page.ask_to_share, inputs={current}, outputs=[*panel, tab.error], **QUIET
    ).then(None, js=WHOLE_LINK, **complete, **QUIET)
    actions.create.click(
        page.share, inputs={current}, outputs=[*panel, current, tab.error], **QUIET
    ).then(None, js=WHOLE_LINK, **complete, **QUIET)
    actions.close.click(lambda: gr.update(visible=False), outputs=[actions.panel], **QUIET)

    versus.compare.click(
        page.compare_chosen,
        inputs={current, versus.other, versus.previous},
        outputs=[versus.table],
        **QUIET,
    )
    versus.upload.upload(
        page.compare_file,
        inputs={current, versus.upload},
        outputs=[versus.table, versus.upload],
        **QUIET,
    )
