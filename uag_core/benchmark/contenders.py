"""The engines that a benchmark measures, each ready to run with the prompts as it reads them.

Plain decoding at every width that an assisted engine has, the assisted ones, and those of
transformers. What they need compiled is compiled here, before anything is measured. Knows the
engines of a pair and a plan; runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace

from uag_core.benchmark.plan import BASELINE, UNPADDED, Plan, Variant
from uag_core.config import REFERENCES, AssistantConfig, GenerationSettings
from uag_core.decoding import compiled
from uag_core.decoding.compiling import Settled, settle
from uag_core.decoding.engines import Engines, Prompt
from uag_core.decoding.reference import ReferenceEngine
from uag_core.errors import InputError
from uag_core.events import COMPILING, Event, Notice


@dataclass(frozen=True, slots=True)
class BenchProgress:
    """How far a benchmark has come: `done` of `total` runs, what runs now, seconds left if known.

    `event` is an event of that run.
    """

    done: int
    total: int
    method: str
    prompt_id: str
    remaining_s: float | None
    event: Event | None = None
    warmup: bool = False


@dataclass(slots=True)
class BenchJob:
    """Everything one benchmark needs."""

    engines: Engines
    plan: Plan
    cancelled: Callable[[], bool] = lambda: False
    notices: list[str] = field(default_factory=list)
    compile_s: float | None = None  # spent on compiling; None where nothing runs compiled

    def __post_init__(self) -> None:
        if self.plan.uses_assistant and self.engines.assistant is None:
            raise InputError("These methods need an assistant.", "Name one, or leave them out.")


@dataclass(slots=True)
class Contender:
    """One engine of one width, ready to run; `prompts` as it reads them, in the plan's order."""

    variant: Variant
    run: Callable[[Prompt, GenerationSettings], Iterator[Event]]
    width: int | None
    prompts: list[Prompt]

    @property
    def key(self) -> tuple[str, int | None, int | None]:
        return self.variant.method, self.variant.num_assistant_tokens, self.width


def contenders(job: BenchJob) -> Generator[BenchProgress, None, list[Contender]]:
    """Every engine of the plan, with plain decoding at each width that assisted runs have.

    What they need compiled is compiled here, before anything is measured.
    """
    plan = job.plan
    prompts = [
        job.engines.prompt(item.prompt, raw=plan.raw, system=plan.system) for item in plan.prompts
    ]
    ours: list[tuple[Variant, Settled]] = []
    for variant in _same_width(job):
        if variant.config is not None:
            ours.append((variant, (yield from _settle(job, variant.config, prompts))))
    shapes = {settled.width: settled for _, settled in ours}
    if not ours:  # only plain decoding and reference engines
        config = AssistantConfig(method="lookup", compile=plan.compile)
        settled = yield from _settle(job, config, prompts)
        shapes = {settled.width: settled}
    found = [_plain(job, BASELINE, settled) for settled in shapes.values()]
    if None not in shapes:
        found.append(_plain(job, UNPADDED, Settled(True, None, prompts)))
    found += [_assisted(job, *each) for each in ours]
    references = [variant for variant in plan.variants() if variant.method in REFERENCES]
    return found + [_reference(job, variant, prompts) for variant in references]


def _settle(
    job: BenchJob, config: AssistantConfig, prompts: list[Prompt]
) -> Generator[BenchProgress, None, Settled]:
    plan = job.plan
    tokens = plan.settings.max_new_tokens
    steps = settle(job.engines, config, plan.exact, prompts, tokens, job.cancelled)
    total = len(prompts) * plan.repeats
    while True:
        try:
            line = next(steps)
        except StopIteration as stop:
            settled: Settled = stop.value
            break
        yield BenchProgress(0, total, COMPILING, "", None, Notice(line), warmup=True)
    if settled.compile_s is not None:
        job.compile_s = (job.compile_s or 0.0) + settled.compile_s
    job.notices.extend(line for line in settled.notices if line not in job.notices)
    return settled


def _same_width(job: BenchJob) -> list[Variant]:
    """The plan's variants; those that choose their draft length share one width W, the largest.

    So that one plain decoding of that shape stands for all of them.
    """
    variants = job.plan.variants()
    free = [v.config for v in variants if v.config and v.num_assistant_tokens is None]
    chosen = [_own_width(job, config) for config in free]
    width = max((each for each in chosen if each is not None), default=None)
    if width is None:  # nothing is padded
        return variants
    return [
        replace(v, config=replace(v.config, width=width))
        if v.config and v.num_assistant_tokens is None
        else v
        for v in variants
    ]


def _own_width(job: BenchJob, config: AssistantConfig) -> int | None:
    if config.compile and compiled.why_not(job.engines.target) is None:
        return job.engines.fixed_width(config)
    return job.engines.exactness(job.plan.exact, config)[1]


def _plain(job: BenchJob, name: str, settled: Settled) -> Contender:
    def run(prompt: Prompt, settings: GenerationSettings) -> Iterator[Event]:
        return job.engines.plain(
            prompt,
            settings,
            exact=settled.exact,
            width=settled.width,
            engine=name,
            cancelled=job.cancelled,
        )

    return Contender(Variant(name), run, settled.width, settled.prompts)


def _assisted(job: BenchJob, variant: Variant, settled: Settled) -> Contender:
    config = variant.config
    assert config is not None

    def run(prompt: Prompt, settings: GenerationSettings) -> Iterator[Event]:
        return job.engines.assisted(
            prompt,
            settings,
            config,
            exact=settled.exact,
            width=settled.width,
            cancelled=job.cancelled,
        )

    return Contender(variant, run, settled.width, settled.prompts)


def _reference(job: BenchJob, variant: Variant, prompts: list[Prompt]) -> Contender:
    engine = ReferenceEngine(
        variant.method,
        job.engines.target,
        job.engines.assistant,
        num_assistant_tokens=variant.num_assistant_tokens,
        same_tokenizer=job.engines.path == "ids",
    )

    def run(prompt: Prompt, settings: GenerationSettings) -> Iterator[Event]:
        return engine.run(prompt.target_ids, settings, job.cancelled)

    return Contender(variant, run, None, prompts)
