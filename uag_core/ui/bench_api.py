"""The public endpoint `/benchmark`: typed arguments, plain JSON, streamed.

Ends with the object that `bench --json` prints. Annotations stay real objects here (no
`from __future__ import annotations`): gradio reads the endpoint's types off them.
"""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from uag_core import serialization
from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_MAX_NEW_TOKENS, DEFAULT_TARGET
from uag_core.errors import UAGError
from uag_core.ui.api import shown
from uag_core.ui.bench_request import BenchRequest, build_bench_request
from uag_core.ui.benchmark_handlers import BenchState
from uag_core.ui.logins import asking_as
from uag_core.ui.runner import Failure, MakePair, batches


def stream_benchmark(
    asked: BenchRequest, make_pair: MakePair, cancel: threading.Event
) -> Iterator[dict[str, Any]]:
    """Status dictionaries, at most five a second, then the result. Raises `gr.Error`."""
    state = BenchState()
    for batch in batches(asked, make_pair, cancel):
        for item in batch:
            if hasattr(item, "document"):
                document = json.loads(serialization.dumps(item.document))
                yield {"status": "done", "result": document}
                return
            if isinstance(item, Failure):
                raise shown(item.message)
            state.add(item)
        yield {
            "status": "running",
            "phase": state.phase,
            "method": state.method,
            "prompt_id": state.prompt_id,
            "done": state.done,
            "total": state.total,
            "remaining_s": state.remaining_s,
        }
    raise shown("The run ended without a result.")


def make_benchmark(make_pair: MakePair) -> Callable[..., Any]:
    """The endpoint's function, bound to a pair factory."""

    def benchmark(  # type: ignore[misc]  # gradio reads the type of one item from "-> dict"
        prompts: str | list = "",
        target: str = DEFAULT_TARGET,
        assistant: str = DEFAULT_ASSISTANT,
        methods: list[str] | None = None,
        max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS,
        repeats: int = 1,
        login: gr.OAuthToken | None = None,
    ) -> dict:
        """Measures engines over a set of prompts, interleaved.

        `prompts` is a list of texts or of objects with a prompt and a category, or a text with
        one of them a line; empty takes ten of the project's own. Streams {"status": "running",
        "done", "total", "remaining_s", ...} and ends with {"status": "done", "result": the same
        object that `bench --json` prints}.
        """
        values = {
            "prompts": prompts,
            "target": target,
            "assistant": assistant,
            "methods": methods,
            "max_new_tokens": max_new_tokens,
            "repeats": repeats,
        }
        cancel = threading.Event()
        try:
            pairs = asking_as(login, make_pair)
            yield from stream_benchmark(build_bench_request(values), pairs, cancel)
        except UAGError as error:
            raise shown(str(error)) from None
        finally:
            cancel.set()

    return benchmark
