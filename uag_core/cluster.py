"""A benchmark spread over the workers of a Ray cluster, and merged into one result.

Each worker is a process of its own that loads the pair once and measures some prompts at a time.
When one dies, its prompts go to another and a new one takes its place. Ray is an optional
dependency (`pip install ray`). Knows plans, pairs and rows; nothing of how a run is measured.
"""

from __future__ import annotations

import math
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uag_core.benchmark.plan import Plan
from uag_core.benchmark.suites import BenchPrompt
from uag_core.benchmark.summary import tables
from uag_core.errors import NotBuiltError, RunError, UAGError
from uag_core.serialization import SCHEMA_VERSION, clean

LOCAL = "local"
ROOT = Path(__file__).resolve().parents[1]
_SHIPPED = {  # to machines that have no checkout of their own
    "working_dir": str(ROOT),
    "excludes": [".git", ".venv", "venv", "tests", "docs", "assets/selfplay", "*.log"],
}
_WAIT_S = 0.5
_REACH_S = 5.0

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterProgress:
    """How far it has come: prompts measured, workers (process ids, 0 while one starts), deaths."""

    done: int
    total: int
    workers: tuple[int, ...]
    deaths: int


@dataclass(slots=True)
class Cluster:
    """Where and with how much. `address` is "local" or what `ray.init` takes ("auto", host:port).

    `workers` None: one for each GPU, or one where there is none, since workers that share cores
    disturb each other's timing. `cpus` and `gpus` are those of one worker. A part of the
    prompts that has cost `retries` + 1 workers ends the benchmark.
    """

    address: str = LOCAL
    workers: int | None = None
    cpus: int | None = None
    gpus: float | None = None
    retries: int = 2
    options: dict[str, Any] = field(default_factory=dict)  # for `ray.init`


@dataclass(slots=True)
class _Part:
    prompts: tuple[BenchPrompt, ...]
    deaths: int = 0


class Measurer:
    """What runs in a worker: a pair, and plans measured with it."""

    def __init__(self, make_pair: Callable[..., Any], models: dict[str, Any], threads: int) -> None:
        self._make_pair, self._models, self._threads = make_pair, models, threads
        self._pair: Any = None

    def pid(self) -> int:
        return os.getpid()

    def measure(self, plan: Plan) -> dict[str, Any]:
        """Rows as they were measured, and what the document of this part says about the rest."""
        if self._pair is None:  # not earlier: what goes wrong shall be an error of this call
            import torch

            torch.set_num_threads(max(1, self._threads))
            self._pair = self._make_pair(**self._models)
        rows: list[dict[str, Any]] = []
        document: Document = {}
        for step in self._pair.bench_stream(plan):
            if hasattr(step, "document"):
                document = step.document
            elif hasattr(step, "rows"):
                rows += step.rows
        head = {key: document.get(key) for key in ("machine", "pair", "settings", "notices")}
        return {**head, "measured": rows}


