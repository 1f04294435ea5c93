"""Families of well-known models, from large to small: names and numbers only.

Used to name a smaller sibling of a model that does not fit, and to write and read sizes such as
"1.5B". Knows no network; a family that is missing here only means less advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)([BbMm])(?![A-Za-z0-9])")
# Every "{}" stands for a size as the family writes it.
_FAMILIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Qwen/Qwen2-{}-Instruct", ("72B", "7B", "1.5B", "0.5B")),
    ("Qwen/Qwen2.5-{}-Instruct", ("72B", "32B", "14B", "7B", "3B", "1.5B", "0.5B")),
    ("Qwen/Qwen2.5-{}", ("72B", "32B", "14B", "7B", "3B", "1.5B", "0.5B")),
    ("Qwen/Qwen2.5-Coder-{}-Instruct", ("32B", "14B", "7B", "3B", "1.5B", "0.5B")),
    ("Qwen/Qwen3-{}", ("32B", "14B", "8B", "4B", "1.7B", "0.6B")),
    ("meta-llama/Llama-3.1-{}-Instruct", ("405B", "70B", "8B")),
    ("meta-llama/Llama-3.2-{}-Instruct", ("3B", "1B")),
    ("codellama/CodeLlama-{}-Instruct-hf", ("70b", "34b", "13b", "7b")),
    ("google/gemma-2-{}", ("27b", "9b", "2b")),
    ("google/gemma-2-{}-it", ("27b", "9b", "2b")),
    ("HuggingFaceTB/SmolLM2-{}-Instruct", ("1.7B", "360M", "135M")),
    ("bigcode/starcoder2-{}", ("15b", "7b", "3b")),
    ("EleutherAI/pythia-{}", ("12b", "6.9b", "2.8b", "1.4b", "1b", "410m", "160m", "70m")),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-{}", ("32B", "14B", "7B", "1.5B")),
    ("lmsys/vicuna-{}-v1.5", ("13b", "7b")),
)
_NAMED = {
    "microsoft/Phi-3-medium-128k-instruct": "microsoft/Phi-3-mini-128k-instruct",
    "microsoft/Phi-3-medium-4k-instruct": "microsoft/Phi-3-mini-4k-instruct",
}
_COUNTS = {"microsoft/Phi-3-mini-128k-instruct": 3_821_079_552}
_COUNTS |= {"microsoft/Phi-3-mini-4k-instruct": 3_821_079_552}


def size_in_name(repo: str) -> int | None:
    """The number of parameters that a model's name claims ("...-1.5B-..."), or None."""
    match = _SIZE.search(repo.rpartition("/")[2].replace("_", "-"))
    if not match:
        return None
    return int(float(match[1]) * (1e9 if match[2] in "Bb" else 1e6))


def smaller(repo: str, fits: Callable[[int], bool]) -> str | None:
    """The largest smaller model of the same family for which `fits(parameters)`, or None."""
    named = _NAMED.get(repo)
    if named is not None and fits(_COUNTS[named]):
        return named
    for pattern, sizes in _FAMILIES:
        names = [pattern.format(size) for size in sizes]
        if repo in names:
            for name in names[names.index(repo) + 1 :]:
                count = size_in_name(name)
                if count is not None and fits(count):
                    return name
    return None


def count_text(count: int) -> str:
    """ "135 M" or "1.5 B" parameters."""
    if count >= 999_500_000:
        return f"{count / 1e9:.1f} B" if count < 99.5e9 else f"{count / 1e9:.0f} B"
    if count >= 999_500:
        return f"{count / 1e6:.0f} M" if count >= 9.95e6 else f"{count / 1e6:.1f} M"
    return f"{count / 1e3:.0f} k"
