"""Every kind of causal model in both roles: the ids of plain decoding, or a notice.

Sequences cross every window (16 tokens) and every context that ends.
"""

from __future__ import annotations

import copy
from functools import cache

import pytest
import torch

from tests.fixtures.architectures import (
    ARCHITECTURES,
    LONG_ROPE,
    OWN_CACHE,
    ROLLING,
    STATEFUL,
)
from tests.fixtures.models import make_language_model, make_model, tiny
from tests.fixtures.proposers import catalogue, perfect
from tests.fixtures.runs import (
    FIXED,
    PROMPT,
    SAMPLED,
    Run,
    assisted,
    plain,
    prompt_ids,
    raw_ids,
    scripted,
    settings_of,
)
from tests.fixtures.tokenizers import byte_level_a
from uag_core.config import AssistantConfig
from uag_core.decoding import probes
from uag_core.decoding.engines import Engines
from uag_core.models.handle import LanguageModel

MODES = {"greedy": {}, "sampled": SAMPLED}
LENGTHS = {
    "1": AssistantConfig(num_assistant_tokens=1),
    "3": AssistantConfig(num_assistant_tokens=3),
    "6": AssistantConfig(num_assistant_tokens=6),
    "schedule": AssistantConfig(num_assistant_tokens=3, num_assistant_tokens_schedule="heuristic"),
}
PLAIN = (*STATEFUL, *OWN_CACHE)


@cache
def twin(architecture: str, dtype: torch.dtype = torch.float32) -> LanguageModel:
    """Nearly the same model as `tiny`: it drafts well, and not always."""
    model = copy.deepcopy(tiny("byte_level_a", architecture, dtype=dtype).model)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
            parameter += 0.03 * parameter.std(correction=0).nan_to_num() * noise
    return make_language_model(model, byte_level_a(), f"{architecture}-twin")


def short_context(lm: LanguageModel, length: int) -> LanguageModel:
    """The same model with a context of `length` positions."""
    other = make_language_model(lm.model, lm.tokenizer, "short")
    other.context_length = min(length, lm.context_length)
    return other


def decoded_plainly(run: Run, architecture: str) -> bool:
    """Whether no draft was made and a notice says why."""
    said = any("cannot be rolled back" in notice for notice in run.notices)
    return said and not run.drafted and architecture in PLAIN


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("architecture", ROLLING)
def test_a_twin_drafts_what_is_partly_accepted(architecture: str, length: str) -> None:
    target, settings = tiny("byte_level_a", architecture), settings_of(20)
    ids = prompt_ids(count=10)
    run = assisted(target, twin(architecture), ids, settings, config=LENGTHS[length])
    assert run.ids == plain(target, ids, settings).ids
    assert run.started.path == "ids"
    assert run.accepted > 0


@pytest.mark.parametrize(
    ("role", "mode"), [("target", "greedy"), ("target", "sampled"), ("assistant", "greedy")]
)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_another_tokenizer_on_the_other_side(architecture: str, role: str, mode: str) -> None:
    this, other = tiny("byte_level_a", architecture), tiny("byte_level_b", seed=2)
    target, assistant = (this, other) if role == "target" else (other, this)
    settings = settings_of(20, **MODES[mode])
    run = assisted(target, assistant, PROMPT, settings, config=LENGTHS["3"])
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings).ids
    assert run.started.path == "text"
    assert run.drafted or decoded_plainly(run, architecture)


