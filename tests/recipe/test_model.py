"""Initialising, training and exporting an assistant; the evaluation's sums."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from uag_core.recipe.evaluate import _by_turns, summarise
from uag_core.recipe.export import export
from uag_core.recipe.initialise import initialise
from uag_core.recipe.tokenizer import prune_target
from uag_core.recipe.train import TrainConfig, batches, collate, encode, held_out, train

CONFIG = TrainConfig(epochs=2, batch_tokens=512, warmup=3)


@pytest.fixture(scope="module")
def tokenizer(rows, target_tokenizer):
    return prune_target(target_tokenizer, [f"{r['u']}\n{r['a']}" for r in rows], 340)


@pytest.fixture
def fresh(target, target_tokenizer, tokenizer):
    return lambda **more: initialise(target, target_tokenizer, tokenizer, layers=[0, 2], **more)


def test_an_assistant_starts_as_layers_and_embeddings_of_the_target(
    target, target_tokenizer, tokenizer, fresh
):
    model = fresh()
    old, new = target.state_dict(), model.state_dict()
    for name in ("self_attn.q_proj.weight", "mlp.down_proj.weight", "input_layernorm.weight"):
        assert torch.equal(new[f"model.layers.1.{name}"], old[f"model.layers.2.{name}"])
    token = target_tokenizer.convert_ids_to_tokens(target_tokenizer(" cat")["input_ids"])[0]
    row = old["model.embed_tokens.weight"][target_tokenizer.convert_tokens_to_ids(token)]
    assert torch.equal(new["lm_head.weight"][tokenizer.convert_tokens_to_ids(token)], row)
    stop = old["model.embed_tokens.weight"][target_tokenizer.eos_token_id]
    assert torch.equal(new["model.embed_tokens.weight"][tokenizer.eos_token_id], stop)


def test_a_narrower_feed_forward_keeps_units_of_the_target(target, fresh):
    model = fresh(ffn=40)
    kept = model.model.layers[0].mlp.up_proj.weight
    whole = target.model.layers[0].mlp.up_proj.weight
    assert kept.shape == (40, 48)
    assert all(any(torch.equal(row, other) for other in whole) for row in kept)


def test_the_loss_counts_the_answer_and_its_end_only(rows, tokenizer):
    documents = encode(rows[:2], tokenizer, 64)
    ids, labels = collate(documents, torch.device("cpu"))
    for row, (document, record) in enumerate(zip(documents, rows, strict=False)):
        counted = labels[row][labels[row] != -100].tolist()
        text = tokenizer.decode([i for i in counted if i != tokenizer.eos_token_id])
        assert text == record["a"]
        assert (counted[-1] == tokenizer.eos_token_id) == record["done"]
        assert ids[row, document.start - 1] == tokenizer.convert_tokens_to_ids("<|assistant|>")


def test_every_document_comes_once_an_epoch_in_an_order_of_its_own(rows, tokenizer):
    documents = encode(rows, tokenizer, 64)
    plans = [batches(documents, CONFIG, epoch) for epoch in (0, 0, 1)]
    assert plans[0] == plans[1] != plans[2]
    assert sorted(i for batch in plans[2] for i in batch) == list(range(len(documents)))
    assert all(
        len(b) * max(len(documents[i].ids) for i in b) <= CONFIG.batch_tokens for b in plans[0]
    )


def test_training_learns_and_resumes_to_the_same_state(tmp_path, rows, tokenizer, fresh):
    documents = encode([r for r in rows if not held_out(r["u"])], tokenizer, 64)
    held = documents[:8]
    whole = fresh()
    figures = train(whole, documents, held, CONFIG, tmp_path / "whole", report=False)
    broken = fresh()
    train(
        broken, documents, held, CONFIG, tmp_path / "broken", stop_after=3, save_every=3,
        report=False,
    )  # fmt: skip
    again = fresh()
    train(again, documents, held, CONFIG, tmp_path / "broken", report=False)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    untrained = train(
        fresh(), documents, held, CONFIG, tmp_path / "none", stop_after=0, report=False
    )
    assert figures["loss"] < untrained["loss"]


def test_an_export_loads_plainly_from_small_files(tmp_path, tokenizer, fresh):
    model = fresh()
    (tmp_path / "README.md").write_text("a card")
    (tmp_path / "old.safetensors").write_text("left over")
    files = export(model, tokenizer, tmp_path, max_shard_bytes=60_000)
    names = {f.name for f in files}
    assert {"README.md", "config.json", "tokenizer.json", "generation_config.json"} <= names
    assert "old.safetensors" not in names
    weights = [f for f in files if f.suffix == ".safetensors"]
    assert len(weights) > 1
    assert all(f.stat().st_size < 80_000 for f in weights)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert loaded.dtype == torch.bfloat16
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value.to(torch.bfloat16)), name
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again("naïve 你好")["input_ids"] == tokenizer("naïve 你好")["input_ids"]
    assert loaded.generation_config.eos_token_id == again.eos_token_id


def test_a_tensor_larger_than_a_shard_is_refused(tmp_path, tokenizer, fresh):
    with pytest.raises(ValueError, match="does not fit"):
        export(fresh(), tokenizer, tmp_path, max_shard_bytes=1000)


def test_the_summary_sums_counts_and_averages_speedups():
    row = {
        "num_draft_rounds": 4, "num_candidate_tokens": 16, "num_accepted_tokens": 6,
        "acceptance_histogram": [1, 1, 1, 1, 0], "identical": True,
        "decode_speedup": 2.0, "decode_speedup_same_shape": 2.0,
    }  # fmt: skip
    other = row | {"decode_speedup": 0.5, "acceptance_histogram": [], "num_draft_rounds": 0,
                   "num_candidate_tokens": 0, "num_accepted_tokens": 0}  # fmt: skip
    summary = summarise([row, other])
    assert summary["mean_acceptance_length"] == 2.5
    assert summary["acceptance_rate"] == 6 / 16
    assert summary["acceptance_per_position"] == [0.75, 0.5, 0.25, 0.0]
    assert summary["decode_speedup"]["geomean"] == pytest.approx(1.0)
    assert summary["decode_speedup"]["worst"] == 0.5
    assert summarise([])["mean_acceptance_length"] is None


def test_prompts_are_taken_by_turns():
    prompts = [{"id": i, "category": c} for i, c in enumerate("aaabb")]
    assert [p["id"] for p in _by_turns(prompts)] == [0, 3, 1, 4, 2]
