"""Settings refuse nonsense with one clear line and survive every way of being saved."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import GenerationConfig

from uag_core.config import (
    MAX_CANDIDATES,
    METHODS,
    SCHEDULES,
    AssistantConfig,
    GenerationSettings,
)
from uag_core.errors import InputError

configs = st.builds(
    AssistantConfig,
    assistant=st.none() | st.sampled_from(["embedded/assistant", "owner/name@main"]),
    method=st.sampled_from(METHODS),
    num_assistant_tokens=st.none() | st.integers(1, MAX_CANDIDATES),
    num_assistant_tokens_schedule=st.sampled_from(SCHEDULES),
    assistant_confidence_threshold=st.none() | st.floats(0, 1),
    target_lookbehind=st.integers(0, 4096),
    assistant_lookbehind=st.integers(0, 4096),
    prompt_lookup_num_tokens=st.none() | st.integers(1, MAX_CANDIDATES),
    max_matching_ngram_size=st.none() | st.integers(2, MAX_CANDIDATES),
    min_matching_ngram_size=st.integers(1, 2),
    width=st.none() | st.integers(2, MAX_CANDIDATES + 1),
    fallback=st.booleans(),
)


@given(configs)
def test_an_assistant_configuration_survives_json(config: AssistantConfig) -> None:
    assert AssistantConfig.from_json(config.to_json()) == config
    assert AssistantConfig.from_dict(config.to_dict()) == config


@given(configs)
def test_it_survives_a_generation_config(config: AssistantConfig) -> None:
    assert AssistantConfig.from_generation_config(config.to_generation_config()) == config


def test_it_survives_being_saved_to_disk(tmp_path) -> None:
    config = AssistantConfig(
        assistant="owner/small",
        num_assistant_tokens=7,
        num_assistant_tokens_schedule="heuristic",
        assistant_confidence_threshold=0.25,
        target_lookbehind=12,
        width=9,
        fallback=False,
    )
    config.to_generation_config(GenerationConfig(max_new_tokens=99)).save_pretrained(tmp_path)
    loaded = GenerationConfig.from_pretrained(tmp_path)
    assert AssistantConfig.from_generation_config(loaded) == config
    assert loaded.max_new_tokens == 99
    assert GenerationSettings.from_generation_config(loaded).max_new_tokens == 99


def test_standard_fields_are_where_transformers_looks_for_them() -> None:
    config = AssistantConfig(
        num_assistant_tokens=7, assistant_confidence_threshold=0.25, assistant="owner/small"
    ).to_generation_config()
    assert config.num_assistant_tokens == 7
    assert config.assistant_confidence_threshold == 0.25
    assert config.assistant_lookbehind == 10
    assert config.assistant_config["assistant"] == "owner/small"


def test_the_base_configuration_is_not_changed() -> None:
    base = GenerationConfig(max_new_tokens=5)
    before = base.to_json_string()
    AssistantConfig(num_assistant_tokens=3).to_generation_config(base)
    assert base.to_json_string() == before


def test_a_generation_config_without_an_assistant_has_none() -> None:
    assert AssistantConfig.from_generation_config(GenerationConfig()) is None


@pytest.mark.parametrize(
    "values",
    [
        {"method": "magic"},
        {"num_assistant_tokens": 0},
        {"num_assistant_tokens": MAX_CANDIDATES + 1},
        {"num_assistant_tokens": 2.5},
        {"num_assistant_tokens": "3"},
        {"num_assistant_tokens": True},
        {"num_assistant_tokens_schedule": "sometimes"},
        {"assistant_confidence_threshold": 1.5},
        {"assistant_confidence_threshold": math.nan},
        {"target_lookbehind": -1},
        {"width": 1},
        {"width": MAX_CANDIDATES + 2},
    ],
)
def test_an_assistant_configuration_that_cannot_be_is_refused(values: dict) -> None:
    with pytest.raises(InputError) as caught:
        AssistantConfig(**values)
    assert "\n" not in str(caught.value)
    assert next(iter(values)) in str(caught.value)


@pytest.mark.parametrize("text", ["", "no json", "[]", "3", '{"colour": "red"}'])
def test_json_that_is_no_assistant_configuration_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        AssistantConfig.from_json(text)


@pytest.mark.parametrize(
    "values",
    [
        {"max_new_tokens": -1},
        {"max_new_tokens": 1.5},
        {"max_new_tokens": None},
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"temperature": "hot"},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"min_p": 2},
        {"repetition_penalty": 0},
        {"repetition_penalty": -1},
        {"repetition_penalty": math.nan},
        {"no_repeat_ngram_size": -2},
        {"seed": -1},
        {"seed": 2**64},
        {"stop": (3,)},
    ],
)
def test_settings_no_decoder_could_use_are_refused(values: dict) -> None:
    with pytest.raises(InputError) as caught:
        GenerationSettings(**values)
    assert "\n" not in str(caught.value)
    assert next(iter(values)) in str(caught.value)
    assert caught.value.exit_status == 2


def test_settings_that_are_off_use_no_processor() -> None:
    assert not GenerationSettings().uses_processors
    assert not GenerationSettings(temperature=0, repetition_penalty=1.0).uses_processors
    assert GenerationSettings(temperature=0.5).uses_processors
    assert GenerationSettings(repetition_penalty=1.1).uses_processors
    assert GenerationSettings(no_repeat_ngram_size=2).uses_processors


def test_temperature_zero_is_greedy() -> None:
    assert not GenerationSettings(temperature=0).do_sample
    assert not GenerationSettings().do_sample
    assert GenerationSettings(temperature=0.1).do_sample


def test_one_stop_string_and_empty_ones() -> None:
    assert GenerationSettings(stop="END").stop == ("END",)
    assert GenerationSettings(stop=("", "END", "")).stop == ("END",)


settings = st.builds(
    GenerationSettings,
    max_new_tokens=st.integers(1, 5000),  # transformers refuses 0
    temperature=st.none() | st.floats(0.1, 5),
    top_k=st.none() | st.integers(1, 100),
    top_p=st.none() | st.floats(0.1, 1),
    min_p=st.none() | st.floats(0.01, 1),
    repetition_penalty=st.none() | st.floats(0.5, 2),
    no_repeat_ngram_size=st.none() | st.integers(1, 5),
    stop=st.lists(st.text(min_size=1, max_size=4), max_size=2).map(tuple),
    eos_token_ids=st.none() | st.lists(st.integers(0, 99), min_size=1, max_size=3).map(tuple),
)


@given(settings)
def test_settings_become_a_generation_config_and_come_back(values: GenerationSettings) -> None:
    back = GenerationSettings.from_generation_config(values.to_generation_config())
    assert back.max_new_tokens == values.max_new_tokens
    assert back.do_sample == values.do_sample
    assert back.stop == values.stop
    assert back.eos_token_ids == values.eos_token_ids
    assert back.repetition_penalty == values.repetition_penalty
    assert back.no_repeat_ngram_size == values.no_repeat_ngram_size
    if values.do_sample:
        assert back.temperature == values.temperature
        assert (back.top_k or 0) == (values.top_k or 0)
        assert (back.top_p or 1.0) == (values.top_p or 1.0)
        assert back.min_p == values.min_p


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"num_beams": 4}, "num_beams"),
        ({"num_return_sequences": 2, "do_sample": True}, "num_return_sequences"),
        ({"use_cache": False}, "use_cache"),
    ],
)
def test_what_assisted_decoding_cannot_do_is_refused_up_front(values: dict, word: str) -> None:
    with pytest.raises(InputError, match=word):
        GenerationSettings.from_generation_config(GenerationConfig(**values))


def test_a_single_end_token_and_a_list_are_both_sets() -> None:
    one = GenerationSettings.from_generation_config(GenerationConfig(eos_token_id=5))
    several = GenerationSettings.from_generation_config(GenerationConfig(eos_token_id=[5, 7]))
    assert one.eos_token_ids == (5,)
    assert several.eos_token_ids == (5, 7)


def test_settings_and_events_are_light() -> None:
    """Plain values never pull in torch or transformers."""
    code = (
        "import sys, uag_core.config, uag_core.events, uag_core.errors\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'gradio')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_lookup_fields_of_transformers_switch_lookup_on() -> None:
    from transformers import GenerationConfig

    given = GenerationConfig(prompt_lookup_num_tokens=7, max_matching_ngram_size=3)
    config = AssistantConfig.from_generation_config(given)
    assert config == AssistantConfig(
        method="lookup", prompt_lookup_num_tokens=7, max_matching_ngram_size=3
    )
    assert config.to_generation_config().prompt_lookup_num_tokens == 7


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_lookup_num_tokens": 0},
        {"max_matching_ngram_size": 0},
        {"min_matching_ngram_size": 3, "max_matching_ngram_size": 2},
    ],
)
def test_impossible_lookups_are_refused(changes) -> None:
    with pytest.raises(InputError, match=r"matching_ngram_size|prompt_lookup_num_tokens"):
        AssistantConfig(method="lookup", **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": 1e-40},
        {"repetition_penalty": 1e-300},
        {"max_new_tokens": 10**400},
        {"top_k": 10**400},
        {"stop": 5},
        {"eos_token_ids": ("x",)},
    ],
)
def test_values_that_no_arithmetic_survives_are_refused_in_one_line(changes) -> None:
    with pytest.raises(InputError) as caught:
        GenerationSettings(**changes)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_plain_transformers_configuration_keeps_its_meaning() -> None:
    config = GenerationConfig(num_assistant_tokens=7, assistant_confidence_threshold=0.5)
    read = AssistantConfig.from_generation_config(config)
    assert read is not None
    assert (read.num_assistant_tokens, read.assistant_confidence_threshold) == (7, 0.5)
    assert AssistantConfig.from_generation_config(GenerationConfig()) is None


def test_sampling_without_top_k_means_what_generate_makes_of_it() -> None:
    assert GenerationSettings.from_generation_config(GenerationConfig(do_sample=True)).top_k == 50
    off = GenerationConfig(do_sample=True, top_k=0)
    assert not GenerationSettings.from_generation_config(off).top_k


def test_a_field_that_would_change_the_result_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="bad_words_ids"):
        GenerationSettings.from_generation_config(GenerationConfig(bad_words_ids=[[3]]))
