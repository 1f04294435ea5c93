"""Sets of prompts: every format that is taken, and a line for every one that is not."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uag_core.benchmark.suites import DEFAULT_PROMPTS, BenchPrompt, evenly, load, parse
from uag_core.errors import InputError


def lines(*items: object) -> str:
    return "\n".join(json.dumps(item) for item in items) + "\n"


def test_prompts_with_categories() -> None:
    text = lines({"prompt": "a", "category": "code", "id": "c1"}, {"prompt": "b", "kind": "list"})
    assert parse(text) == [BenchPrompt("c1", "code", "a"), BenchPrompt("2", "list", "b")]


def test_spec_bench_asks_the_first_turn() -> None:
    text = lines({"question_id": 81, "category": "writing", "turns": ["first", "second"]})
    assert parse(text) == [BenchPrompt("81", "writing", "first")]


def test_human_eval_is_named_by_its_task() -> None:
    text = lines({"task_id": "HumanEval/0", "prompt": "def f():\n", "test": "..."})
    assert parse(text) == [BenchPrompt("HumanEval/0", "HumanEval", "def f():\n")]


def test_plain_text_is_one_prompt_a_line() -> None:
    assert [item.prompt for item in parse("One?\n\n  Two?\r\n")] == ["One?", "Two?"]


def test_ids_are_unique_and_labels_are_one_short_line() -> None:
    text = lines(*({"prompt": "x", "id": "a", "category": "k\n\x1b[31m" + "y" * 99},) * 3)
    found = parse(text)
    assert [item.id for item in found] == ["a", "a-2", "a-3"]
    assert all(len(item.category) <= 60 and "\n" not in item.category for item in found)
    assert "\x1b" not in found[0].category


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "There is no prompt"),
        ("\n \n", "There is no prompt"),
        ('{"prompt": "a"}\nnot json', "Line 2 of the prompts is not JSON"),
        ('{"prompt": "a"}\n[1]', "Line 2 of the prompts is not a JSON object"),
        ('{"text": "a"}', 'no text under "prompt" or "turns"'),
        ('{"prompt": "  "}', 'no text under "prompt" or "turns"'),
        ('{"turns": []}', 'no text under "prompt" or "turns"'),
        ('{"prompt": 3}', 'no text under "prompt" or "turns"'),
        ('{"prompt": "\\ud800"}', "not valid UTF-8"),
        (json.dumps({"prompt": "x" * 400_001}), "longer than"),
        ("{" * 100_000, "is not JSON"),
    ],
)
def test_what_cannot_be_used_is_named(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b"\xff\xfe\x00")
    for path in (bad, tmp_path / "missing.jsonl", tmp_path):
        with pytest.raises(InputError):
            load(path)
    with pytest.raises(InputError, match="limit"):
        load(DEFAULT_PROMPTS, 0)


def test_a_limit_takes_evenly_from_every_category() -> None:
    found = load(DEFAULT_PROMPTS, 20)
    counts = Counter(item.category for item in found)
    assert len(counts) == 10
    assert set(counts.values()) == {2}
    assert len(load(DEFAULT_PROMPTS)) == 100


@given(st.lists(st.sampled_from("abc"), max_size=20), st.integers(1, 25))
def test_evenly_keeps_order_and_number(kinds: list[str], limit: int) -> None:
    prompts = [BenchPrompt(str(index), kind, "x") for index, kind in enumerate(kinds)]
    found = evenly(prompts, limit)
    assert len(found) == min(limit, len(prompts))
    assert found == [item for item in prompts if item in found]
