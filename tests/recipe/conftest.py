"""A tiny random Llama target with a tiny byte-level tokenizer, and a little text."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SENTENCE = "the cat sat on a mat and then ran away with two red apples 12 345 naïve 你好 🙂"
WORDS = SENTENCE.split()


@pytest.fixture(scope="session")
def rows() -> list[dict[str, object]]:
    """Pairs of request and answer, as the stages write them."""
    made = []
    for i in range(160):
        words = [WORDS[(i * k + k) % len(WORDS)] for k in range(1, 9)]
        made.append(
            {
                "kind": "chat",
                "u": f"Say {i}: " + " ".join(words[:4]),
                "a": " ".join(words) + ".\n",
                "done": i % 3 > 0,
            }
        )
    return made


@pytest.fixture(scope="session")
def target_tokenizer(rows: list[dict[str, object]]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<|stop|>", "<|turn|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([f"{r['u']}\n{r['a']}" for r in rows], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|stop|>", additional_special_tokens=["<|turn|>"]
    )
    fast.chat_template = (
        "{% for m in messages %}{{ '<|turn|>' + m['role'] + '\n' + m['content'] + '<|stop|>' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|turn|>assistant\n' }}{% endif %}"
    )
    return fast


@pytest.fixture(scope="session")
def target(target_tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Random weights, wide enough for greedy text to vary; grouped heads, as real targets have."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=len(target_tokenizer),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        initializer_range=0.3,
        tie_word_embeddings=True,
        max_position_embeddings=512,
        eos_token_id=target_tokenizer.eos_token_id,
        bos_token_id=None,
        pad_token_id=None,
    )
    return LlamaForCausalLM(config).float().eval()
