"""A benchmark on a local Ray cluster of several processes, one of which is killed midway."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from typing import Any

import pytest

from tests.benchmark.rows import row
from uag_core import cluster
from uag_core.benchmark.plan import Plan
from uag_core.benchmark.suites import BenchPrompt
from uag_core.cli import main
from uag_core.cluster import Cluster, ClusterProgress
from uag_core.config import GenerationSettings
from uag_core.errors import InputError, NotBuiltError, RunError

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)
PROMPTS = tuple(
    BenchPrompt(f"p{index:02}", "story" if index % 2 else "list", f"The {index} cats sat on the")
    for index in range(12)
)
PLAN = Plan(
    prompts=PROMPTS, methods=("uag",), settings=GenerationSettings(max_new_tokens=16), raw=True
)
ONE_MACHINE = {"num_cpus": 3, "object_store_memory": 100_000_000}


def tiny_pair(**_: Any) -> Any:
    """Built in the worker: random weights from fixed seeds, so that every worker has the same."""
    from tests.fixtures.models import tiny
    from uag_core.pair import ModelPair

    return ModelPair.from_models(tiny("byte_level_a"), tiny("byte_level_b"))


def dying_pair(**_: Any) -> Any:
    os._exit(3)


def refusing_pair(**_: Any) -> Any:
    raise InputError("There is no such model.")


def local(workers: int = 3, **changes: Any) -> Cluster:
    return Cluster(workers=workers, cpus=1, options=ONE_MACHINE, **changes)


def test_without_ray_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(NotBuiltError, match="pip install ray"):
        cluster.bench(PLAN, {}, Cluster())


def part(prompt: str, machine: str = "a", exact: bool = True) -> dict[str, Any]:
    rows = [row("baseline", prompt), row("uag", prompt, tpot=0.01)]
    return {
        "machine": {"cpu": machine},
        "pair": {"path": "text"},
        "settings": {"exact": exact},
        "notices": ["Mind this."],
        "measured": rows,
    }


def test_parts_are_merged_in_the_order_of_the_prompts() -> None:
    parts = [part("p03", "b"), part("p01"), part("p00")]
    document = cluster.merge(PLAN, parts, workers=2, deaths=1)
    assert [r["prompt_id"] for r in document["rows"]] == ["p00"] * 2 + ["p01"] * 2 + ["p03"] * 2
    assert document["summary"]["uag"]["num_prompts"] == 3
    assert document["summary"]["uag"]["decode_speedup"]["geomean"] == pytest.approx(2.0)
    assert document["notices"] == ["Mind this."]
    assert document["settings"]["exact"] is True
    assert document["cluster"]["deaths"] == 1
    assert len(document["cluster"]["machines"]) == 2


@needs_ray
def test_a_worker_that_is_killed_midway_costs_nothing_but_time() -> None:
    seen: list[ClusterProgress] = []
    killed: list[int] = []

    def watch(progress: ClusterProgress) -> None:
        seen.append(progress)
        known = [pid for pid in progress.workers if pid]
        if progress.done and known and not killed:
            killed.append(known[-1])
            os.kill(known[-1], signal.SIGKILL)

    document = cluster.bench(PLAN, {}, local(), make_pair=tiny_pair, progress=watch)
    assert killed
    assert document["cluster"] == {
        "workers": 3,
        "deaths": 1,
        "machines": document["cluster"]["machines"],
    }
    alone = tiny_pair().bench_stream(PLAN)
    *_, last = alone

    def essence(found: dict[str, Any]) -> list[tuple[Any, ...]]:
        keys = ("prompt_id", "method", "num_new_tokens", "token_ids_sha256", "identical")
        rows = [tuple(row[key] for key in keys) for row in found["rows"]]
        return sorted(rows, key=lambda row: row[:2])  # the engines of a prompt take turns

    assert essence(document) == essence(last.document)
    assert document["settings"] == last.document["settings"]
    assert seen[-1].done == seen[-1].total == len(PROMPTS)
    assert [p.done for p in seen] == sorted(p.done for p in seen)


@needs_ray
def test_workers_that_keep_dying_end_it_with_one_line() -> None:
    with pytest.raises(RunError, match="workers died while they measured"):
        cluster.bench(PLAN, {}, local(1, retries=1), make_pair=dying_pair)


@needs_ray
def test_an_error_of_the_pair_arrives_as_itself() -> None:
    with pytest.raises((InputError, RunError), match="There is no such model"):
        cluster.bench(PLAN, {}, local(1), make_pair=refusing_pair)


@needs_ray
def test_a_cluster_that_is_not_there_is_one_line() -> None:
    with pytest.raises(RunError, match="cannot be used") as caught:
        cluster.bench(PLAN, {}, Cluster(address="127.0.0.1:9"))
    assert "\n" not in str(caught.value)


def test_the_command_line_says_what_is_missing(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("One, two, three,\n")
    usual = ["bench", "--prompts", str(prompts)]
    assert main([*usual, "--ray", "local"]) == 2
    assert "pip install ray" in capsys.readouterr().err
    assert main([*usual, "--workers", "2"]) == 2
    assert "needs --ray" in capsys.readouterr().err
