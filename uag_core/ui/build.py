"""Puts the page together: tabs, endpoint, and the wiring of every event. Nothing else.

Knows which component triggers which handler; what a handler does is not its business.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import gradio as gr
from gradio.blocks import Block

from uag_core import hosting
from uag_core.runs.library import RunLibrary
from uag_core.ui import (
    api,
    api_models,
    benchmark_tab,
    benchmark_wiring,
    compare_tab,
    embed,
    model_field,
    model_picker,
    pair_tab,
    run_wiring,
    tokenize_tab,
)
from uag_core.ui.benchmark_handlers import BenchmarkHandlers
from uag_core.ui.fair_queue import FairQueue
from uag_core.ui.handlers import CompareHandlers
from uag_core.ui.run_page import RunPage
from uag_core.ui.runner import MakePair, default_pair

MODEL_SLOT = "model"  # every event that uses a model shares this one slot
MAX_WAITING = 32
CACHE_CHECK_S, CACHE_LIFE_S = 600, 3600  # uploaded and downloaded files, in seconds

HEADER = """
<header id="uag-header"><h1>UAG Studio</h1>
<p>Is this assistant worth it for your target? Plain decoding and Universal Assisted Generation
side by side, measured on this machine.</p></header>
"""


class StudioBlocks(gr.Blocks):
    """Blocks whose results may hold a key named "path".

    Python clients of the newest protocol take any dictionary with a text under "path" for a file
    and try to download it; the contract of `/compare` has such a key ("path": "text" or "ids").
    Under 2.1 they ask for a file's mark first. Everything else about the two is the same.
    """

    def get_config_file(self) -> Any:
        return {**super().get_config_file(), "protocol": "sse_v2.1"}

    def queue(self, *arguments: Any, **options: Any) -> Any:
        super().queue(*arguments, **options)
        self._queue.__class__ = FairQueue
        return self


def build_demo(
    make_pair: MakePair = default_pair,
    *,
    library: RunLibrary | None = None,
    get_tokenizer: tokenize_tab.GetTokenizer = tokenize_tab.default_tokenizer,
) -> gr.Blocks:
    """The whole app. `make_pair(target, assistant, dtype=, device=, progress=)` gives the pair.

    `library` holds the runs that can be opened by their id, `get_tokenizer(name)` gives a tokenizer
    without weights.
    """
    library = library or RunLibrary()
    with StudioBlocks(
        title="UAG Studio",
        analytics_enabled=False,
        fill_width=True,
        delete_cache=(CACHE_CHECK_S, CACHE_LIFE_S),
    ) as demo:
        gr.HTML(HEADER, apply_default_css=False)
        if has_login():
            gr.LoginButton("Log in for gated models", size="sm", elem_id="login")
        with gr.Tabs(elem_id="tabs"):
            with gr.Tab("Compare", id="compare"):
                tab = compare_tab.create_compare_tab(library.shipped())
                page = RunPage(tab, library)
                embed.create_panel(page)
            with gr.Tab("Benchmark", id="benchmark"):
                bench = benchmark_tab.create_benchmark_tab()
            with gr.Tab("Pair", id="pair"):
                pair = pair_tab.create_pair_tab()
            with gr.Tab("Tokenize", id="tokenize") as tokenize_front:
                tokenize = tokenize_tab.create_tokenize_tab()
        pair_tab.wire(pair)
        _wire(tab, CompareHandlers(tab, make_pair, page))
        forms: list[Any] = [tab.inputs, bench.inputs, vars(pair), vars(tokenize)]
        fields = [(role, form[role]) for form in forms for role in model_field.DEFAULTS]
        model_picker.wire(tab.picker, tab.inputs, fields)
        run_wiring.wire(page, demo)
        slot = {"concurrency_id": MODEL_SLOT, "concurrency_limit": 1}
        benchmark_wiring.wire(bench, BenchmarkHandlers(bench, make_pair), slot)
        benchmark_wiring.serve(make_pair, slot)
        gr.api(
            api.make_compare(make_pair),
            api_name="compare",
            concurrency_id=MODEL_SLOT,
            concurrency_limit=1,
        )
        tokenize_tab.wire(tokenize, tokenize_front, get_tokenizer)
        tokenize_tab.serve(get_tokenizer)
        gr.api(api.make_get_run(library), api_name="get_run", queue=False)
        gr.api(api_models.list_models, api_name="list_models", concurrency_limit=4)
    demo.queue(api_open=False, default_concurrency_limit=8, max_size=MAX_WAITING)
    return demo


def has_login() -> bool:
    """Whether visitors can log in: on a Space with `hf_oauth`, whose image has the libraries."""
    libraries = ("itsdangerous", "authlib")
    return hosting.current().login and all(find_spec(name) is not None for name in libraries)


def _wire(tab: compare_tab.CompareTab, handlers: CompareHandlers) -> None:
    form: set[Block] = {*tab.inputs.values()}
    buttons = [tab.run, tab.stop]
    line = [*buttons, tab.status, tab.error]
    page = [*line, tab.plain, tab.assisted, *tab.results.outputs]

    for button, example in tab.examples:
        button.click(
            lambda text=example.prompt: text,
            outputs=tab.prompt,
            queue=False,
            show_progress="hidden",
            api_visibility="private",
        )
    gr.on(
        [tab.run.click, tab.prompt.submit],
        handlers.begin,
        inputs={*form, tab.ticket},
        outputs=[*line, tab.ticket],
        concurrency_limit=None,
        show_progress="hidden",
        api_visibility="private",
    )
    running = tab.ticket.change(
        handlers.run,
        inputs={*form, *handlers.page.inputs},
        outputs=page,
        show_progress="minimal",
        show_progress_on=tab.status,
        concurrency_id=MODEL_SLOT,
        concurrency_limit=1,
        trigger_mode="multiple",
        api_visibility="private",
    )
    running.then(
        handlers.release,
        outputs=buttons,
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    tab.stop.click(
        handlers.stop,
        inputs={tab.withdrawn},
        outputs=[tab.stop, tab.status, tab.withdrawn],
        concurrency_limit=None,
        show_progress="hidden",
        api_visibility="private",
    )
    tab.withdrawn.change(
        handlers.withdraw,
        outputs=line,
        cancels=[running],
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
