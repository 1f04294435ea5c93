"""Runs leave nothing behind: no changed model, no cache, no lock, no slow stop."""

from __future__ import annotations

import gc
import time
import weakref
from dataclasses import replace

import pytest
from transformers.cache_utils import Cache

from tests.fixtures import proposers
from tests.fixtures.models import make_language_model, make_model, state_hash, tiny
from tests.fixtures.runs import (
    FIXED,
    PROMPT,
    SAMPLED,
    Run,
    assisted,
    plain,
    prompt_ids,
    prompt_of,
    raw_ids,
    scripted,
    settings_of,
)
from tests.fixtures.tokenizers import byte_level_a, byte_level_b
from uag_core.config import AssistantConfig, GenerationSettings
from uag_core.decoding import caches
from uag_core.decoding.engines import Engines
from uag_core.decoding.proposers import Proposer
from uag_core.errors import RunCancelled, RunError
from uag_core.events import Drafted, Finished, Verified
from uag_core.models import registry
from uag_core.pair import ModelPair


class Flag:
    """Set from the outside, or after having been looked at some number of times."""

    def __init__(self, after: int | None = None) -> None:
        self.after = after
        self.looks = 0

    def __call__(self) -> bool:
        self.looks += 1
        return self.after is not None and self.looks > self.after

    is_set = __call__


@pytest.fixture
def living_caches(monkeypatch) -> list[weakref.ref]:
    """Weak references to every cache that is made."""
    references: list[weakref.ref] = []
    make = caches.CachedModel._make_cache

    def noted(self) -> Cache:
        cache = make(self)
        references.append(weakref.ref(cache))
        references.extend(weakref.ref(layer) for layer in getattr(cache, "layers", ()))
        return cache

    monkeypatch.setattr(caches.CachedModel, "_make_cache", noted)
    return references


def alive(references: list[weakref.ref]) -> int:
    gc.collect()
    return sum(reference() is not None for reference in references)


def fresh_pair(**changes) -> ModelPair:
    left, right = byte_level_a(), byte_level_b()
    return ModelPair.from_models(
        make_language_model(make_model("llama", len(left) + 4, **changes), left, "left"),
        make_language_model(make_model("llama", len(right) + 4, seed=1), right, "right"),
    )


LONG = GenerationSettings(max_new_tokens=30, eos_token_ids=(10**9,))


@pytest.mark.parametrize("settings", [settings_of(20), settings_of(20, **SAMPLED)])
@pytest.mark.parametrize("exact", [True, False])
def test_models_and_their_configurations_are_never_changed(settings, exact: bool) -> None:
    pair = fresh_pair()
    models = [pair.target.model, pair.assistant.model]
    before = [state_hash(model) for model in models]
    tokenizers = [lm.tokenizer.backend_tokenizer.to_str() for lm in (pair.target, pair.assistant)]
    pair.generate(PROMPT, settings, FIXED, exact=exact, raw=True)
    pair.generate(PROMPT, settings, exact=exact)
    pair.generate(PROMPT, settings, exact=exact, engine="baseline")
    pair.compare(PROMPT, settings, exact=exact)
    assert [state_hash(model) for model in models] == before
    after = [lm.tokenizer.backend_tokenizer.to_str() for lm in (pair.target, pair.assistant)]
    assert after == tokenizers


def test_reference_engines_change_no_model_either() -> None:
    pair = fresh_pair()
    models = [pair.target.model, pair.assistant.model]
    before = [state_hash(model) for model in models]
    names = ("transformers", "transformers_uag", "transformers_lookup")
    for settings in (settings_of(12), settings_of(12, **SAMPLED)):
        pair.compare(PROMPT, settings, references=names)
    assert [state_hash(model) for model in models] == before


def test_a_run_after_many_others_gives_what_the_first_gave() -> None:
    """In any order, with any settings in between: nothing of a run outlives it."""
    pair = fresh_pair()
    first = pair.generate(PROMPT, LONG, FIXED).token_ids
    pair.generate(PROMPT, settings_of(9, **SAMPLED), AssistantConfig(num_assistant_tokens=20))
    pair.generate("other", LONG, AssistantConfig())
    assert pair.generate(PROMPT, LONG, AssistantConfig(num_assistant_tokens=2)).token_ids == first
    swapped = ModelPair.from_models(pair.assistant, pair.target)
    swapped.generate(PROMPT, LONG)
    assert pair.generate(PROMPT, LONG, FIXED).token_ids == first


def test_caches_are_freed_when_a_run_is_over(living_caches) -> None:
    assisted(tiny(), tiny("byte_level_b"), PROMPT, settings_of(12))
    assert len(living_caches) > 2
    assert alive(living_caches) == 0


def test_caches_are_freed_when_a_run_is_cancelled(living_caches) -> None:
    run = assisted(tiny(), tiny("byte_level_b"), PROMPT, settings_of(60), cancelled=Flag(20))
    assert run.reason == "cancelled"
    assert alive(living_caches) == 0


