"""Well-known pairs to start from: names and what is worth knowing before choosing one.

Plain values. Whether a model fits here is planning's business; whether it still exists, the
Hub's. "gated" is what the model's page said when this list was written.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


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
        "SmolLM2 135M with a 17.7M assistant of another tokenizer; needs no Hub",
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
