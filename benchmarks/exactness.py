"""Is the output the target's own? Assisted ids against plain ids, prompt by prompt.

    python -m benchmarks.exactness [--prompts 20] [--tokens 128] [--dtypes float32,bfloat16]

Takes prompts of every kind from assets/prompts/dev.jsonl. In float32 the greedy ids are compared
with `transformers.generate` as well. Prints one line per run on standard error and a summary as
JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from uag_core import AssistantConfig, GenerationSettings, ModelPair
from uag_core.decoding.reference import ReferenceEngine
from uag_core.events import Finished
from uag_core.metrics import first_divergence

PROMPTS = Path(__file__).parent.parent / "assets" / "prompts" / "dev.jsonl"
SAMPLING = {"temperature": 0.8, "top_p": 0.9, "seed": 1234}


def varied(count: int) -> list[dict[str, str]]:
    """`count` prompts, taken from the kinds in turn."""
    rows = [json.loads(line) for line in PROMPTS.read_text(encoding="utf-8").splitlines() if line]
    kinds: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        kinds.setdefault(row["category"], []).append(row)
    deepest = max(len(members) for members in kinds.values())
    turns = [members[i] for i in range(deepest) for members in kinds.values() if i < len(members)]
    return turns[:count]


def reference_ids(pair: ModelPair, prompt: str, settings: GenerationSettings) -> tuple[int, ...]:
    """The ids of `transformers.generate` for the same prompt."""
    engine = ReferenceEngine("transformers", pair.target, pair.assistant)
    ids = pair.engines.prompt(prompt, raw=False, system=None).target_ids
    return next(e.token_ids for e in engine.run(ids, settings) if isinstance(e, Finished))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--draft", type=int, default=None, help="fixed number of draft tokens")
    arguments = parser.parse_args()
    config = AssistantConfig(num_assistant_tokens=arguments.draft)
    report: dict[str, dict[str, int]] = {}
    for dtype in arguments.dtypes.split(","):
        pair = ModelPair(dtype=dtype)
        for mode, sampling in (("greedy", {}), ("sampled", SAMPLING)):
            settings = GenerationSettings(max_new_tokens=arguments.tokens, **sampling)  # type: ignore[arg-type]
            counts = {"prompts": 0, "identical": 0, "draft_rounds": 0}
            for row in varied(arguments.prompts):
                plain = pair.generate(row["prompt"], settings, engine="baseline")
                assisted = pair.generate(row["prompt"], settings, config)
                position = first_divergence(plain.token_ids, assisted.token_ids)
                counts["prompts"] += 1
                counts["identical"] += position is None
                counts["draft_rounds"] += assisted.metrics["num_draft_rounds"]
                line = f"{dtype} {mode} {row['id']}: exact={assisted.exact} parted at {position}"
                if dtype == "float32" and mode == "greedy":
                    ids = reference_ids(pair, row["prompt"], settings)
                    other = first_divergence(plain.token_ids, ids)
                    counts["like_transformers"] = counts.get("like_transformers", 0) + (
                        other is None
                    )
                    line += f", from transformers at {other}"
                print(line, file=sys.stderr, flush=True)
            report[f"{dtype} {mode}"] = counts
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
