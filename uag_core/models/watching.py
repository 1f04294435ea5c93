"""Listening to transformers while it loads a model, stopping it, and keeping it quiet.

transformers tells a hook about the loops that it would draw progress bars for. Here every turn of
such a loop is passed on as a line, and a listener that raises ends the load between two tensors.
Knows no models.
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

_EVERY_S = 0.3


class _Told:
    """A progress bar that reports to a function; everything else is the bar's own."""

    def __init__(self, bar: Any, items: Any, tell: Callable[[float | None], None]) -> None:
        self._bar, self._items, self._tell = bar, items, tell

    def __iter__(self) -> Iterator[Any]:
        total = len(self._items) if hasattr(self._items, "__len__") else None
        for number, item in enumerate(self._bar):
            self._tell(number / total if total else None)
            yield item

    def __enter__(self) -> Any:
        return self._bar.__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self._bar.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bar, name)


@contextlib.contextmanager
def watched(progress: Callable[[str], None] | None, what: str) -> Iterator[None]:
    """While the context is open, loads of this thread tell `progress` how far they are.

    Whatever `progress` raises comes out of the load. One context at a time in a process.
    """
    if progress is None:
        yield
        return
    from transformers.utils import logging

    thread, told = threading.get_ident(), time.monotonic()

    def tell(share: float | None) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= _EVERY_S:
            told = now
            progress(f"{what}." if share is None else f"{what}: {share:.0%}.")

    def hook(factory: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bar = factory(*args, **kwargs)
        items = args[0] if args else kwargs.get("iterable")
        if threading.get_ident() != thread or items is None:
            return bar
        return _Told(bar, items, tell)

    before = logging.set_tqdm_hook(hook)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the progress bars and warnings of transformers off the terminal for a while."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
