"""Does memory grow from run to run? 50 runs, cancelled and failed ones among them.

    python -m benchmarks.memory_growth [--runs 50]

Every fifth run is cancelled after a few tokens and every seventh fails inside the model. Prints the
resident memory after runs 11 and 50 in megabytes.
"""

from __future__ import annotations

import argparse
import gc
import json
import threading
from collections.abc import Sequence

import psutil
import torch

from uag_core import AssistantConfig, GenerationSettings, ModelPair
from uag_core.errors import RunError

PROMPTS = (
    "Write a haiku about the sea.",
    "List five fruits and say what colour each one has.",
    "Explain to a child why the sky is blue, with an example from daily life. " * 12,
)


class _Failing:
    """A logits processor that fails after a few tokens, as a broken model would."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("a failure on purpose")
        return scores


def one_run(pair: ModelPair, number: int, tokens: int) -> None:
    """Run `number`: whole, cancelled or failing."""
    cancel = threading.Event()
    processors: Sequence[object] | None = [_Failing(9)] if number % 7 == 0 else None
    stream = pair.stream(
        PROMPTS[number % len(PROMPTS)],
        GenerationSettings(max_new_tokens=tokens),
        AssistantConfig(num_assistant_tokens=4),
        cancel=cancel,
        logits_processor=processors,
    )
    try:
        for index, _event in enumerate(stream):
            if number % 5 == 0 and index == 6:
                cancel.set()
    except RunError:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=48)
    arguments = parser.parse_args()
    pair = ModelPair()
    process = psutil.Process()
    sizes = []
    for number in range(1, arguments.runs + 1):
        one_run(pair, number, arguments.tokens)
        gc.collect()
        sizes.append(process.memory_info().rss / 2**20)
    print(
        json.dumps(
            {
                "runs": arguments.runs,
                "mb_after_run_11": round(sizes[min(10, len(sizes) - 1)], 1),
                "mb_at_the_end": round(sizes[-1], 1),
                "growth_mb": round(sizes[-1] - sizes[min(10, len(sizes) - 1)], 1),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
