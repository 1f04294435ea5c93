"""`ModelPair`: a target and an assistant by name, and everything one can do with them.

The Python surface of the package. Loads through the registry, takes the run lock for the time of a
run, turns low-level failures into errors that can be shown. Knows no pages and no command line.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from uag_core import metrics
from uag_core.benchmark.compare import CompareDone, CompareStep, Comparison, compare
from uag_core.benchmark.plan import Plan
from uag_core.benchmark.runner import BenchJob, BenchStep, Row, bench
from uag_core.config import (
    DEFAULT_ASSISTANT,
    DEFAULT_TARGET,
    AssistantConfig,
    GenerationSettings,
)
from uag_core.decoding.compiling import finished, settle
from uag_core.decoding.engines import Engines
from uag_core.errors import InputError, RunCancelled, UAGError
from uag_core.events import Event, Finished
from uag_core.models import memory, registry
from uag_core.models.handle import LanguageModel
from uag_core.result import Result, shown


class Flag(Protocol):
    """What can cancel a run: a `threading.Event`, or anything with its `is_set`."""

    def is_set(self) -> bool: ...


class ModelPair:
    """A target language model and an assistant, tokenizers alike or not.

    Args:
        target, assistant: names as in `uag_core.models.references` (a Hub id, a local folder, an
            embedded one). `assistant` None allows plain decoding and prompt lookup only.
        dtype: "auto", "float32", "bfloat16", "float16", or "8bit" or "4bit" with bitsandbytes.
        device: "auto", "cpu", "cuda[:n]" or "gpus" (spread over all of them).
        assistant_device: the assistant's, where it is another one.
        progress: called with one line of text several times a second while loading lasts; what
            it raises ends the loading, also in the middle of a download.
        token: an access token for the Hub, in place of the one that is stored on this machine.

    Raises the errors of `uag_core.errors`, each one line that can be shown.
    """

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        assistant: str | None = DEFAULT_ASSISTANT,
        *,
        dtype: str = "auto",
        device: str = "auto",
        assistant_device: str | None = None,
        progress: Callable[[str], None] | None = None,
        token: str | None = None,
    ) -> None:
        helper_device = assistant_device or device
        if assistant is not None:
            # A wrong assistant is found out before the target's gigabytes are fetched.
            registry.check(assistant, dtype, helper_device, progress, token=token)
        loaded = registry.get(target, dtype, device, progress, token=token)
        helper = None
        if assistant is not None:
            with registry.hold(loaded):
                helper = registry.get(assistant, dtype, helper_device, progress, token=token)
        self._engines = Engines(loaded, helper)

    @classmethod
    def from_models(cls, target: LanguageModel, assistant: LanguageModel | None) -> ModelPair:
        """A pair of models that are already in memory."""
        pair = cls.__new__(cls)
        pair._engines = Engines(target, assistant)
        return pair

    @property
    def target(self) -> LanguageModel:
        return self._engines.target

    @property
    def assistant(self) -> LanguageModel | None:
        return self._engines.assistant

    @property
    def path(self) -> str:
        """ "ids" when both tokenizers give the same ids, "text" otherwise."""
        return self._engines.path

    @property
    def notices(self) -> tuple[str, ...]:
        return self._engines.notices

    @property
    def engines(self) -> Engines:
        """The engines below, for benchmarks that measure them one by one."""
        return self._engines

    def generate(
        self,
        prompt: Any,
        generation_config: Any = None,
        assistant_config: AssistantConfig | None = None,
        **options: Any,
    ) -> Result:
        """Generate an answer; arguments as in `stream`.

        Raises `RunCancelled` when the run was cancelled before its first token.
        """
        events = tuple(self.stream(prompt, generation_config, assistant_config, **options))
        finished = next(e for e in events if isinstance(e, Finished))
        if finished.finish_reason == "cancelled" and not finished.token_ids:
            raise RunCancelled("The run was cancelled before its first token.")
        started = events[0]
        return Result(
            text=finished.text,
            token_ids=finished.token_ids,
            finish_reason=finished.finish_reason,
            exact=getattr(started, "exact", False),
            seed=getattr(started, "seed", None),
            metrics=metrics.summarize(events),
            notices=tuple(metrics.notices(events)),
            events=events,
        )

    def stream(
        self,
        prompt: Any,
        generation_config: Any = None,
        assistant_config: AssistantConfig | None = None,
        *,
        raw: bool = False,
        system: str | None = None,
        exact: bool = True,
        seed: int | None = None,
        cancel: Flag | None = None,
        engine: str | None = None,
        logits_processor: Sequence[object] | None = None,
    ) -> Iterator[Event]:
        """The events of one generation.

        The run lock is held until the iterator is finished or closed: start no other run of this
        process from inside the loop over the events.

        Args:
            prompt: a text, chat messages (`[{"role", "content"}]`), or a list of target ids.
            generation_config: a `GenerationConfig` of transformers, a `GenerationSettings`, or
                None for greedy defaults. A configuration that carries an assistant configuration
                (see `AssistantConfig.to_generation_config`) switches it on.
            assistant_config: how to draft, and whether to compile (before the clock starts).
            raw: continue the prompt as plain text instead of through the chat template.
            exact: ids equal to plain decoding of the same shapes (see `Engines.exactness`).
            seed: for sampling; drawn and reported when absent.
            cancel: looked at before every forward.
            engine: "baseline" or "baseline_unpadded" for plain decoding; None for assisted.
            logits_processor: further logits processors, applied where `generate` applies them.
        """
        settings, config = self._settings(generation_config, assistant_config, seed)
        cancelled = _cancelled(cancel)
        if engine not in (None, "baseline", "baseline_unpadded", config.method):
            raise InputError(f"Unknown engine {engine!r}.")
        text = self._engines.prompt(prompt, raw=raw, system=system)
        with self._run(cancelled):
            steps = settle(self._engines, config, exact, [text], settings.max_new_tokens, cancelled)
            settled = finished(steps)
            text = replace(settled.prompts[0], notices=(*text.notices, *settled.notices))
            alone = self.assistant is None and config.uses_assistant
            if engine in ("baseline", "baseline_unpadded") or alone:
                name = engine or "baseline"
                yield from self._engines.plain(
                    text,
                    settings,
                    exact=settled.exact,
                    width=None if name == "baseline_unpadded" else settled.width,
                    engine=name,
                    cancelled=cancelled,
                    logits_processor=logits_processor,
                )
            else:
                yield from self._engines.assisted(
                    text,
                    settings,
                    config,
                    exact=settled.exact,
                    width=settled.width,
                    cancelled=cancelled,
                    logits_processor=logits_processor,
                )

    def compare(
        self,
        prompt: Any,
        generation_config: Any = None,
        assistant_config: AssistantConfig | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Measure plain against assisted decoding; the `compare --json` object."""
        for step in self.compare_stream(prompt, generation_config, assistant_config, **options):
            if isinstance(step, CompareDone):
                return step.document
        raise RunCancelled("The comparison was cancelled.")

    def compare_stream(
        self,
        prompt: Any,
        generation_config: Any = None,
        assistant_config: AssistantConfig | None = None,
        *,
        raw: bool = False,
        system: str | None = None,
        exact: bool = True,
        seed: int | None = None,
        references: Sequence[str] = (),
        repeats: int = 1,
        cancel: Flag | None = None,
        waiting: Callable[[int], None] | None = None,
    ) -> Iterator[CompareStep | CompareDone]:
        """The events of a comparison, and at last one `CompareDone`. Arguments as in `stream`.

        `waiting(n)` is called while n runs are ahead of this one. Closing the iterator cancels:
        caches are freed and the lock is released. Raises `InputError` before anything runs when
        the method needs an assistant and the pair has none.
        """
        settings, config = self._settings(generation_config, assistant_config, seed)
        if self.assistant is None and config.uses_assistant:
            raise InputError(
                f"The method {config.method} needs an assistant.",
                "Name one, or take the method lookup.",
            )
        cancelled = _cancelled(cancel)
        text = self._engines.prompt(prompt, raw=raw, system=system)
        job = Comparison(
            engines=self._engines,
            prompt=text,
            settings=settings,
            config=config,
            exact=exact,
            references=tuple(references),
            repeats=repeats,
            cancelled=cancelled,
            echo={"raw": raw, "system": system},
        )
        with self._run(cancelled, waiting):
            yield from compare(job)

    def bench_stream(
        self,
        plan: Plan,
        *,
        resume: Callable[[dict[str, Any]], Sequence[Row]] | None = None,
        cancel: Flag | None = None,
        waiting: Callable[[int], None] | None = None,
    ) -> Iterator[BenchStep]:
        """Measure a plan: `BenchProgress` and `BenchRows`, and at last one `BenchDone`.

        `resume(header)` is told what is about to be measured and returns the rows that are known
        from before. Closing the iterator cancels; `waiting` as in `compare_stream`.
        """
        cancelled = _cancelled(cancel)
        job = BenchJob(self._engines, plan, cancelled)
        with self._run(cancelled, waiting):
            yield from bench(job, resume)

    def _settings(
        self, generation_config: Any, assistant_config: AssistantConfig | None, seed: int | None
    ) -> tuple[GenerationSettings, AssistantConfig]:
        config = assistant_config
        if generation_config is None:
            settings = GenerationSettings()
        elif isinstance(generation_config, GenerationSettings):
            settings = generation_config
        else:
            settings = GenerationSettings.from_generation_config(generation_config)
            config = config or AssistantConfig.from_generation_config(generation_config)
        if seed is not None:
            settings = settings.with_seed(seed)
        if settings.do_sample and settings.seed is None:
            settings = settings.with_seed(secrets.randbits(31))
        elif not settings.do_sample and settings.seed is not None:
            settings = settings.with_seed(None)
        config = config or AssistantConfig()
        used = self.assistant.ref if self.assistant is not None and config.uses_assistant else None
        if config.assistant != used:
            config = replace(config, assistant=used)
        return settings, config

    @contextmanager
    def _run(
        self, cancelled: Callable[[], bool], waiting: Callable[[int], None] | None = None
    ) -> Iterator[None]:
        """Hold the models and the run lock; failures come out as errors that can be shown."""
        problem: UAGError | None = None
        with registry.hold(self.target, self.assistant):
            if not registry.run_lock.acquire(cancelled, waiting):
                raise RunCancelled("The run was cancelled while it waited for its turn.")
            try:
                yield
            except UAGError:
                raise
            except Exception as error:  # noqa: BLE001 - models raise anything at all
                problem = shown(error, self.target.device)
                cause = error.with_traceback(None)
            finally:
                registry.run_lock.release()
        if problem is not None:
            # The frames of the failed run (and the tensors in them) are gone by now.
            memory.release_unused()
            raise problem from cause


def _cancelled(cancel: Flag | None) -> Callable[[], bool]:
    return (lambda: False) if cancel is None else cancel.is_set
