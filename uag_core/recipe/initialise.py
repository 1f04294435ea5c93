"""Stage ``initialise``: an assistant that starts as some layers of its target.

The chosen layers and the final norm are copied. Each token of the assistant starts as the mean of
the target's embeddings for the same string; input and output embeddings are tied. With ``ffn``
smaller than the target's, the feed-forward units with the largest weights are kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from .tokenizer import CONTROL


def assistant_config(
    target_config: LlamaConfig, tokenizer: PreTrainedTokenizerBase, layers: int, ffn: int | None
) -> LlamaConfig:
    """The assistant's configuration: the target's sizes, fewer layers, another vocabulary."""
    values = target_config.to_dict()
    for key in ("_name_or_path", "architectures", "transformers_version", "torch_dtype", "dtype"):
        values.pop(key, None)
    values.update(
        num_hidden_layers=layers,
        vocab_size=len(tokenizer),
        intermediate_size=ffn or target_config.intermediate_size,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        max_position_embeddings=min(2048, target_config.max_position_embeddings),
    )
    values.pop("layer_types", None)
    return LlamaConfig.from_dict(values)


@torch.no_grad()
def initialise(
    target: Any,
    target_tokenizer: PreTrainedTokenizerBase,
    tokenizer: PreTrainedTokenizerBase,
    *,
    layers: list[int],
    ffn: int | None = None,
    seed: int = 0,
) -> LlamaForCausalLM:
    """A float32 LlamaForCausalLM made of ``layers`` (indices into the target's)."""
    if target.config.model_type != "llama":
        raise ValueError("initialising from the target's layers needs a target of type 'llama'")
    torch.manual_seed(seed)
    model = LlamaForCausalLM(assistant_config(target.config, tokenizer, len(layers), ffn)).float()
    for new, index in zip(model.model.layers, layers, strict=True):
        old = {k: v.float() for k, v in target.model.layers[index].state_dict().items()}
        if ffn and ffn < target.config.intermediate_size:
            norms = [old[f"mlp.{p}_proj.weight"].norm(dim=1) for p in ("gate", "up")]
            norms.append(old["mlp.down_proj.weight"].norm(dim=0))
            keep = torch.stack(norms).prod(0).topk(ffn).indices.sort().values
            for part in ("gate", "up"):
                old[f"mlp.{part}_proj.weight"] = old[f"mlp.{part}_proj.weight"][keep]
            old["mlp.down_proj.weight"] = old["mlp.down_proj.weight"][:, keep]
        new.load_state_dict(old)
    model.model.norm.load_state_dict(target.model.norm.state_dict())
    table = target.get_input_embeddings().weight.float()
    model.model.embed_tokens.weight.copy_(_embeddings(table, target_tokenizer, tokenizer))
    model.tie_weights()
    return model


def _embeddings(
    table: Tensor, target_tokenizer: PreTrainedTokenizerBase, tokenizer: PreTrainedTokenizerBase
) -> Tensor:
    """One row per assistant token: (vocabulary, hidden)."""
    rows = table.mean(0).repeat(len(tokenizer), 1)
    known = target_tokenizer.get_vocab()
    for token, index in tokenizer.get_vocab().items():
        if token in CONTROL:
            continue
        ids = [known[token]] if token in known else None  # byte-level names agree
        if ids is None:
            text = tokenizer.decode([index])
            ids = [] if "\ufffd" in text else target_tokenizer(
                text, add_special_tokens=False)["input_ids"]  # fmt: skip
        if ids:
            rows[index] = table[ids].mean(0)
    # The end of a turn plays the same role in both; the others begin as a mean, told apart.
    rows[tokenizer.eos_token_id] = table[target_tokenizer.eos_token_id]
    for step, token in enumerate(t for t in CONTROL if t != tokenizer.eos_token):
        rows[tokenizer.convert_tokens_to_ids(token)] += 0.02 * torch.randn(
            table.shape[1], generator=torch.Generator().manual_seed(step)
        )
    return rows
