"""Host work per round on the embedded pair: everything outside the two models' forwards.

    python -m benchmarks.host_work [--tokens 96] [--repeats 3] [--lengths 100,4000,8000]

Measured three times over. `round`: what a run reports beside drafting and verification, which is
the o of speedup = tokens per round / (v + d c + o): proposing, re-encoding, choosing, committing,
events. `host`: forwards are timed where the engine calls the models, so that the draft loop's own
work (choosing a token, looking at its confidence, filling tensors, rolling back) counts as well.
In both, every forward leaves the processor's caches full of weights, and the Python code that
follows runs cold. `replayed`: the forwards of one run are recorded and answered from the record,
so that what remains is the engine's code alone, warm. Prints medians in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import torch

from uag_core import AssistantConfig, GenerationSettings, ModelPair
from uag_core.events import Verified
from uag_core.models.handle import LanguageModel

CONFIG = AssistantConfig(num_assistant_tokens=4)
SHORT = "Explain how rain forms, and give an example of a place where it rains every day. "


class Timed:
    """Stands in for a model: calls it and adds the time to `spent[0]`, or answers from a record."""

    def __init__(self, model: Any, spent: list[float]) -> None:
        self._model = model
        self._spent = spent
        self._record: list[torch.Tensor] = []
        self._position: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def replay(self) -> None:
        """From now on answer with the recorded logits, from the first one on."""
        self._position = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        if self._position is not None:
            output = SimpleNamespace(logits=self._record[self._position])
            self._position += 1
        else:
            output = self._model(*args, **kwargs)
            self._record.append(output.logits.clone())
        self._spent[0] += perf_counter() - start
        return output


@contextmanager
def timed_models(pair: ModelPair, spent: list[float]) -> Iterator[list[Timed]]:
    """Both models replaced by `Timed` ones for a while."""
    drafter = pair.engines.drafter(CONFIG)
    handles: list[LanguageModel] = [pair.target, *([drafter.model] if drafter else [])]
    stand_ins = [Timed(lm.model, spent) for lm in handles]
    try:
        for lm, stand_in in zip(handles, stand_ins, strict=True):
            lm.model = stand_in
        yield stand_ins
    finally:
        for lm, stand_in in zip(handles, stand_ins, strict=True):
            lm.model = stand_in._model


def prompt_ids(pair: ModelPair, count: int) -> list[int]:
    """Plain text of exactly `count` target tokens."""
    ids = pair.target.codec.encode(SHORT)
    return (ids * (count // len(ids) + 1))[:count]


def host_times(
    pair: ModelPair, prompt: list[int], tokens: int, spent: list[float]
) -> tuple[list[float], list[float]]:
    """Seconds of host work of every draft round but the first, which reads the prompt.

    As the clock sees it outside of the models, and as the run itself reports it.
    """
    result: list[float] = []
    reported: list[float] = []
    settings = GenerationSettings(max_new_tokens=tokens, eos_token_ids=())
    last, before = 0.0, spent[0]
    for event in pair.stream(prompt, settings, CONFIG):
        if not isinstance(event, Verified):
            continue
        if event.round > 1 and event.num_candidates:
            result.append(event.t - last - (spent[0] - before))
            reported.append(event.other_s + event.reencode_s)
        last, before = event.t, spent[0]
    return result, reported


def measure(
    pair: ModelPair, count: int, tokens: int
) -> tuple[list[float], list[float], list[float]]:
    """Host work of each round behind `count` tokens: all, as reported, and all when replayed."""
    prompt = prompt_ids(pair, count)
    spent = [0.0]
    host_times(pair, prompt, 8, spent)  # warm-up; what is measured about a pair is measured now
    with timed_models(pair, spent) as stand_ins:
        real, reported = host_times(pair, prompt, tokens, spent)
        replayed: list[float] = []
        for _ in range(3):
            for stand_in in stand_ins:
                stand_in.replay()
            replayed += host_times(pair, prompt, tokens, spent)[0]
    return real, reported, replayed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--lengths", default="100,4000,8000", help="prompt tokens, comma separated")
    arguments = parser.parse_args()
    lengths = [int(part) for part in arguments.lengths.split(",")]
    pair = ModelPair(dtype=arguments.dtype)
    real: dict[int, list[float]] = {count: [] for count in lengths}
    reported: dict[int, list[float]] = {count: [] for count in lengths}
    replayed: dict[int, list[float]] = {count: [] for count in lengths}
    for repeat in range(arguments.repeats):
        for count in lengths if repeat % 2 == 0 else reversed(lengths):
            room = pair.target.context_length - arguments.tokens - 8
            slow, said, fast = measure(pair, min(count, room), arguments.tokens)
            real[count] += slow
            reported[count] += said
            replayed[count] += fast
    shown = {count: 1e3 * median(values) for count, values in real.items()}
    rounds = {count: 1e3 * median(values) for count, values in reported.items()}
    code = {count: 1e3 * median(values) for count, values in replayed.items()}
    report = {
        "machine": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "dtype": pair.target.dtype,
        "rounds": {count: len(values) for count, values in real.items()},
        "round_ms_median": rounds,
        "host_ms_median": shown,
        "replayed_host_ms_median": code,
        "ratio_long_to_short": shown[lengths[-1]] / shown[lengths[0]],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
