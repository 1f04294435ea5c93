"""Prompts: each model through its own template and rules, special tokens once."""

from __future__ import annotations

import pytest

from tests.fixtures import tokenizers
from tests.fixtures.models import make_language_model, make_model, tiny
from tests.fixtures.runs import FIXED, PROMPT, Run, settings_of
from tests.fixtures.tokenizers import CORE_KINDS
from uag_core.config import AssistantConfig
from uag_core.decoding.engines import Engines
from uag_core.errors import InputError
from uag_core.pair import ModelPair

MESSAGES = [{"role": "user", "content": "Say hello"}]
WITH_BOS = ("byte_level_b", "llama_style", "gemma_style")


@pytest.mark.parametrize("kind", WITH_BOS)
@pytest.mark.parametrize("raw", [True, False])
def test_there_is_exactly_one_bos(kind: str, raw: bool) -> None:
    """The chat template writes one, the post-processor another: only one remains."""
    target, assistant = tiny(kind), tiny("byte_level_a")
    bos = target.tokenizer.bos_token_id
    forwards = Engines(target, assistant).prompt("Say hello", raw=raw, system=None)
    assert list(forwards.target_ids).count(bos) == 1
    assert forwards.target_ids[0] == bos
    backwards = Engines(assistant, target).prompt("Say hello", raw=raw, system=None)
    assert list(backwards.assistant_ids).count(bos) == 1


@pytest.mark.parametrize("kind", WITH_BOS)
def test_no_candidate_and_no_assistant_id_is_a_second_bos(kind: str) -> None:
    for target, assistant in ((tiny(kind), tiny("byte_level_a")), (tiny(), tiny(kind))):
        engines = Engines(target, assistant)
        prompt = engines.prompt(PROMPT, raw=True, system=None)
        run = Run(tuple(engines.assisted(prompt, settings_of(40), FIXED, exact=True, width=None)))
        bos = target.tokenizer.bos_token_id
        assert run.drafted
        assert all(piece.id != bos for event in run.drafted for piece in event.candidates)


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_each_model_reads_its_own_template(kind: str) -> None:
    target, assistant = tiny("byte_level_a"), tiny(kind)
    prompt = Engines(target, assistant).prompt(MESSAGES, raw=False, system="Be brief")
    for lm, ids in ((target, prompt.target_ids), (assistant, prompt.assistant_ids)):
        messages = [{"role": "system", "content": "Be brief"}, *MESSAGES]
        text = lm.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        assert list(ids) == lm.tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_a_raw_prompt_is_what_the_tokenizer_makes_of_it(kind: str) -> None:
    prompt = Engines(tiny(kind), None).prompt(PROMPT, raw=True, system=None)
    assert list(prompt.target_ids) == tiny(kind).tokenizer(PROMPT)["input_ids"]


def without_template():
    tokenizer = tokenizers.variant(tokenizers.byte_level_a(), lambda document: None)
    tokenizer.chat_template = None
    return make_language_model(make_model("llama", len(tokenizer)), tokenizer, "no-template")


def test_without_a_template_the_prompt_is_plain_text_and_a_notice_says_so() -> None:
    lm = without_template()
    prompt = Engines(lm, None).prompt("Say hello", raw=False, system=None)
    assert list(prompt.target_ids) == lm.tokenizer("Say hello")["input_ids"]
    pair = ModelPair.from_models(lm, tiny("byte_level_b"))
    for engine in (None, "baseline"):
        result = pair.generate("Say hello", settings_of(3), FIXED, engine=engine)
        assert any("no chat template" in notice for notice in result.notices)


def test_an_assistant_without_a_template_reads_plain_text() -> None:
    lm = without_template()
    prompt = Engines(tiny("byte_level_b"), lm).prompt(MESSAGES, raw=False, system=None)
    assert b"Say hello" in b"".join(lm.codec.pieces(prompt.assistant_ids))
    assert not any(lm.codec.is_control(i) for i in prompt.assistant_ids)


def test_a_template_that_refuses_a_system_role_gets_it_in_the_question() -> None:
    tokenizer = tokenizers.variant(tokenizers.byte_level_b(), lambda document: None)
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m['role'] == 'system' %}"
        "{{ raise_exception('no system role') }}{% endif %}{{ m['content'] }}{% endfor %}"
    )
    lm = make_language_model(make_model("llama", len(tokenizer)), tokenizer, "strict")
    read = Engines(tiny(), lm).prompt(MESSAGES, raw=False, system="Be brief")
    text = b"".join(lm.codec.pieces(read.assistant_ids))
    assert b"Be brief" in text
    assert b"Say hello" in text
    with pytest.raises(InputError, match="no system role"):
        Engines(lm, None).prompt(MESSAGES, raw=False, system="Be brief")


def test_ids_are_taken_as_they_are_and_the_assistant_reads_their_text() -> None:
    target, assistant = tiny(), tiny("gemma_style")
    ids = target.codec.encode("The capital")
    prompt = Engines(target, assistant).prompt(ids, raw=True, system=None)
    assert list(prompt.target_ids) == ids
    assert list(prompt.assistant_ids) == assistant.tokenizer("The capital")["input_ids"]


@pytest.mark.parametrize("bad", [[-1], [5, 10**6], [512]])
def test_ids_outside_the_vocabulary_are_refused(bad: list[int]) -> None:
    with pytest.raises(InputError, match="outside the vocabulary"):
        Engines(tiny(), None).prompt(bad, raw=True, system=None)


def test_a_text_missing_from_the_assistants_vocabulary_is_never_id_zero() -> None:
    """The assistant reads text; what it lacks is its own unknown token, not a stand-in."""
    target, assistant = tiny(), tiny("unigram_nfkc")
    read = Engines(target, assistant).prompt("naïve 歪 🦙", raw=True, system=None)
    own = assistant.tokenizer("naïve 歪 🦙")["input_ids"]
    assert list(read.assistant_ids) == own


def test_exactness_that_cannot_be_had_is_said_in_the_run(monkeypatch) -> None:
    import torch

    from uag_core.decoding import profile

    monkeypatch.setattr(profile, "rows_are_independent", lambda lm, width: False)
    target = tiny(dtype=torch.bfloat16)
    monkeypatch.setattr(target, "measured", {})  # other tests share it, and have measured it
    pair = ModelPair.from_models(target, tiny("byte_level_b", dtype=torch.bfloat16))
    result = pair.generate(PROMPT, settings_of(4), AssistantConfig(num_assistant_tokens=3))
    assert not result.exact
    assert any("exact is off" in notice for notice in result.notices)
