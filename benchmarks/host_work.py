"""Host work per round on the embedded pair: everything outside the two models' forwards.

    python -m benchmarks.host_work [--tokens 96] [--repeats 3]

Forwards are timed by hooks on the two models, so that the draft loop's own work (choosing a token,
looking at its confidence, making tensors, rolling back) counts as host work. Prints medians in
milliseconds.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter

import torch

from uag_core import AssistantConfig, GenerationSettings, ModelPair
from uag_core.events import Verified

SHORT = "Explain how rain forms, and give an example of a place where it rains every day. "
LENGTHS = (100, 4000)


@contextmanager
def timed_forwards(pair: ModelPair, spent: list[float]) -> Iterator[None]:
    """Add the time of every model forward to `spent[0]`; nothing else counts as one."""
    started = [0.0]

    def before(*_: object) -> None:
        started[0] = perf_counter()

    def after(*_: object) -> None:
        spent[0] += perf_counter() - started[0]

    hooks = []
    for lm in (pair.target, pair.assistant):
        if lm is not None:
            hooks.append(lm.model.register_forward_pre_hook(before))
            hooks.append(lm.model.register_forward_hook(after))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def prompt_ids(pair: ModelPair, count: int) -> list[int]:
    """Plain text of exactly `count` target tokens."""
    ids = pair.target.codec.encode(SHORT)
    return (ids * (count // len(ids) + 1))[:count]


def host_times(pair: ModelPair, count: int, tokens: int) -> list[float]:
    """Seconds of host work of every draft round behind a prompt of `count` tokens."""
    spent, before, result = [0.0], 0.0, []
    last = 0.0
    with timed_forwards(pair, spent):
        stream = pair.stream(
            prompt_ids(pair, count),
            GenerationSettings(max_new_tokens=tokens, eos_token_ids=()),
            AssistantConfig(num_assistant_tokens=4),
        )
        for event in stream:
            if not isinstance(event, Verified):
                continue
            if event.round > 1 and event.num_candidates:
                result.append(event.t - last - (spent[0] - before))
            last, before = event.t, spent[0]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtype", default="auto")
    arguments = parser.parse_args()
    pair = ModelPair(dtype=arguments.dtype)
    for count in LENGTHS:
        host_times(pair, count, 8)  # warm-up
    times: dict[int, list[float]] = {count: [] for count in LENGTHS}
    for repeat in range(arguments.repeats):
        for count in LENGTHS if repeat % 2 == 0 else reversed(LENGTHS):
            times[count] += host_times(pair, count, arguments.tokens)
    medians = {count: 1e3 * median(values) for count, values in times.items()}
    report = {
        "machine": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "dtype": pair.target.dtype,
        "rounds": {count: len(values) for count, values in times.items()},
        "host_ms_median": medians,
        "ratio_long_to_short": medians[LENGTHS[1]] / medians[LENGTHS[0]],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
