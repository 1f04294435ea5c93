"""The recorded time lines of a run as compact JSON for the page's replay.

Times are seconds on each engine's own clock; texts are what became complete at each step, so that
together they are the output. Pure; knows neither gradio nor torch.
"""

from __future__ import annotations

from typing import Any

from uag_core.events import Event, Finished, Verified
from uag_core.ui.alignment_json import compact
from uag_core.ui.charts.folds import events_of, method_of, name_of, order_of


def replay_json(run: dict[str, Any]) -> str:
    """What the Replay view plays of a run document.

    `{"lanes": [{"key", "name", "shown", "end": seconds, "tokens": number, "frames": [[seconds,
    tokens so far, new text]]}]}`; the lanes stand as the panels of the page do, plain decoding and
    then the assisted run. `shown` are those that are played at first: the assisted run and plain
    decoding of its shapes. Tokens of one round share a frame.
    """
    order = order_of(run)
    first = ["baseline" if "baseline" in order else "baseline_unpadded", method_of(run)]
    order = [*(name for name in first if name in order), *(n for n in order if n not in first)]
    lanes = [
        {
            "key": engine,
            "name": name_of(engine, run),
            "shown": engine in first,
            **_frames(events_of(run, engine)),
        }
        for engine in order
    ]
    return compact({"lanes": lanes})


def _frames(events: list[Event]) -> dict[str, Any]:
    frames: list[list[Any]] = []
    count, written = 0, ""
    for event in events:
        if isinstance(event, Verified):
            count += len(event.tokens)
            written += event.text
            frames.append([round(event.t, 6), count, event.text])
        elif isinstance(event, Finished):
            rest = event.text.removeprefix(written)
            if rest != event.text or not written:
                frames.append([round(event.wall_s, 6), count, rest])
    end = max((frame[0] for frame in frames), default=0.0)
    return {"end": end, "tokens": count, "frames": frames}