@pytest.mark.parametrize("role", ["target", "assistant"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_end_of_its_context(architecture: str, role: str) -> None:
    """A target stops there; an assistant goes on from the end of the text."""
    this = short_context(tiny("byte_level_a", architecture), 40)
    other = tiny("byte_level_b", seed=2)
    target, assistant = (this, other) if role == "target" else (other, this)
    kind = "byte_level_a" if role == "target" else "byte_level_b"
    ids, settings = raw_ids(tiny(kind), PROMPT * 5)[:30], settings_of(20)
    run = assisted(target, assistant, ids, settings)
    expected = plain(target, ids, settings)
    assert (run.ids, run.reason) == (expected.ids, expected.reason)
    assert run.reason == ("context" if role == "target" else "length")
    assert run.drafted or decoded_plainly(run, architecture)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_plain_decoding_is_what_transformers_generates(architecture: str) -> None:
    target, ids = tiny("byte_level_a", architecture), prompt_ids(count=12)
    tensor = torch.tensor([ids])
    expected = target.model.generate(
        tensor, attention_mask=torch.ones_like(tensor), max_new_tokens=40, do_sample=False
    )[0, len(ids) :].tolist()
    assert list(plain(target, ids, settings_of(40)).ids) == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("architecture", ROLLING)
def test_half_precision_where_rows_are_independent(architecture: str, mode: str) -> None:
    target = tiny("byte_level_a", architecture, dtype=torch.bfloat16)
    exact, width, notices = Engines(target, None).exactness(True, FIXED)
    if not exact:
        assert notices
        assert architecture == "gpt_neo"
        return
    settings, ids = settings_of(24, **MODES[mode]), prompt_ids(count=10)
    expected = plain(target, ids, settings, width=width).ids
    for name in ("always_wrong", "right_then_wrong"):
        run = scripted(target, ids, settings, catalogue(target, expected)[name], width=width)
        assert run.ids == expected, name
    helper = twin(architecture, torch.bfloat16)
    assert assisted(target, helper, ids, settings, width=width).ids == expected


@pytest.mark.parametrize("architecture", PLAIN)
def test_what_cannot_be_rolled_back_is_never_exact_in_half_precision(architecture: str) -> None:
    half = tiny("byte_level_a", architecture, dtype=torch.bfloat16)
    exact, width, notices = Engines(half, None).exactness(True, FIXED)
    assert (exact, width) == (False, None)
    assert "exact is off" in notices[0]


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3", "mixtral", "phi3"])
def test_tied_heads(architecture: str) -> None:
    size = len(byte_level_a()) + 12
    model = make_model(architecture, size, tie_word_embeddings=True)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    tied, other = make_language_model(model, byte_level_a()), tiny("byte_level_b")
    for target, assistant in ((tied, other), (other, tied)):
        run = assisted(target, assistant, PROMPT, settings_of(20))
        assert run.ids == plain(target, raw_ids(target, PROMPT), settings_of(20)).ids


# Rotary frequencies that switch with the length of the text


@pytest.mark.parametrize("width", [None, 5])
@pytest.mark.parametrize("count", [LONG_ROPE - d for d in (9, 3, 1, 0, -1, -9)])
def test_no_round_reaches_across_a_switch_of_frequencies(count: int, width: int | None) -> None:
    target, settings = tiny("byte_level_a", "phi3_longrope"), settings_of(20)
    ids = prompt_ids(count=count)
    expected = plain(target, ids, settings, width=width).ids
    run = scripted(target, ids, settings, lambda: perfect(expected), width=width)
    assert run.ids == expected
    assert run.accepted > 8
    assert assisted(target, tiny("byte_level_b"), ids, settings, width=width).ids == expected
    tensor = torch.tensor([ids])
    generated = target.model.generate(
        tensor, attention_mask=torch.ones_like(tensor), max_new_tokens=20, do_sample=False
    )[0, count:].tolist()
    assert list(expected) == generated


# What no configuration tells


def leaking() -> LanguageModel:
    """A model that remembers, besides its cache, how many tokens it was ever shown."""
    model = make_model("llama", len(byte_level_a()) + 12)
    shown = [0]

    def remember(module, args, output):
        shown[0] += args[0].shape[1]
        output.logits = output.logits.roll(shown[0], dims=-1)
        return output

    model.register_forward_hook(remember)
    return make_language_model(model, byte_level_a(), "leaking")


@pytest.mark.parametrize("role", ["target", "assistant"])
def test_a_state_that_nothing_tells_of_is_found_out(role: str) -> None:
    this, other = leaking(), tiny("byte_level_b")
    assert not this.is_stateful
    target, assistant = (this, other) if role == "target" else (other, this)
    run = assisted(target, assistant, PROMPT, settings_of(12))
    assert not run.drafted
    assert any("cannot be rolled back" in notice for notice in run.notices)


def test_the_probe_is_made_once_and_kept_with_the_model() -> None:
    lm = make_language_model(make_model("llama", len(byte_level_a())), byte_level_a())
    assert probes.can_roll_back(lm)
    lm.model = None  # nothing is run again
    assert probes.can_roll_back(lm)


def test_running_out_of_memory_is_no_answer_of_a_probe() -> None:
    def full(module, args):
        raise torch.OutOfMemoryError("full")

    model = make_model("llama", len(byte_level_a()))
    model.register_forward_pre_hook(full)
    lm = make_language_model(model, byte_level_a())
    with pytest.raises(torch.OutOfMemoryError):
        probes.can_roll_back(lm)
