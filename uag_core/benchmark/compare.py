"""One comparison: plain decoding and assisted decoding of one prompt, measured side by side.

The engines run one after another so that they do not disturb each other's timing; a warm-up is
excluded; the order alternates from repeat to repeat; medians are reported. Knows the engines of a
pair; takes no lock and loads no model.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from uag_core.benchmark.report import Comparison, build
from uag_core.config import REFERENCES, GenerationSettings
from uag_core.decoding.compiling import Settled, settle
from uag_core.decoding.engines import Prompt
from uag_core.decoding.reference import ReferenceEngine
from uag_core.events import COMPILING, Event, Notice, Verified
from uag_core.models.memory import is_out_of_memory

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
    """The result: the `compare --json` object, and every measured run's events by engine.

    `profile` is the pair's cost profile as plain numbers, None where none was measured.
    """

    document: dict[str, Any]
    runs: dict[str, list[list[Event]]]
    profile: dict[str, Any] | None = None


Runner = Callable[[Prompt, GenerationSettings], Iterator[Event]]


def compare(job: Comparison) -> Iterator[CompareStep | CompareDone]:
    """Run a comparison; yields every event and at last one `CompareDone`.

    When `job.cancelled()` becomes true, what was measured until then is still reported.
    """
    settled = yield from _settle(job)
    exact, width, notices = settled.exact, settled.width, settled.notices
    job = replace(job, prompt=settled.prompts[0])
    runners = _runners(job, exact, width)
    yield from _warm_up(job, runners, notices)
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
            else:
                runs[name].clear()
    document = build(job, exact, width, notices, runs, settled.compile_s)
    yield CompareDone(document, runs, _profile(job, width, runs))


def _settle(job: Comparison) -> Generator[CompareStep, None, Settled]:
    """The shapes of the runs; what is compiled for them is compiled here, outside of all timing."""
    steps = settle(
        job.engines,
        job.config,
        job.exact,
        [job.prompt],
        job.settings.max_new_tokens,
        job.cancelled,
    )
    while True:
        try:
            yield CompareStep(COMPILING, WARMUP, Notice(next(steps)))
        except StopIteration as stop:
            settled: Settled = stop.value
            return settled


def _profile(
    job: Comparison, width: int | None, runs: dict[str, list[list[Event]]]
) -> dict[str, Any] | None:
    """The cost profile behind the prediction; measured once for a pair, so free by now."""
    if job.cancelled() or not job.engines.can_draft(job.config.method):
        return None
    profile = job.engines.run_profile(job.prompt, width, job.config, job.cancelled)
    rounds = [e for run in runs[job.config.method] for e in run if isinstance(e, Verified)]
    host = [e.other_s + e.reencode_s for e in rounds if e.num_candidates]
    return None if profile is None else profile.to_dict(median(host) if host else None)


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
    ids = job.prompt.assistant_ids
    short = replace(
        job.prompt,
        target_ids=job.prompt.target_ids[-_WARMUP_PROMPT:],
        assistant_ids=None if ids is None else ids[-_WARMUP_PROMPT:],
        notices=(),
    )
    settings = replace(
        job.settings, max_new_tokens=min(_WARMUP_TOKENS, job.settings.max_new_tokens)
    )
    for name in list(runners):
        if job.cancelled():
            return
        # The whole prompt once, through the shapes that the first measured prefill will have.
        prompt = job.prompt if name == "baseline" else short
        for event in _guarded(name, runners, prompt, settings, notices):
            yield CompareStep(name, WARMUP, event)
