"""From a prompt or chat messages to the ids that each model reads first.

Each model is prompted through its own chat template and its own rules for special tokens, which
are added here, once, and nowhere else (transformers#46124, vllm#27517). Knows tokenizers, not
models or decoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uag_core.errors import InputError
from uag_core.models.handle import LanguageModel

Messages = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as both models read it.

    `compiled` holds the cache lengths of the compiled target and assistant that runs of a fixed
    width go through, as `compiling.settle` chose them; None for eager runs, and for an assistant
    that drafts uncompiled.
    """

    target_ids: tuple[int, ...]
    assistant_ids: tuple[int, ...] | None
    notices: tuple[str, ...] = ()
    compiled: tuple[int, int | None] | None = None


def as_messages(prompt: Any, system: str | None, *, raw: bool = False) -> Messages:
    """Chat messages of a string or of a list of `{"role", "content"}`.

    White space alone is a prompt only where text is continued `raw`.

    Raises `InputError` for an empty prompt, for several prompts and for anything else.
    """
    if isinstance(prompt, str):
        if not (prompt if raw else prompt.strip()):
            raise InputError("The prompt is empty.", "Type something for the target to answer.")
        messages = [{"role": "user", "content": prompt}]
    elif isinstance(prompt, Sequence) and prompt and all(isinstance(m, dict) for m in prompt):
        messages = []
        for message in prompt:
            role, content = message.get("role"), message.get("content")
            if not isinstance(role, str) or not isinstance(content, str):
                raise InputError('Each message needs a text "role" and a text "content".')
            messages.append({"role": role, "content": content})
        if not any(m["content"].strip() for m in messages):
            raise InputError("The prompt is empty.", "Type something for the target to answer.")
    elif isinstance(prompt, Sequence) and prompt and all(isinstance(p, str) for p in prompt):
        raise InputError("One prompt at a time, not a list of them.", "Call once per prompt.")
    else:
        raise InputError("The prompt must be a text or a list of chat messages.")
    if system and system.strip() and messages[0]["role"] != "system":
        messages.insert(0, {"role": "system", "content": system})
    return messages


def target_prompt_ids(
    lm: LanguageModel, prompt: Any, *, raw: bool, system: str | None
) -> tuple[list[int], list[str]]:
    """Ids the target reads, and notices. Chat unless `raw` or the tokenizer has no template.

    A list of ids is taken as it is. Raises `InputError` for a prompt that gives no ids, has ids
    the model lacks, or leaves no room in the context.
    """
    notices: list[str] = []
    if _is_ids(prompt):
        ids = [int(i) for i in prompt]
        if any(not 0 <= i < lm.embedding_rows for i in ids):
            raise InputError(f"A prompt id is outside the vocabulary of {lm.id}.")
    elif raw or not lm.tokenizer.chat_template:
        text = plain_text(as_messages(prompt, system, raw=raw))
        if not raw:
            notices.append(
                f"{lm.id} has no chat template: the prompt is used as plain text to continue."
            )
        ids = encode_prompt(lm, text, special=True)
    else:
        messages = as_messages(prompt, system)
        ids = encode_prompt(lm, _render(lm, messages), special=False)
    if not ids:
        raise InputError("The prompt gives no tokens.", "Type something for the target to answer.")
    if len(ids) >= lm.context_length:
        raise InputError(
            f"The prompt has {len(ids)} tokens, but the context of {lm.id} holds "
            f"{lm.context_length} and the answer needs room.",
            "Shorten the prompt.",
        )
    return ids, notices


def assistant_prompt_ids(
    lm: LanguageModel, prompt: Any, *, raw: bool, system: str | None, target: LanguageModel
) -> list[int]:
    """Ids the assistant reads for the same prompt, through its own template if it has one."""
    if _is_ids(prompt):
        text = b"".join(target.codec.pieces([int(i) for i in prompt])).decode("utf-8", "replace")
        return encode_prompt(lm, text, special=True) if text else []
    if raw or not target.tokenizer.chat_template:
        return encode_prompt(lm, plain_text(as_messages(prompt, system, raw=raw)), special=True)
    messages = as_messages(prompt, system)
    if lm.tokenizer.chat_template:
        for attempt in (messages, _folded(messages)):
            try:
                return encode_prompt(lm, _render(lm, attempt), special=False)
            except InputError:
                continue
    return encode_prompt(lm, plain_text(messages) + "\n\n", special=True)


def encode_prompt(lm: LanguageModel, text: str, *, special: bool) -> list[int]:
    """Ids of a whole prompt; `special` adds the tokenizer's own BOS or EOS rule, once."""
    text = text.encode("utf-8", "replace").decode("utf-8", "replace")
    with lm.prompt_lock:
        ids = lm.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    if special and len(ids) > 1 and ids[-1] in lm.eos_token_ids:
        ids = ids[:-1]  # a tokenizer that closes every text would end the answer before it begins
    return [int(i) for i in ids]


def plain_text(messages: Messages) -> str:
    """The contents of the messages, for models that know no chat."""
    return "\n\n".join(message["content"] for message in messages)


def _render(lm: LanguageModel, messages: Messages) -> str:
    try:
        return str(
            lm.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        )
    except Exception as error:
        # Templates raise whatever they like (jinja2 errors, mostly) on roles they do not know.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"The chat template of {lm.id} refuses these messages: {reason}.",
            "Leave out the system prompt or use raw text.",
        ) from error


def _folded(messages: Messages) -> Messages:
    """The same messages without a system role: its text leads the first user message."""
    system = [m["content"] for m in messages if m["role"] == "system"]
    rest = [dict(m) for m in messages if m["role"] != "system"]
    if system and rest:
        rest[0]["content"] = "\n\n".join([*system, rest[0]["content"]])
    return rest


def _is_ids(prompt: Any) -> bool:
    return (
        isinstance(prompt, Sequence)
        and not isinstance(prompt, (str, bytes))
        and len(prompt) > 0
        and all(isinstance(i, int) and not isinstance(i, bool) for i in prompt)
    )
