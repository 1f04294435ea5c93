"""One comparison: plain decoding and assisted decoding of one prompt, measured side by side.

The engines run one after another so that they do not disturb each other's timing; a warm-up is
excluded; the order alternates from repeat to repeat; medians are reported. Knows the engines of a
pair; takes no lock and loads no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from uag_core import metrics
from uag_core.config import REFERENCES, AssistantConfig, GenerationSettings
from uag_core.decoding.engines import Engines, Prompt
from uag_core.decoding.reference import ReferenceEngine
from uag_core.errors import InputError
from uag_core.events import Event, Finished
from uag_core.models.memory import is_out_of_memory
from uag_core.serialization import SCHEMA_VERSION, clean

WARMUP = -1
_WARMUP_TOKENS = 8
_WARMUP_PROMPT = 48


@dataclass(frozen=True, slots=True)
class CompareStep:
    """An event of one engine's run; `repeat` -1 is the warm-up, which is not measured."""

    engine: str
    repeat: int
    event: Event


@dataclass(frozen=True, slots=True)
class CompareDone:
    """The result: the `compare --json` object, and every measured run's events by engine."""

    document: dict[str, Any]
    runs: dict[str, list[list[Event]]]


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
        if not 1 <= self.repeats <= 100:
            raise InputError(f"repeats must be between 1 and 100, not {self.repeats}.")


Runner = Callable[[Prompt, GenerationSettings], Iterator[Event]]


def compare(job: Comparison) -> Iterator[CompareStep | CompareDone]:
    """Run a comparison; yields every event and at last one `CompareDone`.

    When `job.cancelled()` becomes true, what was measured until then is still reported.
    """
    exact, width, notices = job.engines.exactness(job.exact, job.config)
    runners = _runners(job, exact, width)
    yield from _warm_up(job, runners, notices)
    if not job.cancelled():
        job.engines.profile(width)
    runs: dict[str, list[list[Event]]] = {name: [] for name in runners}
    names = list(runners)
    for repeat in range(job.repeats):
        for name in names if repeat % 2 == 0 else reversed(names):
            if job.cancelled():
                break
            if name not in runners:
                continue
            events: list[Event] = []
            for event in _guarded(name, runners, job.prompt, job.settings, notices):
                events.append(event)
                yield CompareStep(name, repeat, event)
            if name in runners:
                runs[name].append(events)
    document = _document(job, exact, width, notices, runs)
    yield CompareDone(document, runs)


def _runners(job: Comparison, exact: bool, width: int | None) -> dict[str, Runner]:
    engines, cancelled = job.engines, job.cancelled

    def plain(engine: str, padded: int | None) -> Runner:
        return lambda prompt, settings: engines.plain(
            prompt, settings, exact=exact, width=padded, engine=engine, cancelled=cancelled
        )

    def assisted(prompt: Prompt, settings: GenerationSettings) -> Iterator[Event]:
        return engines.assisted(
            prompt, settings, job.config, exact=exact, width=width, cancelled=cancelled
        )

    runners: dict[str, Runner] = {"baseline": plain("baseline", width)}
    runners[job.config.method] = assisted
    if width is not None:
        runners["baseline_unpadded"] = plain("baseline_unpadded", None)
    for name in job.references:
        reference = ReferenceEngine(
            name,
            engines.target,
            engines.assistant,
            num_assistant_tokens=job.config.num_assistant_tokens,
            same_tokenizer=engines.path == "ids",
        )
        runners[name] = lambda prompt, settings, ref=reference: ref.run(  # type: ignore[misc]
            prompt.target_ids, settings, cancelled
        )
    return runners


def _guarded(
    name: str,
    runners: dict[str, Runner],
    prompt: Prompt,
    settings: GenerationSettings,
    notices: list[str],
) -> Iterator[Event]:
    """A run's events; a reference engine that fails is dropped with a notice.

    transformers' own paths fail on some models; that must not cost our own measurements.
    """
    try:
        yield from runners[name](prompt, settings)
    except Exception as error:
        if name not in REFERENCES or is_out_of_memory(error):
            raise
        del runners[name]
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        notices.append(f"{name} failed and is left out: {type(error).__name__}: {reason}")


def _warm_up(
    job: Comparison, runners: dict[str, Runner], notices: list[str]
) -> Iterator[CompareStep]:
    """A few tokens through every engine, so that no run pays for being the first."""
    short = Prompt(
        job.prompt.target_ids[-_WARMUP_PROMPT:],
        None if job.prompt.assistant_ids is None else job.prompt.assistant_ids[-_WARMUP_PROMPT:],
    )
    settings = replace(
        job.settings, max_new_tokens=min(_WARMUP_TOKENS, job.settings.max_new_tokens)
    )
    for name in list(runners):
        if job.cancelled():
            return
        for event in _guarded(name, runners, short, settings, notices):
            yield CompareStep(name, WARMUP, event)


def _middle(runs: list[list[Event]]) -> list[Event] | None:
    """The run with the median TPOT (the lower one of two), so that its parts belong together."""
    if not runs:
        return None

    def key(events: list[Event]) -> float:
        data = metrics.timing(events)
        return data["tpot_s"] if data["tpot_s"] is not None else data["wall_s"]

    return sorted(runs, key=key)[(len(runs) - 1) // 2]


def _document(
    job: Comparison,
    exact: bool,
    width: int | None,
    notices: list[str],
    runs: dict[str, list[list[Event]]],
) -> dict[str, Any]:
    """The `compare --json` object of the contract."""
    engines, method = job.engines, job.config.method
    baseline_run = _middle(runs["baseline"])
    assisted_run = _middle(runs[method])
    baseline = metrics.timing(baseline_run) if baseline_run else None
    assisted = metrics.summarize(assisted_run) if assisted_run else None
    unpadded = baseline
    if "baseline_unpadded" in runs:
        run = _middle(runs["baseline_unpadded"])
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
        "assistant": engines.assistant.describe() if engines.assistant else None,
        "method": method,
        "path": engines.path,
        "exact": exact,
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
                None if job.prompt.assistant_ids is None else len(job.prompt.assistant_ids)
            ),
        },
        "baseline": baseline,
        "baseline_unpadded": unpadded
        and {key: unpadded[key] for key in ("tpot_s", "tokens_per_second")},
        "assisted": assisted,
        "references": [
            {"engine": name, **metrics.timing(run)}
            for name in job.references
            if (run := _middle(runs.get(name, []))) is not None
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


def _predicted(
    job: Comparison, width: int | None, run: list[Event] | None, tpot: float | None
) -> float | None:
    """The speedup that the pair's cost profile predicts for this run's acceptance."""
    if run is None or not tpot or job.cancelled():
        return None
    profile = job.engines.profile(width)
    data = metrics.summarize(run)
    if not data["num_rounds"] or profile.draft_step_s is None:
        return None
    drafted = data["num_draft_tokens"] / data["num_rounds"]
    host = (data["other_s"] + data["reencode_s"]) / data["num_rounds"]
    cost = (profile.verify_s + drafted * profile.draft_step_s) / profile.plain_step_s + host / tpot
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
    settings = replace(job.settings, max_new_tokens=max(job.settings.max_new_tokens, position + 1))
    for event in job.engines.plain(
        job.prompt,
        settings,
        exact=exact,
        width=width,
        cancelled=job.cancelled,
        gap_position=position,
    ):
        if isinstance(event, Finished):
            return event.top2_gap
    return None
