"""Compiled runs: the ids of compiled plain decoding, compiled once and outside of every clock.

Two tests compile for real; in the others `torch.compile` is replaced by something quick.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tests.fixtures import proposers
from tests.fixtures.models import make_language_model, make_model
from tests.fixtures.runs import PROMPT, SAMPLED, Run, settings_of
from tests.fixtures.tokenizers import KINDS
from uag_core.benchmark.compare import CompareDone, compare
from uag_core.benchmark.plan import Plan
from uag_core.benchmark.report import Comparison
from uag_core.benchmark.runner import BenchDone, BenchJob, bench
from uag_core.benchmark.suites import BenchPrompt
from uag_core.config import AssistantConfig
from uag_core.decoding import compiled, compiling
from uag_core.decoding.compiled import CompiledModel
from uag_core.decoding.compiling import Settled
from uag_core.decoding.engines import Engines
from uag_core.errors import RunCancelled
from uag_core.events import COMPILING, Notice
from uag_core.models.handle import LanguageModel
from uag_core.pair import ModelPair

needs_compiler = pytest.mark.skipif(not compiled.has_compiler(), reason="no C++ compiler")
CONFIG = AssistantConfig(num_assistant_tokens=4, assistant_dtype="same", compile=True)
NEW_TOKENS = 40
PAUSE_S = 0.4  # what the quick stand-in takes to "compile"


def model(
    kind: str, seed: int, dtype: torch.dtype = torch.float32, architecture: str = "llama"
) -> LanguageModel:
    """A model of this module's own, so that what it compiles goes with it."""
    tokenizer = KINDS[kind]()
    rows = len(tokenizer) + 12
    net = make_model(architecture, rows, seed=seed, dtype=dtype, num_hidden_layers=1)
    return make_language_model(net, tokenizer, f"compiled-{kind}")


def pair(**options: Any) -> Engines:
    return Engines(model("byte_level_a", 0, **options), model("byte_level_b", 5, **options))


def settled(engines: Engines, config: AssistantConfig = CONFIG, exact: bool = True) -> Settled:
    prompt = engines.prompt(PROMPT, raw=True, system=None)
    return compiling.finished(compiling.settle(engines, config, exact, [prompt], NEW_TOKENS))


def run(events: Any) -> Run:
    return Run(tuple(events))


# Compiled for real


@pytest.fixture
def compile_cache(tmp_path, monkeypatch) -> None:
    """What inductor writes goes to a folder of the test."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))


def graphs_made() -> int:
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def check_ids(engines: Engines, how: Settled, config: AssistantConfig) -> None:
    """Plain, assisted and an oracle's runs, greedy and sampled: equal ids, nothing compiled."""
    prompt, shape = how.prompts[0], {"exact": True, "width": how.width}
    graphs = graphs_made()
    for settings in (settings_of(NEW_TOKENS), settings_of(NEW_TOKENS, **SAMPLED)):
        plain = run(engines.plain(prompt, settings, **shape))
        oracle = run(
            engines.assisted(
                prompt,
                settings,
                config,
                **shape,
                make_proposer=lambda ids=plain.ids: proposers.right_then_wrong(ids, 400),
            )
        )
        assert 0 < oracle.accepted < oracle.candidates
        assisted = run(engines.assisted(prompt, settings, config, **shape))
        assert assisted.drafted
        assert assisted.ids == plain.ids == oracle.ids
        assert plain.started.cache_length == prompt.compiled[0]
    assert graphs_made() == graphs, "something was compiled again inside of a run"


@needs_compiler
@pytest.mark.timeout(1200)  # seconds where nothing else runs, minutes beside other work
def test_compiled_assisted_ids_equal_compiled_plain_ids(compile_cache, monkeypatch) -> None:
    monkeypatch.setattr(compiling, "_pays", lambda *_: True)  # whatever a clock says here
    engines, graphs = pair(), graphs_made()
    how = settled(engines)
    assert (how.exact, how.width) == (True, 5)
    assert how.compile_s > 0
    assert how.prompts[0].compiled == (256, 256)
    assert graphs_made() - graphs == 1 + len(compiling.DRAFT_WIDTHS)
    check_ids(engines, how, CONFIG)
    again = settled(engines)
    assert (again.compile_s, again.prompts) == (0, how.prompts)


