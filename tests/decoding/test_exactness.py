"""Whatever drafts, the output is the target's own: equal ids, greedy and sampled."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures import proposers
from tests.fixtures.models import tiny
from tests.fixtures.proposers import PROPOSERS, TextOracle, catalogue
from tests.fixtures.runs import (
    FIXED,
    PROMPT,
    SAMPLED,
    assisted,
    plain,
    prompt_ids,
    raw_ids,
    scripted,
    settings_of,
)
from tests.fixtures.tokenizers import CORE_KINDS, ORDERED_PAIRS
from uag_core.config import AssistantConfig
from uag_core.decoding.engines import Engines
from uag_core.errors import InputError

CROPPABLE = ("llama", "gpt2", "mistral", "gemma2", "gemma3", "bloom", "mixtral")
MODES = {"greedy": {}, "sampled": SAMPLED}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("proposer", PROPOSERS)
@pytest.mark.parametrize("width", [None, 6])
def test_any_proposer_leaves_the_ids_as_they_are(
    mode: str, proposer: str, width: int | None
) -> None:
    target, ids, settings = tiny(), prompt_ids(), settings_of(40, **MODES[mode])
    expected = plain(target, ids, settings, width=width)
    run = scripted(target, ids, settings, catalogue(target, expected.ids)[proposer], width=width)
    assert run.ids == expected.ids
    assert (run.text, run.reason) == (expected.text, expected.reason)


@pytest.mark.parametrize("architecture", CROPPABLE)
@pytest.mark.parametrize("proposer", ["perfect", "always_wrong", "right_then_wrong"])
@pytest.mark.parametrize("width", [None, 5])
def test_any_architecture_is_rolled_back_without_a_trace(
    architecture: str, proposer: str, width: int | None
) -> None:
    """40 tokens behind 10: past the 16-token windows of the sliding models."""
    target = tiny("byte_level_a", architecture)
    ids, settings = prompt_ids(count=10), settings_of(40)
    expected = plain(target, ids, settings, width=width)
    run = scripted(target, ids, settings, catalogue(target, expected.ids)[proposer], width=width)
    assert run.ids == expected.ids


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("target_kind", "assistant_kind"), ORDERED_PAIRS)
def test_every_ordered_pair_of_tokenizers(mode: str, target_kind: str, assistant_kind: str) -> None:
    target, assistant = tiny(target_kind), tiny(assistant_kind, seed=5)
    settings = settings_of(24, **MODES[mode])
    run = assisted(target, assistant, PROMPT, settings)
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings).ids
    assert run.drafted, "the assistant never came to propose anything"


@pytest.mark.parametrize(("target_kind", "assistant_kind"), ORDERED_PAIRS)
def test_every_ordered_pair_with_a_drafter_that_knows_the_answer(
    target_kind: str, assistant_kind: str
) -> None:
    """Random targets write half characters and ids no tokenizer would choose: drafts of that very
    text, through the other tokenizer, change nothing."""
    target, codec = tiny(target_kind), tiny(assistant_kind).codec
    ids, settings = raw_ids(target, PROMPT), settings_of(48)
    expected = plain(target, ids, settings)
    answer = b"".join(target.codec.pieces(expected.ids, ids))
    run = scripted(target, ids, settings, lambda: TextOracle(codec, codec.encode(PROMPT), answer))
    assert run.ids == expected.ids


@pytest.mark.parametrize("count", range(1, 13))
@pytest.mark.parametrize("kinds", [("byte_level_a", "llama_style"), ("gemma_style", "wordpiece")])
def test_prompts_of_any_few_ids(count: int, kinds: tuple[str, str]) -> None:
    target, assistant = tiny(kinds[0]), tiny(kinds[1])
    ids, settings = prompt_ids(kinds[0], count), settings_of(20)
    expected = plain(target, ids, settings)
    assert assisted(target, assistant, ids, settings).ids == expected.ids
    assert (
        scripted(target, ids, settings, lambda: proposers.right_then_wrong(expected.ids, 400)).ids
        == expected.ids
    )


@pytest.mark.parametrize("prompt", ["", [], [[]], ["a", "b"], None, 3])
def test_a_prompt_without_ids_is_refused(prompt) -> None:
    with pytest.raises(InputError):
        Engines(tiny(), None).prompt(prompt, raw=True, system=None)


def test_white_space_is_a_text_to_continue_but_no_question() -> None:
    engines = Engines(tiny(), None)
    assert engines.prompt("  \n", raw=True, system=None).target_ids
    with pytest.raises(InputError):
        engines.prompt("  \n", raw=False, system=None)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 8, 12, 16])
def test_one_prompt_id_and_every_draft_length(length: int) -> None:
    target, assistant = tiny(), tiny("byte_level_b")
    settings, config = settings_of(50), AssistantConfig(num_assistant_tokens=length)
    expected = plain(target, [10], settings)
    assert assisted(target, assistant, [10], settings, config=config).ids == expected.ids
    run = scripted(target, [10], settings, lambda: proposers.perfect(expected.ids), config=config)
    assert run.ids == expected.ids


@pytest.mark.parametrize("lookbehind", [0, 1, 3, 40])
def test_any_look_behind(lookbehind: int) -> None:
    target, assistant = tiny("gemma_style"), tiny("byte_level_a")
    config = AssistantConfig(
        num_assistant_tokens=6, target_lookbehind=lookbehind, assistant_lookbehind=lookbehind
    )
    run = assisted(target, assistant, PROMPT, settings_of(30), config=config)
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings_of(30)).ids


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("schedule", ["auto", "constant", "heuristic"])
def test_any_way_to_choose_the_draft_length(mode: str, schedule: str) -> None:
    """Draft lengths that follow the clock never show in the ids."""
    target, assistant = tiny(), tiny("llama_style", seed=2)
    number = None if schedule == "auto" else 4
    config = AssistantConfig(num_assistant_tokens=number, num_assistant_tokens_schedule=schedule)
    settings = settings_of(40, **MODES[mode])
    run = assisted(target, assistant, PROMPT, settings, config=config)
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings).ids


@pytest.mark.parametrize("kind", CORE_KINDS)
@pytest.mark.parametrize(
    "prompt",
    [
        "Repeat: 🦙🏿 ጠጡ 歪 ",
        "naïve 歪 🦙",
        "a<|im_end|>b</s>",
        "x\r\n\r\n  y",
        "▁x \ufffd",
        "0" * 60,
    ],
)
def test_difficult_prompts(kind: str, prompt: str) -> None:
    for assistant in ("byte_level_b", "unigram_nfkc"):
        run = assisted(tiny(kind), tiny(assistant), prompt, settings_of(12))
        target = tiny(kind)
        assert run.ids == plain(target, raw_ids(target, prompt), settings_of(12)).ids


@pytest.mark.parametrize("mode", MODES)
def test_seeded_sampling_repeats_itself_and_another_seed_differs(mode: str) -> None:
    target, ids = tiny(), prompt_ids()
    runs = [plain(target, ids, settings_of(30, **MODES[mode])).ids for _ in range(2)]
    assert runs[0] == runs[1]
    if mode == "sampled":
        assert plain(target, ids, settings_of(30, **{**SAMPLED, "seed": 12})).ids != runs[0]
        assert plain(target, ids, settings_of(30)).ids != runs[0]


@pytest.mark.parametrize("architecture", ["llama", "mistral", "gemma3", "gpt2", "bloom"])
@pytest.mark.parametrize("mode", MODES)
def test_bfloat16_is_exact_at_fixed_shapes(architecture: str, mode: str) -> None:
    target = tiny("byte_level_a", architecture, dtype=torch.bfloat16)
    assistant = tiny("byte_level_b", dtype=torch.bfloat16)
    exact, width, _ = Engines(target, assistant).exactness(True, FIXED)
    assert exact
    assert width == 6
    settings = settings_of(40, **MODES[mode])
    expected = plain(target, prompt_ids(count=8), settings, width=width)
    for name, proposer in catalogue(target, expected.ids).items():
        run = scripted(target, prompt_ids(count=8), settings, proposer, width=width)
        assert run.ids == expected.ids, name
    run = assisted(target, assistant, prompt_ids(count=8), settings, width=width)
    assert run.ids == expected.ids


def test_float32_needs_no_padding_and_half_precision_does() -> None:
    assert Engines(tiny(), tiny("byte_level_b")).exactness(True, FIXED) == (True, None, [])
    half = tiny(dtype=torch.bfloat16)
    assert Engines(half, None).exactness(True, AssistantConfig())[1] is not None
    assert Engines(half, None).exactness(False, AssistantConfig()) == (False, None, [])