def test_caches_are_freed_when_the_stream_is_closed(living_caches) -> None:
    pair = fresh_pair()
    stream = pair.stream(PROMPT, LONG, FIXED)
    for event in stream:
        if isinstance(event, Drafted):
            break
    assert alive(living_caches) > 0
    stream.close()
    assert alive(living_caches) == 0
    assert pair.generate(PROMPT, LONG, FIXED).finish_reason == "length"


def test_caches_are_freed_when_a_run_fails(living_caches) -> None:
    made: list[proposers.Scripted] = []

    def broken() -> Proposer:
        made.append(proposers.raising())
        return made[-1]

    with pytest.raises(RuntimeError, match="the proposer broke"):
        scripted(tiny(), prompt_ids(), settings_of(30), broken)
    assert made[0].closed == 1
    assert alive(living_caches) == 0
    expected = plain(tiny(), prompt_ids(), settings_of(30)).ids
    run = scripted(tiny(), prompt_ids(), settings_of(30), lambda: proposers.perfect(expected))
    assert run.ids == expected


@pytest.mark.parametrize("which", ["target", "assistant"])
def test_a_failing_model_is_reported_and_the_next_run_works(
    which: str, living_caches, monkeypatch
) -> None:
    pair = fresh_pair()
    config = replace(FIXED, assistant_dtype="same")  # the model that fails is the one that drafts
    expected = pair.generate(PROMPT, LONG, config).token_ids
    model = getattr(pair, which).model
    forward, calls = model.forward, iter(range(10**6))

    def failing(*args, **kwargs):
        if next(calls) == 5:
            raise RuntimeError("out of luck")
        return forward(*args, **kwargs)

    monkeypatch.setattr(model, "forward", failing)
    with pytest.raises(RunError, match="out of luck"):
        pair.generate(PROMPT, LONG, config)
    assert alive(living_caches) == 0
    assert registry.run_lock.acquire(lambda: False)
    registry.run_lock.release()
    assert pair.generate(PROMPT, LONG, config).token_ids == expected


class CountingModel:
    """Counts the forwards of a model while it is patched in."""

    def __init__(self, model, monkeypatch) -> None:
        self.count = 0
        forward = model.forward

        def counted(*args, **kwargs):
            self.count += 1
            return forward(*args, **kwargs)

        monkeypatch.setattr(model, "forward", counted)


@pytest.mark.parametrize("moment", ["started", "verified", "drafted"])
def test_cancelling_stops_within_one_forward(moment: str, monkeypatch) -> None:
    target, assistant = tiny(), tiny("byte_level_b")
    flag = Flag()
    engines = Engines(target, assistant)
    prompt = engines.prompt(PROMPT, raw=True, system=None)
    stream = engines.assisted(
        prompt, settings_of(60), FIXED, exact=True, width=None, cancelled=flag
    )
    counters = [CountingModel(lm.model, monkeypatch) for lm in (target, assistant)]
    wanted = {"started": 0, "verified": Verified, "drafted": Drafted}[moment]
    for event in stream:
        if wanted == 0 or isinstance(event, wanted):
            flag.after = 0
            before = sum(counter.count for counter in counters)
            break
    rest = list(stream)
    assert isinstance(rest[-1], Finished)
    assert rest[-1].finish_reason == "cancelled"
    assert sum(counter.count for counter in counters) - before <= 1


def test_a_cancelled_run_reports_what_it_has() -> None:
    target, ids = tiny(), prompt_ids()
    full = plain(target, ids, settings_of(60)).ids
    run = plain(target, ids, settings_of(60), cancelled=Flag(10))
    assert run.reason == "cancelled"
    assert 0 < len(run.ids) < 60
    assert run.ids == full[: len(run.ids)]


def test_a_pair_cancelled_before_its_first_token_says_so() -> None:
    pair = fresh_pair()
    with pytest.raises(RunCancelled):
        pair.generate(PROMPT, LONG, FIXED, cancel=Flag(0))
    assert pair.generate(PROMPT, LONG, FIXED).finish_reason == "length"


def test_the_consumers_time_is_not_the_runs() -> None:
    target = tiny()
    events = []
    begin = time.perf_counter()
    for event in Engines(target, None).assisted(
        prompt_of(target, prompt_ids()),
        settings_of(20),
        FIXED,
        exact=True,
        width=None,
        make_proposer=lambda: proposers.random_ids(target.embedding_rows),
    ):
        time.sleep(0.02)
        events.append(event)
    elapsed = time.perf_counter() - begin
    assert len(events) > 20
    assert Run(tuple(events)).finished.wall_s <= elapsed - 0.02 * len(events) + 0.02


def test_the_first_token_comes_before_any_assistant_work(monkeypatch) -> None:
    assistant = tiny("byte_level_b")
    counter = CountingModel(assistant.model, monkeypatch)
    engines = Engines(tiny(), assistant)
    prompt = engines.prompt(PROMPT, raw=True, system=None)
    for event in engines.assisted(prompt, settings_of(9), FIXED, exact=True, width=None):
        if isinstance(event, Verified):
            break
    assert event.round == 0
    assert counter.count == 0
    assert prompt.target_ids == tuple(raw_ids(tiny(), PROMPT))
