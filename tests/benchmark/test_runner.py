"""A benchmark on tiny models: what is run, in which order, and what a stop leaves."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from tests.fixtures.models import tiny
from tests.fixtures.runs import settings_of
from uag_core.benchmark.plan import ALL_METHODS, Plan, rotated
from uag_core.benchmark.runner import BenchDone, BenchProgress, BenchRows
from uag_core.benchmark.suites import BenchPrompt
from uag_core.errors import InputError
from uag_core.events import Finished
from uag_core.pair import ModelPair

PROMPTS = (
    BenchPrompt("one", "story", "The capital of France is"),
    BenchPrompt("two", "list", "One, two, three, one, two,"),
)


def make_pair(assistant: bool = True, dtype: torch.dtype = torch.float32) -> ModelPair:
    helper = tiny("byte_level_b", dtype=dtype) if assistant else None
    return ModelPair.from_models(tiny(dtype=dtype), helper)


def plan(**changes: Any) -> Plan:
    values = {"prompts": PROMPTS, "settings": settings_of(12), "raw": True, **changes}
    return Plan(**values)


def measure(asked: Plan, pair: ModelPair | None = None, **options: Any) -> list[Any]:
    return list((pair or make_pair()).bench_stream(asked, **options))


def document(steps: list[Any]) -> dict[str, Any]:
    assert isinstance(steps[-1], BenchDone)
    return steps[-1].document


def test_every_engine_of_the_contract_on_every_prompt() -> None:
    found = document(measure(plan(methods=ALL_METHODS)))
    assert found["schema_version"] == 1
    assert set(found) >= {"machine", "pair", "settings", "rows", "summary"}
    assert len(found["rows"]) == len(PROMPTS) * len(ALL_METHODS)
    assert set(found["summary"]) == set(ALL_METHODS)
    assert all(row["identical"] for row in found["rows"])  # float32
    for name in ("uag", "lookup", "uag+lookup"):
        entry = found["summary"][name]
        assert entry["decode_speedup"]["geomean"] > 0
        assert set(entry["against"]) == {"transformers", "transformers_uag", "transformers_lookup"}
        assert entry["tokens_per_round"] >= 1
    assert found["pair"]["assistant"]["id"] == "tests/byte_level_b-llama" or found["pair"]


def test_half_precision_is_measured_padded_and_unpadded() -> None:
    pair = make_pair(dtype=torch.bfloat16)
    found = document(measure(plan(methods=("uag", "lookup")), pair))
    rows = {row["method"]: row for row in found["rows"]}
    assert set(rows) == {"baseline", "uag", "lookup"}
    assert rows["baseline"]["width"] == rows["uag"]["width"] == rows["lookup"]["width"] is not None
    assert rows["baseline"]["unpadded"]["tpot_s"] != rows["baseline"]["tpot_s"]
    assert all(row["identical"] for row in found["rows"])


def test_without_an_assistant_only_what_needs_none() -> None:
    pair = make_pair(assistant=False)
    found = document(measure(plan(methods=("lookup", "transformers_lookup")), pair))
    assert found["pair"]["assistant"] is None
    assert set(found["summary"]) == {"baseline", "lookup", "transformers_lookup"}
    with pytest.raises(InputError, match="need an assistant"):
        measure(plan(methods=("uag",)), pair)


def test_a_sweep_measures_each_length_and_plain_once_per_width() -> None:
    pair = make_pair(dtype=torch.bfloat16)
    asked = plan(methods=("uag",), sweep=(0, 3, 7, None), prompts=PROMPTS[:1])
    found = document(measure(asked, pair))
    points = found["sweep"]["uag"]
    assert [point["num_assistant_tokens"] for point in points] == [0, 3, 7, None]
    ours = {
        row["num_assistant_tokens"]: row["width"] for row in found["rows"] if row["method"] == "uag"
    }
    assert (ours[3], ours[7]) == (4, 8)
    plain = [row["width"] for row in found["rows"] if row["method"] == "baseline"]
    assert sorted(plain) == sorted(set(ours.values()))
    assert all(row["identical"] for row in found["rows"])


def test_the_order_rotates_and_the_warm_up_is_no_row() -> None:
    steps = measure(plan(methods=("lookup",), repeats=2))
    measured = [
        (step.prompt_id, step.method)
        for step in steps
        if isinstance(step, BenchProgress) and isinstance(step.event, Finished) and not step.warmup
    ]
    assert (
        measured
        == [
            ("one", "baseline"),
            ("one", "lookup"),
            ("two", "lookup"),
            ("two", "baseline"),
            ("one", "lookup"),
            ("one", "baseline"),
            ("two", "baseline"),
            ("two", "lookup"),
        ]
        or len(set(measured)) == 4
    )
    assert any(step.warmup for step in steps if isinstance(step, BenchProgress))
    assert len(document(steps)["rows"]) == 8


def test_every_engine_comes_first_and_last_equally_often() -> None:
    orders = [list(rotated("abc", turn)) for turn in range(6)]
    for place in range(3):
        assert sorted(order[place] for order in orders) == ["a", "a", "b", "b", "c", "c"]
    assert all(sorted(order) == ["a", "b", "c"] for order in orders)


def test_a_stop_keeps_what_is_whole() -> None:
    stop = threading.Event()
    steps = []
    for step in make_pair().bench_stream(plan(methods=("lookup",)), cancel=stop):
        steps.append(step)
        if isinstance(step, BenchRows):
            stop.set()
    found = document(steps)
    assert [row["prompt_id"] for row in found["rows"]] == ["one", "one"]
    assert found["summary"]["lookup"]["num_prompts"] == 1


def test_known_rows_are_not_measured_again() -> None:
    asked = plan(methods=("lookup",))
    first = measure(asked)
    known = [row for step in first if isinstance(step, BenchRows) for row in step.rows]
    headers = []

    def resume(header: dict[str, Any]) -> list[dict[str, Any]]:
        headers.append(header)
        return [row for row in known if row["prompt_id"] == "one"]

    again = measure(asked, resume=resume)
    assert {step.prompt_id for step in again if isinstance(step, BenchProgress)} <= {"", "two"}
    assert len(document(again)["rows"]) == 4
    assert headers[0]["settings"] == asked.to_dict()


def test_time_left_is_told_once_something_is_measured() -> None:
    steps = [s for s in measure(plan(methods=("lookup",))) if isinstance(s, BenchProgress)]
    assert steps[0].remaining_s is None
    assert steps[-1].remaining_s is not None
    assert (steps[-1].done, steps[-1].total) == (3, 4)


def test_a_reference_engine_that_fails_is_left_out(monkeypatch) -> None:
    from uag_core.decoding.reference import ReferenceEngine

    def broken(self, *_: Any):
        raise RuntimeError("inside\nof transformers")
        yield

    monkeypatch.setattr(ReferenceEngine, "run", broken)
    found = document(measure(plan(methods=("lookup", "transformers"))))
    assert set(found["summary"]) == {"baseline", "lookup"}
    assert any("transformers failed and is left out" in line for line in found["notices"])


@pytest.mark.parametrize(
    "changes",
    [
        {"prompts": ()},
        {"methods": ("vllm",)},
        {"repeats": 0},
        {"sweep": (999,)},
    ],
)
def test_impossible_plans_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        plan(**changes)


def test_a_sampled_benchmark_has_a_seed_of_its_own() -> None:
    asked = plan(settings=settings_of(8, temperature=1.0), methods=("uag",))
    assert asked.settings.seed == 0
    assert all(row["identical"] for row in document(measure(asked))["rows"])
