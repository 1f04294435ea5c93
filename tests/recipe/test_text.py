"""Requests, answers, shards and tokenizers."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest

from uag_core.recipe import written
from uag_core.recipe.__main__ import _times, main, parser
from uag_core.recipe.answers import write_answers
from uag_core.recipe.kinds import FORMS, WEIGHTS, fill
from uag_core.recipe.requests import draw_forms, write_requests
from uag_core.recipe.store import drop_prompts, read_rows, write_shard
from uag_core.recipe.tokenizer import (
    CONTROL,
    UnsupportedTokenizerError,
    prune_target,
    train_bpe,
)
from uag_core.recipe.train import weighted

HOLE = re.compile(r"\{(?!gen:)(\w+)\}")
TEXTS = ["the cat sat", "  two\n\nspaces\t", "naïve 你好 🙂 \u00ad", "x = 12345\r\n", "<|end|", ""]


def _all_text(rows):
    return [f"{r['u']}\n{r['a']}" for r in rows]


@pytest.fixture(scope="module", params=["bpe", "prune"])
def make(request, rows, target_tokenizer):
    if request.param == "bpe":
        return lambda: train_bpe(_all_text(rows), 340)
    return lambda: prune_target(target_tokenizer, _all_text(rows), 340)


def test_a_tokenizer_gives_every_text_back(make):
    tokenizer = make()
    assert len(tokenizer) <= 340
    for text in TEXTS:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids) == text


def test_the_same_text_gives_the_same_tokenizer(make):
    assert make().backend_tokenizer.to_str() == make().backend_tokenizer.to_str()


def test_control_tokens_come_first_and_the_template_uses_them(make):
    tokenizer = make()
    assert tokenizer.convert_tokens_to_ids(CONTROL) == [0, 1, 2, 3]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes"},
        {"role": "user", "content": "Go on"},
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == "<s><|user|>Be brief.\n\nHi<|assistant|>Yes<|end|><|user|>Go on<|assistant|>"


def test_a_pruned_vocabulary_is_a_part_of_the_targets(rows, target_tokenizer):
    pruned = prune_target(target_tokenizer, _all_text(rows), 340)
    assert set(pruned.get_vocab()) - set(CONTROL) <= set(target_tokenizer.get_vocab())


def test_pruning_refuses_other_tokenizers(rows, target_tokenizer):
    class Other:
        class backend_tokenizer:
            @staticmethod
            def to_str() -> str:
                data = json.loads(target_tokenizer.backend_tokenizer.to_str())
                return json.dumps(data | {"normalizer": {"type": "NFKC"}})

    with pytest.raises(UnsupportedTokenizerError):
        prune_target(Other(), [], 340)


def test_forms_are_drawn_from_the_seed_and_cover_the_kinds():
    first, again, other = draw_forms(400, 1), draw_forms(400, 1), draw_forms(400, 2)
    assert first == again
    assert first != other
    assert {d.kind for d in first} == set(WEIGHTS) == set(FORMS)
    assert not any("{" in d.text for d in first)
    assert all(isinstance(d.pieces[0], int) for d in first if d.pieces)


def test_shares_change_how_often_a_kind_is_drawn():
    usual = Counter(d.kind for d in draw_forms(400, 1))
    more = Counter(d.kind for d in draw_forms(400, 1, {"translation": 10.0, "story": 0.0}))
    assert more["translation"] > 3 * usual["translation"]
    assert more["story"] == 0


@pytest.mark.parametrize("text", ["nonsense=2", "translation", "story=-1", "story=nan"])
def test_a_share_that_cannot_be_is_refused(text, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["requests", "--work", str(tmp_path), "--shares", text])
    assert "--shares" in capsys.readouterr().err


def test_requests_and_answers_go_through_the_target(target, target_tokenizer):
    stops = {target_tokenizer.eos_token_id}

    def run() -> list[dict[str, object]]:
        asked = list(
            write_requests(target, target_tokenizer, count=12, seed=5, slots=4, stops=stops)
        )
        return list(
            write_answers(target, target_tokenizer, asked, max_new_tokens=6, slots=4, stops=stops)
        )

    rows = run()
    assert rows == run()
    assert all(set(r) == {"kind", "u", "a", "done"} for r in rows)


def test_shards_are_the_same_bytes_and_read_back(tmp_path, rows):
    one, two = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    assert write_shard(one, rows) == write_shard(two, iter(rows)) == len(rows)
    assert one.read_bytes() == two.read_bytes()
    assert list(read_rows([one])) == rows
    assert not list(tmp_path.glob("*.tmp"))


def test_evaluation_prompts_and_repeats_are_dropped():
    rows = [{"u": u} for u in ("What is 2 + 2?", "what is 2+2", "Hello there", "Why?")]
    assert drop_prompts(rows, ["WHY"]) == [{"u": "What is 2 + 2?"}, {"u": "Hello there"}]


def test_near_copies_of_an_evaluation_prompt_are_dropped_and_other_requests_are_not() -> None:
    prompt = "Write a Python function that checks whether a number is even."
    near = {"u": "write a python function that tells whether a number is even"}
    other = {"u": "Write a Python function that adds two numbers."}
    assert drop_prompts([near, other], [prompt]) == [other]


def test_every_word_of_the_written_forms_is_known_and_used() -> None:
    holes = {h for forms in written.FORMS.values() for f in forms for h in HOLE.findall(f)}
    assert set(written.WORDS) <= holes
    filled = [fill(form, random.Random(1)) for forms in FORMS.values() for form in forms]
    assert not [text for text in filled if HOLE.search(text)]


def test_kinds_count_as_often_as_asked() -> None:
    rows = [{"u": "a", "kind": "chat"}, {"u": "b", "kind": "code"}, {"u": "c"}]
    assert [row["u"] for row in weighted(rows, 3)] == ["a", "b", "c", "b", "b"]
    assert weighted(rows, 1) == rows


def test_a_row_counts_as_often_as_its_file_says() -> None:
    rows = [{"u": "a", "kind": "chat", "times": 2}, {"u": "b", "kind": "code", "times": 0}]
    assert [row["u"] for row in weighted(rows, 1)] == ["a", "a"]


def test_the_last_pattern_that_fits_a_file_counts() -> None:
    arguments = parser().parse_args(
        ["train", "--work", "w", "--times", "kinds-*=2", "kinds-0004*=5"]
    )
    names = ("chat-0000.jsonl.gz", "kinds-0000.jsonl.gz", "kinds-0004.jsonl.gz")
    assert [_times(arguments, name) for name in names] == [1, 2, 5]
