"""Measures every engine on every prompt, interleaved, and hands over a row for each run.

For each prompt and repeat all engines run one after another in an order that rotates; a warm-up is
excluded; what a stopped benchmark has measured is kept. Knows the engines of a pair; takes no
lock, loads no model, writes no file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from uag_core import metrics
from uag_core.benchmark.contenders import BenchJob, BenchProgress, Contender, contenders
from uag_core.benchmark.plan import rotated
from uag_core.benchmark.summary import build, machine_of, pair_of
from uag_core.config import REFERENCES, GenerationSettings
from uag_core.decoding.engines import Prompt
from uag_core.events import Event, Finished
from uag_core.models.memory import is_out_of_memory

_WARMUP_TOKENS = 8
_DROPPED = ("text", "token_ids")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BenchRows:
    """The rows of one prompt and repeat, all engines measured."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class BenchDone:
    """The `bench --json` object."""

    document: dict[str, Any]


BenchStep = BenchProgress | BenchRows | BenchDone


def bench(
    job: BenchJob, resume: Callable[[dict[str, Any]], Sequence[Row]] | None = None
) -> Iterator[BenchStep]:
    """Run a benchmark: progress, the rows of every prompt and repeat, and at last the result.

    `resume(header)` returns rows of an earlier part of the same benchmark. When `job.cancelled()`
    becomes true, the result holds the prompts that were finished.
    """
    plan = job.plan
    engines = yield from contenders(job)
    rows: list[Row] = [dict(row) for row in (resume(header(job)) if resume else ())]
    finished = {(row["prompt_id"], row["repeat"]) for row in rows}
    left = [
        (repeat, index)
        for repeat in range(plan.repeats)
        for index, item in enumerate(plan.prompts)
        if (item.id, repeat) not in finished
    ]
    clock = _Clock(len(left) * len(engines))
    if left:
        yield from _warm_up(job, engines, left[0][1], clock)
    for repeat, index in left:
        group: list[Row] = []
        whole = True
        for engine in rotated(list(engines), repeat * len(plan.prompts) + index):
            if engine not in engines:
                continue
            if job.cancelled():
                whole = False
                break
            row = yield from _measure(job, engine, engines, index, repeat, clock)
            clock.step()
            if row is not None:
                group.append(row)
        if not whole or any(row["finish_reason"] == "cancelled" for row in group):
            break
        rows += group
        yield BenchRows(tuple(group))
    yield BenchDone(build(job.engines, plan, rows, job.notices, job.compile_s))


def header(job: BenchJob) -> dict[str, Any]:
    """What a file of rows begins with: who was measured, where, and how."""
    return {
        "machine": machine_of(job.engines),
        "pair": pair_of(job.engines),
        "settings": job.plan.to_dict(),
    }


class _Clock:
    """Runs done and the time that the others will take at the same pace."""

    def __init__(self, total: int) -> None:
        self.done, self.total = 0, total
        self._start: float | None = None

    def step(self) -> None:
        self.done += 1

    @property
    def remaining_s(self) -> float | None:
        if self._start is None:
            self._start = perf_counter()
        if not self.done:
            return None
        return (perf_counter() - self._start) / self.done * (self.total - self.done)


def _warm_up(
    job: BenchJob, engines: list[Contender], index: int, clock: _Clock
) -> Iterator[BenchProgress]:
    """A few tokens through every engine, so that no run pays for being the first."""
    limit = min(_WARMUP_TOKENS, job.plan.settings.max_new_tokens)
    settings = replace(job.plan.settings, max_new_tokens=limit)
    for engine in list(engines):
        name = engine.variant.method
        for event in _guarded(job, engine, engines, engine.prompts[index], settings):
            if job.cancelled():
                return
            yield BenchProgress(0, clock.total, name, "", None, event, warmup=True)


def _guarded(
    job: BenchJob,
    engine: Contender,
    engines: list[Contender],
    prompt: Prompt,
    settings: GenerationSettings,
) -> Iterator[Event]:
    """A run's events; a reference engine that fails is dropped with a notice."""
    name = engine.variant.method
    try:
        yield from engine.run(prompt, settings)
    except Exception as error:
        if name not in REFERENCES or is_out_of_memory(error):
            raise
        engines.remove(engine)
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        job.notices.append(f"{name} failed and is left out: {type(error).__name__}: {reason}")


def _measure(
    job: BenchJob,
    engine: Contender,
    engines: list[Contender],
    index: int,
    repeat: int,
    clock: _Clock,
) -> Generator[BenchProgress, None, Row | None]:
    """One run; returns its row, or None where the engine failed."""
    item, prompt = job.plan.prompts[index], engine.prompts[index]
    events: list[Event] = []
    for event in _guarded(job, engine, engines, prompt, job.plan.settings):
        events.append(event)
        yield BenchProgress(
            clock.done, clock.total, engine.variant.method, item.id, clock.remaining_s, event
        )
    if engine not in engines or not isinstance(events[-1], Finished):
        return None
    for line in metrics.notices(events):
        if line not in job.notices:
            job.notices.append(line)
    return {
        "method": engine.variant.method,
        "category": item.category,
        "prompt_id": item.id,
        "repeat": repeat,
        "num_assistant_tokens": engine.variant.num_assistant_tokens,
        "width": engine.width,
        "num_prompt_tokens_target": len(prompt.target_ids),
        **_figures(engine, events),
    }


def _figures(engine: Contender, events: list[Event]) -> Mapping[str, Any]:
    """The metrics of a run, with a digest of the ids in place of the text and the ids."""
    data = metrics.timing(events)
    if engine.variant.config is not None:
        data = metrics.summarize(events)
        # speedup_bound is this times the plain TPOT, which is known when all runs are in.
        data["bound_tokens_per_second"] = metrics.speedup_bound(events, 1.0)
    digest = hashlib.sha256(repr(data["token_ids"]).encode()).hexdigest()[:16]
    return {**{k: v for k, v in data.items() if k not in _DROPPED}, "token_ids_sha256": digest}
