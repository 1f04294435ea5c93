"""Where runs are opened, saved, shared and compared: layout and markup only.

`RunsBar` stands above the panels, `RunActions` at the head of the results, `Versus` at their foot.
Wires no event and knows no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import gradio as gr

from uag_core.runs import difference
from uag_core.runs.document import RunDocument
from uag_core.runs.store import LIFE_DAYS
from uag_core.ui import token_html
from uag_core.ui.verdict import milliseconds, number, times

PREVIOUS = ":previous"  # no id of a run has a colon

SHARE_NOTE = (
    '<p class="uag-share-note">A link to this run will hold <strong>the prompt, the system '
    "prompt, every answer</strong>, the settings, the timings, and this machine's processor and "
    "versions. Anyone who has the link can read all of it. It is kept for at most "
    f"{LIFE_DAYS} days and cannot be taken back before.</p>"
)


@dataclass(frozen=True)
class RunsBar:
    """`recorded`: a button for each shipped run, with its id."""

    recorded: list[tuple[gr.Button, str]]
    upload: gr.UploadButton


@dataclass(frozen=True)
class RunActions:
    """`file` is hidden: it carries a download from the server to the browser."""

    line: gr.HTML
    download: gr.Button
    file: gr.DownloadButton
    share: gr.Button
    panel: gr.Column
    note: gr.HTML
    create: gr.Button
    close: gr.Button
    link: gr.Textbox


@dataclass(frozen=True)
class Versus:
    """`previous` holds the run that was shown before this one, packed."""

    accordion: gr.Accordion
    other: gr.Dropdown
    compare: gr.Button
    upload: gr.UploadButton
    table: gr.HTML
    previous: gr.State


def create_bar(shipped: Mapping[str, str]) -> RunsBar:
    with gr.Row(elem_id="recorded"):
        if shipped:
            gr.HTML(
                '<span class="uag-label" title="Shown as they were measured; no model is loaded">'
                "Recorded runs</span>",
                apply_default_css=False,
            )
        recorded = [
            (gr.Button(title, size="sm", min_width=0, elem_classes="uag-chip"), run_id)
            for run_id, title in shipped.items()
        ]
        upload = gr.UploadButton(
            "Open a run file…", size="sm", min_width=0, elem_id="open-run", elem_classes="uag-chip"
        )
    return RunsBar(recorded, upload)


def create_actions() -> RunActions:
    with gr.Row(elem_id="run-actions"):
        line = gr.HTML(elem_id="run-line", apply_default_css=False, min_width=200)
        download = gr.Button("Download run", size="sm", min_width=0, scale=0, elem_id="save-run")
        share = gr.Button("Share…", size="sm", min_width=0, scale=0, elem_id="share-run")
        file = gr.DownloadButton(visible="hidden", elem_id="run-file")
    with gr.Column(visible=False, elem_id="share-panel") as panel:
        note = gr.HTML(SHARE_NOTE, apply_default_css=False)
        link = gr.Textbox(
            visible=False, label="Link", buttons=["copy"], interactive=False, elem_id="share-link"
        )
        with gr.Row(elem_classes="uag-tight"):
            create = gr.Button(
                "Create link",
                variant="primary",
                size="sm",
                min_width=0,
                scale=0,
                elem_id="do-share",
            )
            close = gr.Button("Close", size="sm", min_width=0, scale=0)
    return RunActions(line, download, file, share, panel, note, create, close, link)


def create_versus(shipped: Mapping[str, str]) -> Versus:
    with gr.Accordion("Compare with another run", open=False, elem_id="versus") as accordion:
        with gr.Row(elem_classes="uag-versus"):
            other = gr.Dropdown(
                [(title, run_id) for run_id, title in shipped.items()],
                value=None,
                allow_custom_value=True,
                label="Other run",
                info="a recorded one, the one shown before, or a shared run's id or link",
                elem_id="other-run",
                min_width=240,
                scale=3,
            )
            compare = gr.Button("Compare", size="sm", min_width=96, scale=0, elem_id="compare-runs")
            upload = gr.UploadButton(
                "Open a run file…", size="sm", min_width=150, scale=0, elem_id="other-file"
            )
        table = gr.HTML(elem_id="versus-table", apply_default_css=False)
    return Versus(accordion, other, compare, upload, table, gr.State(None))


def day(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%d %H:%M UTC")


def run_line(run: RunDocument, *, expires: float | None = None) -> str:
    """Which run is shown: its title, when and on what it was measured."""
    machine = run["machine"]
    cores, threads = machine.get("cores"), machine.get("threads")
    facts = [f"measured {run['created'][:10]}"]
    facts += [str(machine["processor"])] if machine.get("processor") else []
    facts += [f"{cores} core{'' if cores == 1 else 's'}"] if cores else []
    facts += [f"{threads} thread{'' if threads == 1 else 's'}"] if threads else []
    facts += [name for name in machine["devices"] if name != "cpu"]
    if expires is not None:
        facts.append(f"this link expires {day(expires)}")
    return (
        f'<h2 class="uag-run-title">{token_html.text(run["title"])}</h2>'
        f'<p class="uag-note">{token_html.text(" · ".join(facts))}</p>'
    )


def _shown(row: difference.Row, value: float | None) -> str:
    if value is None:
        return "–"
    if row.unit == "×":
        return times(value)
    if row.unit == "s":
        return milliseconds(value)
    if row.label == "Acceptance rate":
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else number(value)


def versus_html(this: RunDocument, other: RunDocument) -> str:
    """The warnings and the table of two runs."""
    items = "".join(
        f"<li>{token_html.text(line)}</li>" for line in difference.warnings(this, other)
    )
    warned = (
        f'<ul class="uag-notices" aria-label="What differs besides">{items}</ul>'
        if items
        else '<p class="uag-note">Same models, prompt, settings and machine.</p>'
    )
    cells: list[tuple[str, ...]] = []
    for row in difference.rows(this, other):
        unit = f" ({row.unit})" if row.unit in ("tokens/s", "tokens") else ""
        cells.append(
            (
                f"{row.label}{unit}",
                _shown(row, row.this),
                _shown(row, row.other),
                times(row.ratio),
            )
        )
    names = ("", f"This: {_short(this)}", f"Other: {_short(other)}", "This / other")
    return warned + token_html.table("Both runs, number by number", names, cells)


def _short(run: RunDocument) -> str:
    title = str(run["title"])
    return title if len(title) <= 40 else f"{title[:39].rstrip()}…"
