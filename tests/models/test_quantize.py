"""8-bit copies of assistants: close to the original, smaller, and never in the target's way."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.models import tiny
from tests.fixtures.runs import FIXED, PROMPT, assisted, plain, raw_ids, settings_of
from uag_core.config import AssistantConfig
from uag_core.decoding import drafter
from uag_core.decoding.engines import Engines
from uag_core.errors import InputError
from uag_core.models import quantize

IDS = torch.tensor([[5, 9, 11, 40, 3]])


def test_the_copy_says_nearly_the_same() -> None:
    lm = tiny()
    small = quantize.int8_copy(lm)
    with torch.inference_mode():
        exact, rounded = lm.model(IDS).logits, small.model(IDS).logits
    error = (exact - rounded).abs().max() / exact.std()
    assert 0 < error < 0.5
    assert small.dtype == "int8"
    assert rounded.dtype == torch.float32


def test_the_original_is_left_as_it_is() -> None:
    lm = tiny("byte_level_a", "llama", seed=5)
    before = {name: value.clone() for name, value in lm.model.state_dict().items()}
    quantize.int8_copy(lm)
    after = lm.model.state_dict()
    assert set(after) == set(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert lm.dtype == "float32"


def test_only_what_is_not_shared_is_counted() -> None:
    lm = tiny()
    linear = sum(
        module.weight.numel()
        for module in lm.model.modules()
        if isinstance(module, torch.nn.Linear)
    )
    assert quantize.extra_bytes(lm, quantize.int8_copy(lm)) == linear


@pytest.mark.parametrize("wanted", ["auto", "same", "int8"])
def test_no_choice_changes_the_output(wanted: str) -> None:
    target, assistant, settings = tiny(), tiny("byte_level_b", seed=1), settings_of(32)
    config = AssistantConfig(num_assistant_tokens=4, assistant_dtype=wanted)
    run = assisted(target, assistant, PROMPT, settings, config=config)
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings).ids
    assert run.drafted


def test_a_target_that_drafts_for_itself_in_8_bits_still_verifies_as_it_was() -> None:
    target = tiny()
    config = AssistantConfig(num_assistant_tokens=4, assistant_dtype="int8")
    run = assisted(target, target, PROMPT, settings_of(32), config=config)
    assert target.dtype == "float32"
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings_of(32)).ids
    assert run.accepted > run.candidates / 2


def test_the_form_that_drafts_is_chosen_once_and_counted() -> None:
    engines = Engines(tiny(), tiny("byte_level_b", seed=2))
    config = AssistantConfig(assistant_dtype="int8")
    chosen = engines.drafter(config)
    assert chosen is not None
    assert chosen.model.dtype == "int8"
    assert engines.drafter(config) is chosen
    assert engines.assistant is not None
    assert engines.assistant.extra_bytes > 0
    assert engines.drafter(AssistantConfig(method="lookup")) is None


def test_a_model_without_linear_layers_drafts_as_it_is_and_says_so() -> None:
    assistant = tiny("byte_level_a", "gpt2")  # its layers are transposed convolutions
    chosen = drafter.choose(assistant, "int8")
    assert chosen.model is assistant
    assert "linear layers" in chosen.notices[0]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="assistant_dtype"):
        AssistantConfig(assistant_dtype="int4")


def test_the_fixed_settings_of_these_tests_leave_the_choice_open() -> None:
    assert FIXED.assistant_dtype == "auto"