@needs_compiler
@pytest.mark.timeout(1200)  # seconds where nothing else runs, minutes beside other work
def test_compiled_half_precision_is_exact(compile_cache) -> None:
    engines = Engines(model("byte_level_a", 0, torch.bfloat16), None)
    config = AssistantConfig(method="lookup", prompt_lookup_num_tokens=5, compile=True)
    how = settled(engines, config)
    assert (how.exact, how.width) == (True, 6)
    check_ids(engines, how, config)


# With something quick in the place of torch.compile


@pytest.fixture
def quick(monkeypatch) -> Iterator[list[str]]:
    """`torch.compile` that waits and hands back the function; the list of what was compiled."""
    made: list[str] = []

    def compile_slowly(function: Callable[[], Any], **_: Any) -> Callable[[], Any]:
        made.append(function.__code__.co_name)
        time.sleep(PAUSE_S)
        return function

    monkeypatch.setattr(torch, "compile", compile_slowly)
    monkeypatch.setattr(compiled, "has_compiler", lambda: True)
    monkeypatch.setattr(compiling, "_pays", lambda *_: True)
    return made


def comparison(engines: Engines, config: AssistantConfig = CONFIG, **options: Any) -> Comparison:
    return Comparison(
        engines, engines.prompt(PROMPT, raw=True, system=None), settings_of(8), config, **options
    )


def test_compile_time_is_told_and_in_no_other_figure(quick) -> None:
    steps = list(compare(comparison(pair())))
    done = steps[-1]
    assert isinstance(done, CompareDone)
    document = done.document
    assert len(quick) == 3
    assert document["compiled"] is True
    assert document["compile_s"] >= 3 * PAUSE_S
    assert document["identical"] is True
    assert any(line.startswith("Compiled in ") for line in document["notices"])
    told = [s.event.message for s in steps[:-1] if s.engine == COMPILING]
    assert len(told) == 3
    assert all(line.startswith("Compiling the ") for line in told)
    first = next(i for i, s in enumerate(steps) if not isinstance(s.event, Notice))
    assert all(step.engine == COMPILING for step in steps[:first]), "compiled inside of a run"
    for name in ("baseline", "assisted"):
        assert document[name]["wall_s"] < PAUSE_S
    widths = {name: runs[0][0].width for name, runs in done.runs.items()}
    assert widths == {"baseline": 5, "uag": 5, "baseline_unpadded": None}
    fastest = min(document[name]["tpot_s"] for name in ("baseline", "baseline_unpadded"))
    assert document["decode_speedup"] == pytest.approx(fastest / document["assisted"]["tpot_s"])


def test_a_second_run_and_another_prompt_compile_nothing(quick) -> None:
    engines = pair()
    list(compare(comparison(engines)))
    made = len(quick)
    document = list(compare(comparison(engines)))[-1].document
    assert len(quick) == made
    assert (document["compiled"], document["compile_s"]) == (True, 0)
    longer = ModelPair.from_models(engines.target, engines.assistant)
    result = longer.generate(PROMPT * 3, settings_of(8), CONFIG, raw=True)
    assert len(quick) == made
    assert result.exact


def test_a_benchmark_compiles_every_shape_before_it_measures(quick) -> None:
    engines = pair()
    prompts = tuple(BenchPrompt(str(n), "short", PROMPT * n) for n in (1, 2))
    plan = Plan(prompts, ("uag", "lookup"), settings_of(6), sweep=(2, 4), raw=True, compile=True)
    *steps, done = bench(BenchJob(engines, plan))
    assert isinstance(done, BenchDone)
    named = [step.method for step in steps if hasattr(step, "method")]
    assert COMPILING not in named[len([m for m in named if m == COMPILING]) :]
    assert done.document["compiled"] is True
    assert done.document["compile_s"] >= PAUSE_S * len(set(quick))
    assert done.document["settings"]["compile"] is True
    rows = done.document["rows"]
    assert all(row["identical"] for row in rows)
    assert {row["width"] for row in rows if row["method"] == "baseline"} == {4, 5, 6}


