"""The rows behind the charts: folds over the events of a run document, without any drawing."""

from __future__ import annotations

from typing import Any

from uag_core.events import Event, Finished, Started, Verified, from_json
from uag_core.ui import methods

Run = dict[str, Any]
ENGINES = {
    "baseline": "Plain, same shapes",
    "baseline_unpadded": "Plain, fastest",
    **methods.NAMES,
    "transformers": "transformers, plain",
    "transformers_uag": "transformers, UAG",
    "transformers_lookup": "transformers, lookup",
}
_KINDS = (Started.__name__, Verified.__name__, Finished.__name__)


def name_of(engine: str, run: Run) -> str:
    """What an engine is called; where there is one plain baseline it is just "Plain"."""
    if engine == "baseline" and "baseline_unpadded" not in (run.get("events") or {}):
        return "Plain"
    return ENGINES.get(engine, engine)


def method_of(run: Run) -> str:
    return str(run["result"].get("method") or "uag")


def order_of(run: Run) -> list[str]:
    """The engines that have events: the assisted one, then the plain ones, then the others."""
    events = run.get("events") or {}
    first = [method_of(run), "baseline_unpadded", "baseline"]
    return [name for name in (*first, *(n for n in events if n not in first)) if events.get(name)]


def events_of(run: Run, engine: str) -> list[Event]:
    """An engine's Started, Verified and Finished events."""
    recorded = (run.get("events") or {}).get(engine) or ()
    return [from_json(event) for event in recorded if event["type"] in _KINDS]


def rounds_of(run: Run) -> list[Verified]:
    """The assisted run's rounds, without the prefill."""
    events = events_of(run, method_of(run))
    return [event for event in events if isinstance(event, Verified) and event.round > 0]


def tokens_over_time(run: Run, engine: str) -> list[tuple[float, int]]:
    """(seconds on the run's clock, tokens so far) after every step that wrote something."""
    rows, count = [], 0
    for event in events_of(run, engine):
        if isinstance(event, Verified) and event.tokens:
            count += len(event.tokens)
            rows.append((event.t, count))
    return rows


def written_before(run: Run) -> list[int]:
    """For each round, how many tokens the answer had when it began."""
    count, before = 0, []
    for event in events_of(run, method_of(run)):
        if isinstance(event, Verified):
            if event.round > 0:
                before.append(count)
            count += len(event.tokens)
    return before
