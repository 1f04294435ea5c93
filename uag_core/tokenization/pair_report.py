"""How two tokenizers fit together, from the tokenizers alone.

Whether they are the same is decided by what they do with text (vocabulary, merges, splitting),
never by their sizes: transformers#45307, sglang#24051. Knows no models, no files, no pages; texts
and token spellings in a report are as they come and have to be escaped by who shows them.
"""

from __future__ import annotations

import json
from typing import Any

from uag_core.tokenization import overlap
from uag_core.tokenization.codec import TokenizerCodec
from uag_core.tokenization.hazards import hazards

# Prose, code, numbers and other scripts: what people ask language models for.
SAMPLE = """\
The lighthouse keeper wound the clock, wrote down the time, and waited for the ferry. \
"It won't come today," she said; the storm had taken the pier, and nobody knew when.

def mean(values: list[float]) -> float:
    if not values:
        raise ValueError("nothing to average")
    return sum(values) / len(values)

In 2024 the city counted 1,482,300 people, 3.7 % more than in 2019. See https://example.org/a?b=1.
Die Straße führt über die Brücke. L'été dernier, il a neigé. El niño comió una manzana.
今天天气很好,我们去公园散步。 Сегодня хорошая погода. 🦙
"""
MAX_TEXT = 20_000  # characters of a text that are looked at
_TURN_ENDS = ("<|im_end|>", "<end_of_turn>", "<|eot_id|>", "<|end|>", "<|endofturn|>", "<turn|>")
_PARTS = {
    "normalizer": "change the text first in different ways",
    "pre_tokenizer": "divide text into words in different ways",
    "decoder": "turn ids back into text in different ways",
}


def pair_report(target: Any, assistant: Any, text: str | None = None) -> dict[str, Any]:
    """Everything about a pair of tokenizers (`PreTrainedTokenizerFast`), as plain values.

    `text` is what fertility, boundaries and weights are counted on; ours when absent. Raises
    `UnsupportedModelError` for a tokenizer without a fast back end.
    """
    given = bool(text and text.strip())
    sample = (text or "")[:MAX_TEXT] if given else SAMPLE
    codecs = TokenizerCodec(target), TokenizerCodec(assistant)
    same = codecs[0].fingerprint == codecs[1].fingerprint
    ours, theirs = (overlap.fertility(codec, sample) for codec in codecs)
    return {
        "text": {
            "given": given,
            "characters": len(sample),
            "shortened": given and len(text or "") > MAX_TEXT,
        },
        "same_tokenizer": same,
        "differences": [] if same else differences(target, assistant),
        "vocabulary": overlap.vocabulary(*codecs, sample),
        "fertility": {
            "target": ours,
            "assistant": theirs,
            # How many target tokens a draft token stands for, on this text.
            "target_per_assistant": ours["tokens"] / theirs["tokens"] if theirs["tokens"] else None,
        },
        "boundaries": overlap.boundaries(*codecs, sample),
        "hazards": {
            side: [h.to_dict() for h in hazards(tokenizer, codec, sample if given else "")]
            for side, tokenizer, codec in (
                ("target", target, codecs[0]),
                ("assistant", assistant, codecs[1]),
            )
        },
        "control_tokens": {
            "target": control_tokens(target, codecs[0]),
            "assistant": control_tokens(assistant, codecs[1]),
        },
        "tokenizer": {
            "target": _summary(target, codecs[0]),
            "assistant": _summary(assistant, codecs[1]),
        },
    }


def differences(target: Any, assistant: Any) -> list[str]:
    """In what two tokenizers differ, in words, the most important first."""
    left, right = (json.loads(t.backend_tokenizer.to_str()) for t in (target, assistant))
    found: list[str] = []
    ours, theirs = (t.get_vocab() for t in (target, assistant))
    kinds = left["model"]["type"], right["model"]["type"]
    if kinds[0] != kinds[1]:
        found.append(f"They are of different kinds: {kinds[0]} and {kinds[1]}.")
    if ours != theirs:
        names = set(ours) & set(theirs)
        moved = sum(ours[name] != theirs[name] for name in names)
        only = len(set(ours) - names), len(set(theirs) - names)
        equal = " although they are equally large" if len(ours) == len(theirs) else ""
        found.append(
            f"Their vocabularies differ{equal}: {only[0]:,} entries are only the target's, "
            f"{only[1]:,} only the assistant's, and {moved:,} of those with the same spelling "
            "have another id."
        )
    elif left["model"] != right["model"]:
        found.append("Their vocabularies are the same, but they merge pieces in another order.")
    found.extend(
        f"They {what}." for part, what in _PARTS.items() if left.get(part) != right.get(part)
    )
    if ours == theirs and left.get("added_tokens") != right.get("added_tokens"):
        found.append("They treat some added tokens in different ways.")
    return found


def control_tokens(tokenizer: Any, codec: TokenizerCodec) -> dict[str, Any]:
    """The tokens that are no text, by role: `{"token", "id"}` or None, and the chat template."""

    def role(name: str) -> dict[str, Any] | None:
        token, token_id = getattr(tokenizer, name, None), getattr(tokenizer, f"{name}_id", None)
        return None if token_id is None else {"token": str(token), "id": int(token_id)}

    template = str(getattr(tokenizer, "chat_template", None) or "")
    eos = role("eos_token")
    end = eos if eos and (eos["token"] in template or "eos_token" in template) else None
    for spelling in _TURN_ENDS:
        token_id = tokenizer.get_vocab().get(spelling)
        if token_id is not None and spelling in template:
            end = {"token": spelling, "id": int(token_id)}
            break
    return {
        "bos": role("bos_token"),
        "eos": eos,
        "pad": role("pad_token"),
        "unk": role("unk_token"),
        "end_of_turn": end if template else None,
        "chat_template": bool(template),
        "count": len(codec.control_ids),
    }


def _summary(tokenizer: Any, codec: TokenizerCodec) -> dict[str, Any]:
    document = json.loads(tokenizer.backend_tokenizer.to_str())
    return {
        "kind": document["model"]["type"],
        "size": codec.size,
        "exact_bytes": codec.is_exact,
        "normalizer": codec.normalizer,
    }
