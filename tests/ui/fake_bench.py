"""A scripted benchmark: rows with times that depend on the method and the kind of prompt.

`fake/long` takes many seconds unless it is cancelled, `fake/fails` dies at the second prompt.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from tests.benchmark.rows import row
from uag_core.benchmark.plan import Plan
from uag_core.benchmark.runner import BenchDone, BenchProgress, BenchRows
from uag_core.benchmark.summary import tables

TPOT = {
    "baseline": 0.022,
    "uag": 0.014,
    "lookup": 0.018,
    "uag+lookup": 0.012,
    "transformers": 0.025,
    "transformers_uag": 0.03,
    "transformers_lookup": 0.024,
}


def tpot(method: str, count: int | None, prompt: int) -> float:
    """Seconds a token; a few prompts are slower than plain decoding."""
    base = TPOT[method] * (1 + 0.06 * (prompt % 5))
    return base * (1 + 0.04 * abs(count - 4)) if count else base


def document(plan: Plan, rows: list[dict[str, Any]], target: str) -> dict[str, Any]:
    model = {"id": target, "revision": None, "dtype": "bfloat16", "device": "cpu"}
    return {
        "schema_version": 1,
        "machine": {"processor": "A processor", "threads": 2, "torch": "2", "devices": ["cpu"]},
        "pair": {"target": model, "assistant": {**model, "id": "fake/draft"}, "path": "text"},
        "settings": plan.to_dict(),
        "notices": [],
        **tables(rows, sweep=plan.sweep),
    }


def stream(plan: Plan, target: str, cancel: threading.Event) -> Iterator[Any]:
    variants = plan.variants()
    total = len(plan.prompts) * plan.repeats * len(variants)
    rows: list[dict[str, Any]] = []
    done = 0
    for repeat in range(plan.repeats):
        for index, item in enumerate(plan.prompts):
            group = []
            for variant in variants:
                if target == "fake/fails" and index == 1:
                    raise ValueError("secret internals /home/somebody/model")
                left = None if not done else (total - done) * 0.1
                yield BenchProgress(done, total, variant.method, item.id, left)
                cancel.wait({"fake/long": 0.4, "fake/paced": 0.02}.get(target, 0.002))
                if cancel.is_set():
                    yield BenchDone(document(plan, rows, target))
                    return
                group.append(
                    row(
                        variant.method,
                        item.id,
                        tpot=tpot(variant.method, variant.num_assistant_tokens, index),
                        category=item.category,
                        repeat=repeat,
                        count=variant.num_assistant_tokens,
                    )
                )
                done += 1
            rows += group
            yield BenchRows(tuple(group))
    yield BenchDone(document(plan, rows, target))
