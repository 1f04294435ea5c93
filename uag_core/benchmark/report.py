"""What a comparison reports: the `compare --json` object, made from the runs' events.

Knows the contract of that object. Runs an engine only to find the logit gap where two runs part.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from uag_core import metrics
from uag_core.config import REFERENCES, AssistantConfig, GenerationSettings
from uag_core.decoding.engines import Engines, Prompt
from uag_core.errors import InputError
from uag_core.events import Event, Finished, Verified
from uag_core.serialization import SCHEMA_VERSION, clean


@dataclass(slots=True)
class Comparison:
    """Everything that one comparison needs."""

    engines: Engines
    prompt: Prompt
    settings: GenerationSettings
    config: AssistantConfig
    exact: bool = True
    references: Sequence[str] = ()
    repeats: int = 1
    cancelled: Callable[[], bool] = lambda: False
    echo: dict[str, Any] = field(default_factory=dict)  # further settings to report

    def __post_init__(self) -> None:
        unknown = [name for name in self.references if name not in REFERENCES]
        if unknown:
            raise InputError(
                f"Unknown reference engine {unknown[0]!r}.", f"Known: {', '.join(REFERENCES)}."
            )
        if "transformers_uag" in self.references and self.engines.assistant is None:
            raise InputError("transformers_uag needs an assistant.", "Name one or leave it out.")
        if not 1 <= self.repeats <= 100:
            raise InputError(f"repeats must be between 1 and 100, not {self.repeats}.")


def build(
    job: Comparison,
    exact: bool,
    width: int | None,
    notices: list[str],
    runs: dict[str, list[list[Event]]],
    compile_s: float | None = None,
) -> dict[str, Any]:
    """The `compare --json` object of the contract.

    `compile_s`: seconds that compiling took, in no other figure; None for eager runs. Compiled
    runs have a compiled `baseline`, so that compilation is not taken for speculation, and an eager
    `baseline_unpadded`; `decode_speedup` divides by the faster one as always.
    """
    engines, method = job.engines, job.config.method
    helper = engines.assistant if job.config.uses_assistant else None
    baseline_run = metrics.median_run(runs["baseline"])
    assisted_run = metrics.median_run(runs[method])
    baseline = metrics.timing(baseline_run) if baseline_run else None
    assisted = metrics.summarize(assisted_run) if assisted_run else None
    unpadded = baseline
    if "baseline_unpadded" in runs:
        run = metrics.median_run(runs["baseline_unpadded"])
        unpadded = metrics.timing(run) if run else None
    all_notices = [*job.prompt.notices, *notices]
    for run in (run for name in runs for run in runs[name]):
        all_notices.extend(n for n in metrics.notices(run) if n not in all_notices)
    plain_tpots = [x["tpot_s"] for x in (baseline, unpadded) if x and x["tpot_s"]]
    fastest = min(plain_tpots, default=None)
    tpot = assisted["tpot_s"] if assisted else None
    identical, divergence = _identity(job, exact, width, runs)
    same_count = baseline and assisted and baseline["num_new_tokens"] == assisted["num_new_tokens"]
    document = {
        "schema_version": SCHEMA_VERSION,
        "target": engines.target.describe(),
        "assistant": helper.describe() if helper else None,
        "method": method,
        "path": engines.path if helper else "ids",
        "exact": exact,
        "compiled": job.prompt.compiled is not None,
        "compile_s": compile_s,
        "seed": job.settings.seed,
        "settings": {
            **job.settings.to_dict(),
            **job.config.to_dict(),
            "width": width,
            "repeats": job.repeats,
            **job.echo,
        },
        "notices": all_notices,
        "prompt": {
            "num_prompt_tokens_target": len(job.prompt.target_ids),
            "num_prompt_tokens_assistant": (
                None
                if helper is None or job.prompt.assistant_ids is None
                else len(job.prompt.assistant_ids)
            ),
        },
        "baseline": baseline,
        "baseline_unpadded": unpadded
        and {key: unpadded[key] for key in ("tpot_s", "tokens_per_second")},
        "assisted": assisted,
        "references": [
            {"engine": name, **metrics.timing(run)}
            for name in job.references
            if (run := metrics.median_run(runs.get(name, []))) is not None
        ],
        "decode_speedup": metrics.ratio(fastest, tpot),
        "decode_speedup_same_shape": metrics.ratio(baseline["tpot_s"] if baseline else None, tpot),
        "wall_speedup": (
            metrics.ratio(baseline["wall_s"], assisted["wall_s"])
            if same_count and baseline and assisted
            else None
        ),
        "speedup_bound": metrics.speedup_bound(assisted_run, fastest) if assisted_run else None,
        "predicted_speedup": _predicted(job, width, assisted_run, fastest),
        "identical": identical,
        "first_divergence": divergence,
    }
    result = clean(document)
    assert isinstance(result, dict)
    return result


def _assistant(job: Comparison) -> dict[str, str | None] | None:
    """The assistant as it drafted, with the number format of its weights."""
    drafter = None if job.cancelled() else job.engines.drafter(job.config)
    assistant = drafter.model if drafter else job.engines.assistant
    return assistant.describe() if assistant else None


def _predicted(
    job: Comparison, width: int | None, run: list[Event] | None, tpot: float | None
) -> float | None:
    """The speedup that the pair's cost profile predicts for this run's acceptance."""
    method = job.config.method
    if run is None or not tpot or job.cancelled() or not job.engines.can_draft(method):
        return None
    profile = job.engines.run_profile(job.prompt, width, job.config, job.cancelled)
    data = metrics.summarize(run)
    if not data["num_rounds"] or profile is None:
        return None
    drafted = data["num_draft_tokens"] / data["num_rounds"]
    host = (data["other_s"] + data["reencode_s"]) / data["num_rounds"]
    draft_s = drafted * (profile.draft_step_s or 0.0)
    cost = (profile.verify_s + draft_s) / profile.plain_step_s + host / tpot
    return metrics.ratio(data["tokens_per_round"], cost)


def _identity(
    job: Comparison, exact: bool, width: int | None, runs: dict[str, list[list[Event]]]
) -> tuple[bool | None, dict[str, Any] | None]:
    """Whether every assisted run gave the baseline's ids, and where the first one parted."""
    finished = {
        name: [e for run in runs[name] for e in run if isinstance(e, Finished)]
        for name in ("baseline", job.config.method)
    }
    everything = [*finished["baseline"], *finished[job.config.method]]
    if (
        not finished["baseline"]
        or not finished[job.config.method]
        or any(event.finish_reason == "cancelled" for event in everything)
    ):
        return None, None
    reference = finished["baseline"][0].token_ids
    for event in everything[1:]:
        position = metrics.first_divergence(reference, event.token_ids)
        if position is not None:
            return False, {
                "position": position,
                "top2_gap": _gap(job, exact, width, position, reference),
            }
    return True, None


def _gap(
    job: Comparison, exact: bool, width: int | None, position: int, reference: Sequence[int]
) -> float | None:
    """The plain run's top-2 logit gap at a position, found by running it again, untimed."""
    if job.settings.do_sample or position >= len(reference):
        return None
    seen, passed = 0, threading.Event()
    for event in job.engines.plain(
        job.prompt,
        job.settings,
        exact=exact,
        width=width,
        cancelled=lambda: job.cancelled() or passed.is_set(),
        gap_position=position,
    ):
        if isinstance(event, Verified):
            seen += len(event.tokens)
            if seen > position:
                passed.set()  # nothing behind that position is needed
        if isinstance(event, Finished):
            return event.top2_gap
    return None
