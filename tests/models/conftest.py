"""Tiny model folders that the tests of `uag_core.models` load from disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.fixtures.hub_here import hub_server

__all__ = ["hub_server"]


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(["the cat sat on the mat"] * 4, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")


def tiny_model(vocab_size: int = 300) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        eos_token_id=0,
        bos_token_id=None,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


@pytest.fixture(scope="session")
def _saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "tiny"
    tiny_model().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def make_folder(_saved: Path, tmp_path: Path) -> Callable[..., Path]:
    """`make_folder("name", model_type=...)`: a copy of the tiny model with a changed config."""
    import shutil

    def make(name: str = "tiny", **changes: object) -> Path:
        folder = tmp_path / name
        shutil.copytree(_saved, folder)
        config = json.loads((folder / "config.json").read_text())
        config.update(changes)
        kept = {key: value for key, value in config.items() if value is not ...}
        (folder / "config.json").write_text(json.dumps(kept))
        return folder

    return make
