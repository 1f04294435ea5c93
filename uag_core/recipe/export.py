"""Stage ``export``: a plain Hugging Face folder, loaded by ``from_pretrained`` without our code.

Weights are bfloat16 safetensors in shards below ``max_shard_bytes``, since some hosts take no
larger files without large-file storage.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedTokenizerBase,
)

MAX_SHARD_BYTES = 9_500_000
_KEPT = {"README.md"}  # written by hand; everything else in the folder is replaced


def export(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    *,
    max_shard_bytes: int = MAX_SHARD_BYTES,
) -> list[Path]:
    """Write the model and its tokenizer to ``folder``; returns the files, after loading them back.

    Raises ValueError when a single tensor is larger than a shard may be.
    """
    largest = max(p.numel() * 2 for p in model.parameters())
    if largest > max_shard_bytes:
        raise ValueError(f"a tensor of {largest} bytes does not fit a shard of {max_shard_bytes}")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.is_file() and old.name not in _KEPT:
            old.unlink()
    plain = model.__class__(model.config)
    plain.load_state_dict(model.state_dict())
    plain = plain.to(torch.bfloat16)
    plain.config.dtype = torch.bfloat16
    plain.config.bos_token_id = tokenizer.bos_token_id
    plain.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=False,
    )
    plain.save_pretrained(folder, max_shard_size=max_shard_bytes)
    tokenizer.save_pretrained(folder)
    check(folder, max_shard_bytes + 500_000)  # a shard has a header too
    return sorted(p for p in folder.iterdir() if p.is_file())


def check(folder: Path, max_file_bytes: int = 10_000_000) -> None:
    """Load the folder as a stranger would, and raise ValueError for what is not right."""
    for path in folder.iterdir():
        if path.is_file() and path.stat().st_size >= max_file_bytes:
            raise ValueError(f"{path.name} has {path.stat().st_size} bytes")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if model.config.vocab_size != len(tokenizer):
        raise ValueError("the model and the tokenizer differ in vocabulary size")
    settings = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    if settings["eos_token_id"] != tokenizer.eos_token_id:
        raise ValueError("the generation config names another end token than the tokenizer")
    sample = "Héllo,  wörld!\n\n```python\nx = 12345\n``` 🙂"
    ids = tokenizer(sample, add_special_tokens=False)["input_ids"]
    if tokenizer.decode(ids) != sample:
        raise ValueError("the tokenizer does not give a text back as it was")
    prompt = tokenizer.apply_chat_template(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    with torch.inference_mode():
        model.generate(**prompt, max_new_tokens=4, do_sample=False)