def test_plain_figures_of_eager_runs_say_that_nothing_was_compiled() -> None:
    config = AssistantConfig(num_assistant_tokens=4, assistant_dtype="same")
    document = list(compare(comparison(pair(), config)))[-1].document
    assert (document["compiled"], document["compile_s"]) == (False, None)


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        ("compiler", "no C++ compiler"),
        ("zerogpu", "ZeroGPU"),
        ("alibi", "no fixed form"),
        ("quantised", "quantised"),
        ("fails", "BackendError: it broke"),
        ("wrong", "its compiled logits are not its own"),
    ],
)
def test_what_cannot_be_compiled_runs_as_it_is_with_a_notice(
    cause: str, reason: str, quick, monkeypatch
) -> None:
    class BackendError(Exception):
        pass

    def failing(function: Callable[[], Any], **_: Any) -> Callable[[], Any]:
        quick.append("failed")
        if cause == "wrong":
            return lambda: function().flip(0)
        raise BackendError("it broke\nin many lines")

    engines = pair()
    if cause == "compiler":
        monkeypatch.setattr(compiled, "has_compiler", lambda: False)
    elif cause == "zerogpu":
        monkeypatch.setenv(compiled.ZEROGPU_VARIABLE, "true")
    elif cause == "alibi":
        engines.target.uses_alibi = True
    elif cause == "quantised":
        engines.target.quantization = "8bit"
    else:
        monkeypatch.setattr(torch, "compile", failing)
    how = settled(engines)
    assert how.notices[0].startswith("compile is off: ")
    assert reason in how.notices[0]
    assert (how.exact, how.width, how.compile_s) == (True, None, None)
    assert how.prompts[0].compiled is None
    tried = len(quick)
    assert settled(engines).notices == how.notices
    assert len(quick) == tried, "what has failed is not tried again"


def test_an_assistant_that_cannot_be_compiled_drafts_as_it_is(quick) -> None:
    engines = pair()
    engines.assistant.quantization = "8bit"
    how = settled(engines)
    assert how.prompts[0].compiled == (256, None)
    assert any("drafts uncompiled" in line for line in how.notices)
    check_ids(engines, how, CONFIG)


def test_an_assistant_is_not_compiled_in_vain(quick, monkeypatch) -> None:
    monkeypatch.setattr(compiling, "_pays", lambda *_: False)
    how = settled(pair())
    assert how.prompts[0].compiled == (256, None)
    assert any("faster here" in line for line in how.notices)


def test_an_assistant_whose_text_outgrows_its_cache_goes_on(quick, monkeypatch) -> None:
    engines = pair()
    monkeypatch.setattr(compiled, "_SHORTEST", 32)
    monkeypatch.setattr(compiling, "_assistant_positions", lambda *_: 32)
    how = settled(engines)
    assert how.prompts[0].compiled == (64, 32)
    check_ids(engines, how, CONFIG)


def test_cancelling_between_two_compilations(quick) -> None:
    engines = pair()
    prompt = engines.prompt(PROMPT, raw=True, system=None)
    steps = compiling.settle(engines, CONFIG, True, [prompt], NEW_TOKENS, lambda: len(quick) == 1)
    with pytest.raises(RunCancelled):
        compiling.finished(steps)
    assert len(quick) == 1


def test_forms_are_few_and_their_memory_is_counted(quick) -> None:
    lm = model("byte_level_a", 0)
    for length in (256, 384, 512, 768):
        compiled.form(lm, length, (4,))
    forms = lm.measured["compiled forms"]
    assert list(forms) == [384, 512, 768]
    assert lm.compiled_bytes == sum(form.num_bytes for form in forms.values()) > 0
    compiled.form(lm, 384, (4,))
    compiled.form(lm, 256, (4,))
    assert list(forms) == [768, 384, 256], "the least recently used one goes"


def test_a_form_serves_one_sequence_at_a_time_and_starts_clean(quick) -> None:
    lm = model("byte_level_a", 0)
    form = compiled.form(lm, 256, (4,))
    with CompiledModel(lm, form, width=4) as opened:
        opened.prefill([1, 2, 3, 4, 5, 6])
        first = opened.forward([7, 8]).clone()
        with pytest.raises(Exception, match="in use"):
            CompiledModel(lm, form, width=4)
    with torch.inference_mode():
        form.cache.layers[0].keys.fill_(float("nan"))
    with CompiledModel(lm, form, width=4) as opened:
        opened.prefill([1, 2, 3, 4, 5, 6])
        assert torch.equal(opened.forward([7, 8]), first)
        opened.rollback(1)
        assert torch.equal(opened.forward([8]), first[1:])


@pytest.mark.parametrize(("positions", "length"), [(1, 256), (257, 384), (385, 512), (700, 768)])
def test_cache_lengths_are_few(positions: int, length: int) -> None:
    assert compiled.cache_length(positions) == length
