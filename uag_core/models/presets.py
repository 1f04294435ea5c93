"""Well-known pairs to start from: names and what is worth knowing before choosing one.

Plain values. Whether a model fits here is planning's business; whether it still exists, the
Hub's; whether it may be used here, `uag_core.hosting` says. "gated" is what the model's page said
when this list was written.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from uag_core import hosting
from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_TARGET
from uag_core.errors import InputError


@dataclass(frozen=True, slots=True)
class Preset:
    """A target and an assistant. `original` marks the pairs of the work that introduced UAG."""

    label: str
    target: str
    assistant: str
    note: str
    gated: bool = False
    original: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


PRESETS: tuple[Preset, ...] = (
    Preset(
        "Embedded pair",
        "embedded/target",
        "embedded/assistant",
        "SmolLM2 135M with a small assistant of another tokenizer; needs no Hub",
    ),
    Preset(
        "CodeLlama 13B",
        "codellama/CodeLlama-13b-Instruct-hf",
        "bigcode/tiny_starcoder_py",
        "Llama 2 licence; code",
        original=True,
    ),
    Preset(
        "Phi-3 medium",
        "microsoft/Phi-3-medium-128k-instruct",
        "Qwen/Qwen2-0.5B-Instruct",
        "14B, long context",
        original=True,
    ),
    Preset(
        "Gemma 2 9B",
        "google/gemma-2-9b",
        "double7/vicuna-68m",
        "a base model: continue text instead of chatting",
        gated=True,
        original=True,
    ),
    Preset(
        "SmolLM2 1.7B",
        "HuggingFaceTB/SmolLM2-1.7B-Instruct",
        "Qwen/Qwen2.5-0.5B-Instruct",
        "small enough for a laptop",
    ),
    Preset(
        "Qwen2.5 1.5B",
        "Qwen/Qwen2.5-1.5B-Instruct",
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "small enough for a laptop",
    ),
    Preset(
        "Qwen3 4B",
        "Qwen/Qwen3-4B",
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "8 GB in bfloat16",
    ),
    Preset(
        "Llama 3.2 3B",
        "meta-llama/Llama-3.2-3B-Instruct",
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "accept the terms on its page first",
        gated=True,
    ),
    Preset(
        "Pythia 1.4B",
        "EleutherAI/pythia-1.4b",
        "HuggingFaceTB/SmolLM2-135M",
        "a base model: continue text instead of chatting",
    ),
)


def may_be_used(name: str) -> bool:
    """Whether the rules of this process allow a Hub id, or the name of an embedded model."""
    if name in (DEFAULT_TARGET, DEFAULT_ASSISTANT):
        return True
    try:
        hosting.current().check_id(name)
    except InputError:
        return False
    return True


def usable() -> list[Preset]:
    """The presets whose models may both be used here."""
    return [one for one in PRESETS if may_be_used(one.target) and may_be_used(one.assistant)]
