"""The public endpoints `/compare` (streamed) and `/get_run`: typed arguments, plain JSON.

Names and defaults are those of the command line; programs outside the project rely on them.
Knows the runner and gradio's way of showing one error line, not the page. Annotations stay real
objects here (no `from __future__ import annotations`): gradio reads the endpoint's types off them.
"""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from uag_core import serialization
from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_MAX_NEW_TOKENS, DEFAULT_TARGET
from uag_core.errors import UAGError
from uag_core.runs.library import RunLibrary
from uag_core.ui.logins import asking_as
from uag_core.ui.progress import Progress
from uag_core.ui.request import CompareRequest, build_request
from uag_core.ui.runner import Failure, MakePair, batches


def shown(message: str) -> gr.Error:
    """An error that reaches the client as its one line, without a traceback in the log."""
    return gr.Error(message, print_exception=False)


def _running(progress: Progress) -> dict[str, Any]:
    lane = progress.lane
    return {
        "status": "running",
        "phase": progress.phase,
        "engine": progress.engine,
        "repeat": progress.repeat,
        "text": lane.text if lane is not None else "",
        "num_new_tokens": lane.num_new_tokens if lane is not None else 0,
    }


def stream_compare(
    asked: CompareRequest, make_pair: MakePair, cancel: threading.Event
) -> Iterator[dict[str, Any]]:
    """Status dictionaries, at most five a second, then the result. Raises `gr.Error`."""
    progress = Progress(method=asked.drafting.method, repeats=asked.repeats)
    for batch in batches(asked, make_pair, cancel):
        for item in batch:
            if hasattr(item, "document"):
                # Through JSON, so that a client gets what a file would hold and nothing else.
                document = json.loads(serialization.dumps(item.document))
                yield {"status": "done", "result": document}
                return
            if isinstance(item, Failure):
                raise shown(item.message)
            progress.add(item)
        yield _running(progress)
    raise shown("The run ended without a result.")


def make_compare(make_pair: MakePair) -> Callable[..., Any]:
    """The endpoint's function, bound to a pair factory."""

    def compare(  # type: ignore[misc]  # gradio reads the type of one item from "-> dict"
        prompt: str,
        target: str = DEFAULT_TARGET,
        assistant: str = DEFAULT_ASSISTANT,
        method: str = "uag",
        raw: bool = False,
        system: str | None = None,
        max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float | None = None,
        no_repeat_ngram_size: int | None = None,
        stop: list[str] | None = None,
        seed: int | None = None,
        dtype: str = "auto",
        device: str = "auto",
        exact: bool = True,
        num_assistant_tokens: int | None = None,
        assistant_confidence_threshold: float | None = None,
        references: list[str] | None = None,
        compile: bool = False,
        login: gr.OAuthToken | None = None,
    ) -> dict:
        """Runs plain decoding and UAG on one prompt and measures both.

        With `compile` both run compiled (minutes for the first time, not part of any figure).

        Streams {"status": "running", "engine", "text", ...} and ends with
        {"status": "done", "result": the same object that `compare --json` prints}.
        """
        values = dict(locals())
        del values["login"], values["make_pair"]
        pairs = asking_as(login, make_pair)
        cancel = threading.Event()
        try:
            yield from stream_compare(build_request(values), pairs, cancel)
        except UAGError as error:
            raise shown(str(error)) from None
        finally:
            cancel.set()

    return compare


def make_get_run(library: RunLibrary) -> Callable[..., Any]:
    """The endpoint's function, bound to the runs that can be opened."""

    def get_run(run_id: str) -> dict:
        """The run document of a recorded or shared run, by its id."""
        try:
            return library.open(run_id).run
        except UAGError as error:
            raise shown(str(error)) from None

    return get_run
