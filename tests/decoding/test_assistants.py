"""Assistants of every sort: the same tokenizer, another one, a short context, a random head."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.fixtures import tokenizers
from tests.fixtures.models import CONTEXT, make_language_model, make_model, tiny
from tests.fixtures.reciting import reciting
from tests.fixtures.runs import FIXED, PROMPT, SAMPLED, assisted, plain, raw_ids, settings_of
from tests.fixtures.texts import CORPUS
from tests.fixtures.tokenizers import LOSSLESS_KINDS, byte_level_a
from uag_core.config import AssistantConfig
from uag_core.decoding.engines import Engines
from uag_core.errors import UnsupportedModelError
from uag_core.events import Drafted, Verified
from uag_core.models.handle import LanguageModel
from uag_core.tokenization.utf8 import incomplete_tail

KINDS = ("byte_level_a", "byte_level_b", "llama_style", "gemma_style")
TEXT = (
    " Paris, and the river that runs through it is called the Seine.\n\n"
    "def f(x):\n    return 1\n今天天气很好。 naïve 🦙🦙 x != y  end. Once upon a time"
    " there was a fox."
)


def padded(rows: int, tokenizer=None, seed: int = 0):
    """A Llama whose embedding has `rows` rows."""
    tokenizer = tokenizer or byte_level_a()
    return make_language_model(make_model("llama", rows, seed=seed), tokenizer, f"rows-{rows}")


def misplaced_drafts(run, assistant, text: str) -> list[tuple[bytes, bytes]]:
    """Drafts that are not what follows the committed text, each with that text.

    Only looked at where the assistant writes the text so far as it writes the beginning of the
    whole: elsewhere a model that recites by position cannot know its place.
    """
    encode = assistant.codec.encode
    ids, data = encode(text), text.encode()
    committed, wrong = b"", []
    for event in run.events:
        if isinstance(event, Verified):
            committed += b"".join(piece.raw for piece in event.tokens if not piece.control)
        elif isinstance(event, Drafted):
            so_far = committed[: len(committed) - incomplete_tail(committed)]
            read = encode(so_far.decode())
            draft = b"".join(piece.raw for piece in event.draft)
            follows = data.startswith((so_far + draft, committed + draft))
            if read == ids[: len(read)] and not follows:
                wrong.append((so_far, draft))
    return wrong


def share(run) -> float:
    assert run.candidates > 20
    return run.accepted / run.candidates


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "mistral", "gemma3", "bloom"])
def test_a_target_that_drafts_for_itself_is_accepted(architecture: str) -> None:
    target = tiny("byte_level_a", architecture, padding_rows=0)
    config = replace(FIXED, assistant_dtype="same")  # its very weights, not rounded ones
    run = assisted(target, target, "The capital", settings_of(48), config=config)
    assert share(run) >= 0.99
    assert Engines(target, target).path == "ids"


def test_an_assistant_with_random_weights_is_not() -> None:
    accepted = candidates = 0
    for seed in range(2, 4):
        for kind in ("byte_level_a", "byte_level_b", "gemma_style"):
            run = assisted(tiny(), tiny(kind, seed=seed), PROMPT, settings_of(40))
            accepted += run.accepted
            candidates += run.candidates
    assert candidates > 300
    assert accepted / candidates <= 0.02


@pytest.mark.parametrize("kind", ["byte_level_b", "llama_style", "gemma_style"])
def test_a_target_that_samples_its_one_answer_accepts_greedy_drafts(kind: str) -> None:
    target, assistant = reciting("byte_level_a", PROMPT, TEXT), reciting(kind, PROMPT, TEXT)
    settings = settings_of(400, eos_token_ids=None, **{**SAMPLED, "temperature": 0.05})
    run = assisted(target, assistant, PROMPT, settings)
    assert run.text == TEXT
    assert misplaced_drafts(run, assistant, TEXT) == []
    assert share(run) > 0.5


@pytest.mark.parametrize("assistant_kind", KINDS)
@pytest.mark.parametrize("target_kind", KINDS)
def test_an_assistant_that_knows_the_text_is_accepted_across_tokenizers(
    target_kind: str, assistant_kind: str
) -> None:
    """Both recite by position: one id too many or too few, and everything after is wrong.

    A draft may end in the middle of a target token, so that its last candidates are refused.
    """
    target = reciting(target_kind, PROMPT, TEXT)
    assistant = reciting(assistant_kind, PROMPT, TEXT)
    settings = settings_of(400, eos_token_ids=None)
    run = assisted(target, assistant, PROMPT, settings)
    assert run.text == TEXT
    assert run.reason == "eos"
    assert misplaced_drafts(run, assistant, TEXT) == []
    assert share(run) > 0.5
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings).ids


@pytest.mark.parametrize("line", CORPUS[:24:2])
def test_an_assistant_keeps_its_place_in_any_text(line: str) -> None:
    text = " " + line.strip()
    target, assistant = reciting("gemma_style", "x", text), reciting("byte_level_a", "x", text)
    run = assisted(target, assistant, "x", settings_of(200, eos_token_ids=None))
    assert run.text == text
    assert misplaced_drafts(run, assistant, text) == []
    assert run.accepted >= 0.3 * run.candidates


@pytest.mark.parametrize(("rows", "other"), [(512, 576), (576, 512), (500, 640)])
def test_padding_of_the_vocabulary_makes_no_difference(rows: int, other: int) -> None:
    target, assistant = padded(rows), padded(other, seed=3)
    assert Engines(target, assistant).path == "ids"
    settings = settings_of(30)
    run = assisted(target, assistant, "Hello world", settings)
    assert run.started.path == "ids"
    assert run.ids == plain(target, raw_ids(target, "Hello world"), settings).ids
    assert run.drafted


@pytest.mark.parametrize(
    "other",
    [
        tokenizers.same_size_other_ids,
        tokenizers.renamed_added_token,
        tokenizers.with_think_token,
        tokenizers.gemma_style,
    ],
)
@pytest.mark.parametrize("swap", [False, True])
def test_different_tokenizers_go_through_text_even_at_equal_size(other, swap: bool) -> None:
    left, right = padded(720), padded(720, other(), seed=3)
    target, assistant = (right, left) if swap else (left, right)
    assert Engines(target, assistant).path == "text"
    run = assisted(target, assistant, PROMPT, settings_of(24))
    assert run.started.path == "text"
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings_of(24)).ids


def test_rows_past_the_assistants_tokenizer_are_never_drafted() -> None:
    assistant = padded(900, tokenizers.byte_level_b(), seed=1)
    with torch.no_grad():
        assistant.model.lm_head.weight[assistant.codec.size :] *= 50
    run = assisted(tiny(), assistant, PROMPT, settings_of(30))
    drafted = [piece.id for event in run.drafted for piece in event.draft]
    assert drafted
    assert max(drafted) < assistant.codec.size


def test_more_rows_than_the_assistant_has_are_never_sent_to_it() -> None:
    """The same tokenizer over fewer embedding rows: ids it lacks are not fed to it."""
    target, assistant = padded(512), padded(400, seed=1)
    settings = settings_of(40)
    run = assisted(target, assistant, PROMPT, settings)
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings).ids


@pytest.mark.parametrize("kind", ["byte_level_a", "byte_level_b", "llama_style", "wordpiece"])
@pytest.mark.parametrize("draft", [3, 60])
def test_an_assistant_with_a_short_context_drafts_from_the_end_of_the_text(
    kind: str, draft: int
) -> None:
    """64 learned positions and a prompt of more than 100 tokens: no index error, no drift."""
    target, assistant = tiny(), tiny(kind, "gpt2")
    assert assistant.context_length == 64
    ids = raw_ids(target, PROMPT + " 歪 🦙 and" * 24)[:160]
    settings = settings_of(24)
    config = AssistantConfig(num_assistant_tokens=draft)
    run = assisted(target, assistant, ids, settings, config=config)
    assert run.ids == plain(target, ids, settings).ids
    assert run.drafted
    assert any("context" in notice for notice in run.notices)


def test_an_assistant_whose_context_fills_up_in_the_middle_goes_on() -> None:
    target, assistant = tiny(), tiny("byte_level_b", "gpt2")
    settings = settings_of(60)
    run = assisted(target, assistant, PROMPT, settings)
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings).ids
    assert run.drafted[-1].round > 50


@pytest.mark.parametrize("architecture", ["mistral", "gemma2", "gemma3"])
@pytest.mark.parametrize("count", [10, 15, 16, 17, 40])
def test_sliding_windows_are_crossed_by_both_models(architecture: str, count: int) -> None:
    target = tiny("byte_level_a", architecture, padding_rows=0)
    assistant = tiny("byte_level_b", architecture, seed=1)
    ids = (raw_ids(target, PROMPT) * 5)[:count]
    settings = settings_of(30)
    run = assisted(target, assistant, ids, settings)
    assert run.ids == plain(target, ids, settings).ids
    own = assisted(target, target, ids, settings)
    assert own.ids == run.ids
    assert share(own) >= 0.99


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_attention_implementations(implementation: str) -> None:
    tokenizer = byte_level_a()
    model = make_model("mistral", len(tokenizer) + 4)
    model.set_attn_implementation(implementation)
    target = make_language_model(model, tokenizer)
    run = assisted(target, tiny("llama_style"), PROMPT, settings_of(40))
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings_of(40)).ids


def test_a_tokenizer_that_loses_text_is_named_in_a_notice() -> None:
    notices = Engines(tiny(), tiny("wordpiece")).notices
    assert len(notices) == 1
    assert tiny("wordpiece").id in notices[0]
    assert Engines(tiny(), tiny("byte_level_b")).notices == ()


@pytest.mark.parametrize("kind", LOSSLESS_KINDS)
def test_a_long_context_is_read_in_pieces_and_stays_exact(kind: str) -> None:
    target, assistant = tiny(), tiny(kind, seed=4)
    ids = (raw_ids(target, PROMPT) * 60)[: CONTEXT - 40]
    run = assisted(target, assistant, ids, settings_of(16), config=FIXED)
    assert run.ids == plain(target, ids, settings_of(16)).ids


def test_a_model_that_takes_no_cache_is_refused() -> None:
    """A stray `cache=` would be swallowed and every later step would read a text of one token."""
    from transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel

    model = OpenAIGPTLMHeadModel(OpenAIGPTConfig(vocab_size=600, n_embd=16, n_layer=1, n_head=2))
    with pytest.raises(UnsupportedModelError, match="KV cache"):
        LanguageModel.build(ref="m", id="m", revision=None, model=model, tokenizer=byte_level_a())
