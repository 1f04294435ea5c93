"""The Benchmark tab: layout only. Wires no event and knows no engine.

Every component that an event touches is a field of `BenchmarkTab`; `inputs` names those that make
up a request.
"""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr
from gradio.components import Component

from uag_core.benchmark.plan import BASELINE, DEFAULT_METHODS
from uag_core.config import (
    DEFAULT_MAX_NEW_TOKENS,
    DTYPES,
)
from uag_core.ui import model_field, token_html
from uag_core.ui.bench_charts import ENGINE_NAMES
from uag_core.ui.bench_request import DEFAULT_LIMIT, SUFFIXES
from uag_core.ui.compare_tab import number_field

STATUS, ERROR = "uag-bench-status-text", "uag-bench-error-text"
ENGINES = [(label, name) for name, label in ENGINE_NAMES.items() if name != BASELINE]


@dataclass(frozen=True)
class BenchmarkTab:
    """The components of the tab, by the role they play."""

    inputs: dict[str, Component]
    prompts: gr.Textbox
    upload: gr.UploadButton
    run: gr.Button
    stop: gr.Button
    status: gr.HTML
    progress: gr.HTML
    error: gr.HTML
    results: gr.Column
    summary: gr.HTML
    kinds: gr.Plot
    sweep: gr.Plot
    tables: gr.HTML
    downloads: gr.HTML
    ticket: gr.State
    withdrawn: gr.State


def _prompts(inputs: dict[str, Component]) -> tuple[gr.Textbox, gr.UploadButton]:
    prompts = gr.Textbox(
        label="Prompts",
        info="one per line, or JSON Lines with a prompt and a category",
        lines=9,
        max_lines=16,
        placeholder=f"Empty: {DEFAULT_LIMIT} of the project's own prompts, one of each kind.",
        elem_id="bench-prompts",
    )
    inputs["prompts"] = prompts
    with gr.Row(elem_classes="uag-tight"):
        upload = gr.UploadButton(
            "Upload a file of prompts",
            file_types=list(SUFFIXES),
            type="filepath",
            size="sm",
            min_width=180,
            elem_id="bench-upload",
        )
        inputs["limit"] = number_field("Prompts at most", "all that are given", "", "bench-limit")
    return prompts, upload


def _settings(inputs: dict[str, Component]) -> None:
    inputs["target"] = model_field.create("target", "bench-target")
    inputs["assistant"] = model_field.create("assistant", "bench-assistant")
    inputs["methods"] = gr.CheckboxGroup(
        ENGINES,
        value=[name for name in DEFAULT_METHODS if name != BASELINE],
        label="Engines",
        info="each is set against plain decoding, which always runs",
        elem_id="bench-methods",
    )
    with gr.Row(elem_classes="uag-tight"):
        inputs["max_new_tokens"] = number_field(
            "New tokens",
            str(DEFAULT_MAX_NEW_TOKENS),
            str(DEFAULT_MAX_NEW_TOKENS),
            "bench-max-new-tokens",
        )
        inputs["repeats"] = number_field("Repeats", "1", "1", "bench-repeats")


def _more(inputs: dict[str, Component]) -> None:
    with gr.Row():
        inputs["sweep"] = gr.Textbox(
            label="Draft lengths",
            info="to sweep over, as 0, 1, 2, 4, 8, auto; 0 is plain decoding",
            placeholder="auto",
            max_lines=1,
            min_width=260,
            elem_id="bench-sweep-lengths",
        )
        inputs["dtype"] = gr.Dropdown(
            list(DTYPES), value="auto", label="Precision", min_width=130, elem_id="bench-dtype"
        )
        inputs["device"] = gr.Dropdown(
            ["auto", "cpu", "cuda"],
            value="auto",
            allow_custom_value=True,
            label="Device",
            min_width=130,
            elem_id="bench-device",
        )
    inputs["exact"] = gr.Checkbox(
        True,
        label="Exact",
        info="fixed shapes, so that all texts are the same ids",
        elem_id="bench-exact",
    )
    inputs["compile"] = gr.Checkbox(
        False,
        label="Compile",
        info="torch.compile, every engine of ours; takes minutes once",
        elem_id="bench-compile",
    )


def create_benchmark_tab() -> BenchmarkTab:
    """Lays the tab out inside the current Blocks and returns its components."""
    inputs: dict[str, Component] = {}
    with gr.Row(elem_id="bench-ask"):
        with gr.Column(scale=3, min_width=320):
            prompts, upload = _prompts(inputs)
        with gr.Column(scale=2, min_width=300):
            _settings(inputs)
    with gr.Accordion("More settings", open=False, elem_id="bench-more"):
        _more(inputs)
    with gr.Row(elem_id="bench-actions"):
        run = gr.Button("Run", variant="primary", min_width=96, scale=0, elem_id="bench-run")
        stop = gr.Button("Stop", interactive=False, min_width=96, scale=0, elem_id="bench-stop")
        status = gr.HTML(
            token_html.status("Ready", name=STATUS),
            elem_id="bench-status",
            min_width=200,
            apply_default_css=False,
        )
    progress = gr.HTML(elem_id="bench-progress", apply_default_css=False)
    error = gr.HTML(
        token_html.error(None, name=ERROR), elem_id="bench-error", apply_default_css=False
    )
    with gr.Column(visible=False, elem_id="bench-results") as results:
        summary = gr.HTML(elem_id="bench-summary", apply_default_css=False)
        kinds = gr.Plot(show_label=False, elem_id="bench-kinds")
        sweep = gr.Plot(show_label=False, elem_id="bench-sweep")
        tables = gr.HTML(elem_id="bench-tables", apply_default_css=False)
        downloads = gr.HTML(elem_id="bench-downloads", apply_default_css=False)
    return BenchmarkTab(
        inputs=inputs,
        prompts=prompts,
        upload=upload,
        run=run,
        stop=stop,
        status=status,
        progress=progress,
        error=error,
        results=results,
        summary=summary,
        kinds=kinds,
        sweep=sweep,
        tables=tables,
        downloads=downloads,
        ticket=gr.State(0),
        withdrawn=gr.State(0),
    )
