"""The few things the recipe must know of a chat template: its prefixes, and the ends of turns."""

from __future__ import annotations

from pathlib import Path

from transformers import PreTrainedTokenizerBase

_MARK = "\u241fmark\u241f"  # a string no template produces by itself


def target_folder(target: str) -> str:
    """The folder or id to load; ``embedded/target`` is resolved by the models package."""
    if target == "embedded/target":
        from uag_core.models.embedded import ensure_target

        return str(Path(ensure_target()))
    return target


def user_prefix(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids up to where the first user message begins: what the target continues as a user."""
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": _MARK}], tokenize=False, add_generation_prompt=True
    )
    head, found, _ = text.partition(_MARK)
    if not found:
        raise ValueError("the chat template does not contain the user's message as it is")
    return tokenizer(head, add_special_tokens=False)["input_ids"]


def answer_prompt(tokenizer: PreTrainedTokenizerBase, request: str) -> list[int]:
    """Ids of a whole prompt, ready for the target's answer."""
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": request}], tokenize=False, add_generation_prompt=True
    )
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def stop_ids(tokenizer: PreTrainedTokenizerBase, model: object) -> set[int]:
    """Every id that ends a turn: the generation config's and the tokenizer's."""
    listed = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ids = set(listed) if isinstance(listed, list | tuple) else {listed}
    return {i for i in ids | {tokenizer.eos_token_id} if i is not None}