def bench(
    plan: Plan,
    models: dict[str, Any],
    cluster: Cluster,
    *,
    make_pair: Callable[..., Any] | None = None,
    progress: Callable[[ClusterProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Document:
    """The `bench --json` object of `plan`, measured by many workers.

    Args:
        models: arguments of `ModelPair` ("target", "assistant", "dtype", "device"), or of
            `make_pair`, which every worker can import.
        progress: called whenever something has changed.
        cancelled: when it becomes true, what was measured until then is the result.

    It has a further key "cluster": workers, deaths, and the machines that took part. Raises
    `NotBuiltError` without Ray, `RunError` when workers keep dying, and the pair's own errors.
    """
    ray = _ray()
    if make_pair is None:
        from uag_core.pair import ModelPair

        make_pair = ModelPair
    started = not ray.is_initialized()
    if started:
        _connect(ray, cluster)
    try:
        pool = _Pool(ray, cluster, make_pair, models)
        try:
            results, deaths = _run(ray, pool, plan, cluster, progress, cancelled)
        finally:
            pool.close()
    finally:
        if started:
            ray.shutdown()
    return merge(plan, results, workers=len(pool.actors), deaths=deaths)


def _ray() -> Any:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise NotBuiltError("A cluster needs Ray.", "Install it: pip install ray.") from None
    return ray


def _connect(ray: Any, cluster: Cluster) -> None:
    options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if cluster.address == LOCAL:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        options |= {
            "include_dashboard": False,
            "runtime_env": {"env_vars": {"PYTHONPATH": path}},
        }
    else:
        options |= {"address": cluster.address, "runtime_env": _SHIPPED}
    try:
        _reach(cluster.address)
        ray.init(**{**options, **cluster.options})
    except Exception as error:  # noqa: BLE001 - Ray raises many kinds
        line = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise RunError(f"The Ray cluster {cluster.address!r} cannot be used: {line}") from None


def _reach(address: str) -> None:
    """Raises `OSError` at once where nobody answers; Ray itself would go on trying for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_REACH_S).close()


class _Pool:
    """The workers; one that died is replaced."""

    def __init__(
        self, ray: Any, cluster: Cluster, make_pair: Callable[..., Any], models: dict[str, Any]
    ) -> None:
        self._ray, self._models = ray, models
        there = ray.cluster_resources()
        gpus = int(there.get("GPU", 0))
        count = cluster.workers or max(1, gpus)
        self._gpus = (1.0 if gpus else 0.0) if cluster.gpus is None else cluster.gpus
        self._cpus = cluster.cpus or max(1, int(there.get("CPU", 1)) // count)
        self._make_pair = make_pair
        self.actors = [self._spawn() for _ in range(count)]
        self.pids = [0] * count

    def _spawn(self) -> Any:
        actor = self._ray.remote(num_cpus=self._cpus, num_gpus=self._gpus)(Measurer)
        return actor.remote(self._make_pair, self._models, self._cpus)

    def replace(self, index: int) -> None:
        self.actors[index], self.pids[index] = self._spawn(), 0

    def close(self) -> None:
        for actor in self.actors:
            self._ray.kill(actor)


def _parts(plan: Plan, workers: int) -> deque[_Part]:
    """The prompts in about four parts for each worker, so that none waits long for the last."""
    size = max(1, math.ceil(len(plan.prompts) / (4 * workers)))
    prompts = plan.prompts
    return deque(_Part(prompts[at : at + size]) for at in range(0, len(prompts), size))


def _run(
    ray: Any,
    pool: _Pool,
    plan: Plan,
    cluster: Cluster,
    progress: Callable[[ClusterProgress], None],
    cancelled: Callable[[], bool],
) -> tuple[list[dict[str, Any]], int]:
    waiting = _parts(plan, len(pool.actors))
    busy: dict[Any, tuple[int, _Part]] = {}
    asked = {actor.pid.remote(): index for index, actor in enumerate(pool.actors)}
    idle = list(range(len(pool.actors)))
    results: list[dict[str, Any]] = []
    deaths = done = 0
    while (waiting or busy) and not cancelled():
        while waiting and idle:
            index, part = idle.pop(), waiting.popleft()
            busy[pool.actors[index].measure.remote(replace(plan, prompts=part.prompts))] = (
                index,
                part,
            )
        ready, _ = ray.wait([*busy, *asked], num_returns=1, timeout=_WAIT_S)
        for reference in ready:
            if reference in asked:
                pool.pids[asked.pop(reference)] = _quietly(ray, reference)
            else:
                index, part = busy.pop(reference)
                try:
                    results.append(ray.get(reference))
                    done += len(part.prompts)
                except ray.exceptions.RayTaskError as error:
                    raise _cause(error) from None
                except ray.exceptions.RayError as error:
                    deaths += 1
                    part.deaths += 1
                    if part.deaths > cluster.retries:
                        raise _given_up(part, error) from None
                    waiting.append(part)
                    pool.replace(index)
                    asked[pool.actors[index].pid.remote()] = index
                idle.append(index)
            progress(ClusterProgress(done, len(plan.prompts), tuple(pool.pids), deaths))
    return results, deaths


def _quietly(ray: Any, reference: Any) -> int:
    """A worker's process id; 0 where it died first, which its work will tell as well."""
    try:
        return int(ray.get(reference))
    except ray.exceptions.RayError:
        return 0


def _cause(error: Any) -> UAGError:
    """What the worker raised, as the one line that can be shown."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, UAGError):
        return cause
    line = (str(cause or error).strip().splitlines() or [""])[-1][:300]
    return RunError(f"A worker failed: {line}")


def _given_up(part: _Part, error: Any) -> RunError:
    return RunError(
        f"{part.deaths} workers died while they measured {part.prompts[0].id!r} "
        f"({type(error).__name__}): is there enough memory for the pair?"
    )


def merge(plan: Plan, results: Sequence[dict[str, Any]], *, workers: int, deaths: int) -> Document:
    """One object from the parts: rows in the order of the prompts, all tables made anew."""
    if not results:
        raise RunError("Nothing was measured.")
    order = {item.id: index for index, item in enumerate(plan.prompts)}
    rows = [row for part in results for row in part["measured"]]
    rows.sort(key=lambda row: (row["repeat"], order[row["prompt_id"]]))
    machines = list({repr(part["machine"]): part["machine"] for part in results}.values())
    notices = [line for part in results for line in part["notices"] or ()]
    exact = all((part["settings"] or {}).get("exact") for part in results)
    document = {
        "schema_version": SCHEMA_VERSION,
        "machine": machines[0],
        "pair": results[0]["pair"],
        "settings": {**plan.to_dict(), "exact": exact},
        "notices": list(dict.fromkeys(notices)),
        "cluster": {"workers": workers, "deaths": deaths, "machines": machines},
        **tables(rows, sampled=plan.settings.do_sample, sweep=plan.sweep),
    }
    result = clean(document)
    assert isinstance(result, dict)
    return result
