"""Which component of the Benchmark tab triggers which handler. Nothing else."""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.blocks import Block

from uag_core.ui import bench_api
from uag_core.ui.benchmark_handlers import BenchmarkHandlers
from uag_core.ui.benchmark_tab import BenchmarkTab
from uag_core.ui.runner import MakePair


def wire(tab: BenchmarkTab, handlers: BenchmarkHandlers, slot: dict[str, Any]) -> None:
    """Wire the tab; `slot` are the options that every event with a model shares."""
    form: set[Block] = {*tab.inputs.values()}
    buttons = [tab.run, tab.stop]
    line = [*buttons, tab.status, tab.progress, tab.error]
    page = [*line, tab.results, tab.summary, tab.kinds, tab.sweep, tab.tables]
    page += [tab.downloads]
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}

    tab.upload.upload(
        handlers.upload,
        inputs=tab.upload,
        outputs=[tab.prompts, tab.error],
        concurrency_limit=None,
        **quiet,
    )
    tab.run.click(
        handlers.begin,
        inputs={*form, tab.ticket},
        outputs=[*line, tab.ticket],
        concurrency_limit=None,
        **quiet,
    )
    running = tab.ticket.change(
        handlers.run,
        inputs=form,
        outputs=page,
        show_progress="minimal",
        show_progress_on=tab.status,
        trigger_mode="multiple",
        api_visibility="private",
        **slot,
    )
    running.then(handlers.release, outputs=buttons, queue=False, **quiet)
    tab.stop.click(
        handlers.stop,
        inputs={tab.withdrawn},
        outputs=[tab.stop, tab.status, tab.withdrawn],
        concurrency_limit=None,
        **quiet,
    )
    tab.withdrawn.change(handlers.withdraw, outputs=line, cancels=[running], queue=False, **quiet)


def serve(make_pair: MakePair, slot: dict[str, Any]) -> None:
    """The endpoint `/benchmark`."""
    gr.api(bench_api.make_benchmark(make_pair), api_name="benchmark", **slot)
