"""Stage ``evaluate``: the pair on a set of prompts, through the project's own engine.

Counts (mean acceptance length, acceptance by position) do not depend on the machine's load; the
speedups do, so nothing else should run meanwhile. ``prompts`` must never be trained on.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SPEEDUPS = ("decode_speedup", "decode_speedup_same_shape")


def read_prompts(path: Path) -> list[dict[str, Any]]:
    """Records {"id", "category", "prompt"} from a .jsonl file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _by_turns(prompts: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """One prompt of each category, then the next of each: any part is a fair sample."""
    groups: dict[str, list[dict[str, str]]] = {}
    for item in prompts:
        groups.setdefault(item["category"], []).append(item)
    longest = max(map(len, groups.values()), default=0)
    return [group[i] for i in range(longest) for group in groups.values() if i < len(group)]


def _geomean(values: list[float]) -> float | None:
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Fold per-prompt rows into tau, acceptance and speedups; ratios are of summed counts."""
    drafts = sum(r["num_draft_rounds"] for r in rows)
    candidates = sum(r["num_candidate_tokens"] for r in rows)
    accepted = sum(r["num_accepted_tokens"] for r in rows)
    histograms = [r["acceptance_histogram"] for r in rows]
    width = max((len(h) for h in histograms), default=0)
    by_count = [sum(h[n] for h in histograms if n < len(h)) for n in range(width)]
    summary: dict[str, Any] = {
        "prompts": len(rows),
        "mean_acceptance_length": 1 + accepted / drafts if drafts else None,
        "acceptance_rate": accepted / candidates if candidates else None,
        # At least i + 1 candidates were accepted in this share of the rounds with a draft.
        "acceptance_per_position": [sum(by_count[i + 1 :]) / drafts for i in range(width - 1)]
        if drafts
        else [],
        "identical": sum(r["identical"] is True for r in rows),
    }
    for name in SPEEDUPS:
        values = [r[name] for r in rows if r.get(name)]
        summary[name] = {
            "geomean": _geomean(values),
            "median": statistics.median(values) if values else None,
            "worst": min(values, default=None),
        }
    return summary


def evaluate(
    target: str,
    assistant: str,
    prompts: Iterable[dict[str, str]],
    *,
    max_new_tokens: int = 128,
    dtype: str = "bfloat16",
    device: str = "auto",
    method: str = "uag",
    num_assistant_tokens: int | None = None,
    timed: bool = True,
    keep: Path | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """The report: machine, settings, one row a prompt, and summaries of all and by kind.

    ``timed=False`` runs the assisted engine only: counts without speedups, in a third of the time.
    ``num_assistant_tokens`` fixes the draft length; without it the engine decides. Rows are added
    to the file ``keep``, and what is there already is not run again: a long evaluation may be
    broken off and resumed, and the report covers what was reached.
    """
    from uag_core import ModelPair  # here, so that the other stages do not need the engine
    from uag_core.config import AssistantConfig, GenerationSettings

    pair = ModelPair(target=target, assistant=assistant, dtype=dtype, device=device)
    settings = GenerationSettings(max_new_tokens=max_new_tokens)
    config = AssistantConfig(method=method, num_assistant_tokens=num_assistant_tokens)
    rows: list[dict[str, Any]] = read_prompts(keep) if keep and keep.exists() else []
    done = {row["id"] for row in rows}
    for item in _by_turns(prompts):
        if item["id"] in done:
            continue
        if timed:
            document = pair.compare(item["prompt"], settings, config)
            counts = document["assisted"]
            row = {name: document[name] for name in ("identical", *SPEEDUPS)}
        else:
            counts = pair.generate(item["prompt"], settings, config).metrics
            row = {"identical": None}
        for name, value in counts.items():
            if name.startswith(("num_", "acceptance_")) or name == "mean_acceptance_length":
                row[name] = value
        rows.append({"id": item["id"], "category": item["category"], **row})
        if keep:
            with keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
        if progress:
            print(f"{item['id']:<18} tau {row.get('mean_acceptance_length')}"
                  f" speedup {row.get('decode_speedup')}", flush=True)  # fmt: skip
    kinds = sorted({r["category"] for r in rows})
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": {"processor": platform.machine(), "system": platform.system()},
        "settings": {
            "max_new_tokens": max_new_tokens,
            "dtype": dtype,
            "method": method,
            "num_assistant_tokens": num_assistant_tokens,
            "timed": timed,
        },
        "summary": summarise(rows),
        "by_category": {k: summarise([r for r in rows if r["category"] == k]) for k in kinds},
        "rows": rows,
    }
