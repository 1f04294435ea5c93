"""The command line of the recipe: every stage from a target to an assistant that drafts for it."""

from __future__ import annotations

import json

import pytest

from uag_core.recipe.__main__ import main
from uag_core.recipe.store import write_shard


@pytest.fixture
def arguments(tmp_path, target, target_tokenizer, rows):
    """Arguments of a run on a tiny target, its answers given as text from elsewhere."""
    folder = tmp_path / "target"
    target.save_pretrained(folder)
    target_tokenizer.save_pretrained(folder)
    write_shard(tmp_path / "given.jsonl.gz", rows)
    prompts = tmp_path / "dev.jsonl"
    prompts.write_text(json.dumps({"id": "a", "category": "chat", "prompt": "Say cat"}) + "\n")
    sizes = "--shards 1 --per-shard 12 --slots 4 --answer-tokens 12 --vocabulary 330 --layers 0,2"
    training = "--epochs 1 --batch-tokens 512 --untimed --dtype float32 --device cpu"
    return [
        "--target", str(folder), "--text", str(tmp_path / "given.jsonl.gz"),
        "--prompts", str(prompts), *sizes.split(), *training.split(),
    ]  # fmt: skip


def test_all_stages_give_an_assistant_and_a_report_and_do_it_again_alike(tmp_path, arguments):
    made = []
    for name in ("one", "two"):
        work = tmp_path / name
        main(["all", "--work", str(work), *arguments])
        assert (work / "report.json").exists()
        files = sorted((work / "assistant").glob("*.safetensors"))
        made.append([f.read_bytes() for f in [*files, work / "assistant" / "tokenizer.json"]])
    assert made[0] == made[1]


def test_training_goes_on_from_another_runs_weights(tmp_path, arguments):
    first, second = tmp_path / "first", tmp_path / "second"
    for stage in ("requests", "answers", "tokenizer", "train"):
        main([stage, "--work", str(first), *arguments])
    log = [json.loads(line) for line in (first / "run" / "log.jsonl").read_text().splitlines()]
    (first / "tokenizer").rename(tmp_path / "kept")
    second.mkdir()
    (tmp_path / "kept").rename(second / "tokenizer")
    (first / "answers").rename(second / "answers")
    begin = ["--begin-with", str(first / "run" / "checkpoint.pt")]
    main(["train", "--work", str(second), *arguments, *begin])
    later = [json.loads(line) for line in (second / "run" / "log.jsonl").read_text().splitlines()]
    assert later[-1]["loss"] < log[-1]["loss"]
