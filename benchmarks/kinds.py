"""The embedded pair on prompts of every kind: plain decoding, UAG, and transformers' own engines.

    python -m benchmarks.kinds [--prompts dev] [--per-kind 1] [--tokens 128] [--references]

Prints one row per prompt on standard error, and a Markdown table with the geometric means as the
result. Ratios come from one run; nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import torch

from uag_core import AssistantConfig, GenerationSettings, ModelPair

PROMPTS = Path(__file__).parent.parent / "assets" / "prompts"
REFERENCES = ("transformers", "transformers_uag")


def chosen(name: str, per_kind: int) -> list[dict[str, str]]:
    """The first prompts of every kind of `assets/prompts/NAME.jsonl`."""
    path = PROMPTS / f"{name}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    kinds: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        kinds.setdefault(row["category"], []).append(row)
    return [row for members in kinds.values() for row in members[:per_kind]]


def ratio_to(document: dict[str, Any], engine: str) -> float | None:
    """Our end-to-end tokens/s over that of a reference engine."""
    ours = document["assisted"]["end_to_end_tokens_per_second"]
    for reference in document["references"]:
        theirs = reference["end_to_end_tokens_per_second"]
        if reference["engine"] == engine and ours and theirs:
            return float(ours / theirs)
    return None


def table(documents: list[tuple[str, dict[str, Any]]], references: tuple[str, ...]) -> str:
    """A row per prompt and one of geometric means."""
    head = ["prompt", "plain tok/s", "UAG tok/s", "decode", "same shape", "tau", "identical"]
    head += [f"vs {name}" for name in references]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    columns: dict[str, list[float]] = {}
    for name, document in documents:
        speedups = {
            "decode": document["decode_speedup"],
            "same shape": document["decode_speedup_same_shape"],
            **{f"vs {engine}": ratio_to(document, engine) for engine in references},
        }
        for key, value in speedups.items():
            if value:
                columns.setdefault(key, []).append(value)
        shown = {
            "prompt": name,
            "plain tok/s": f"{document['baseline_unpadded']['tokens_per_second']:.1f}",
            "UAG tok/s": f"{document['assisted']['tokens_per_second']:.1f}",
            "tau": f"{document['assisted']['mean_acceptance_length'] or 1:.2f}",
            "identical": str(document["identical"]).lower(),
            **{key: f"{value:.2f}" if value else "" for key, value in speedups.items()},
        }
        lines.append("| " + " | ".join(shown[key] for key in head) + " |")
    means = {key: f"**{geometric_mean(values):.2f}**" for key, values in columns.items()}
    lines.append("| geometric mean | " + " | ".join(means.get(key, "") for key in head[1:]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--prompts", default="dev", choices=("dev", "test"))
    parser.add_argument("--per-kind", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--draft", type=int, default=None, help="fixed number of draft tokens")
    parser.add_argument("--references", action="store_true")
    arguments = parser.parse_args()
    references = REFERENCES if arguments.references else ()
    pair = ModelPair(dtype=arguments.dtype)
    documents = []
    for row in chosen(arguments.prompts, arguments.per_kind):
        document = pair.compare(
            row["prompt"],
            GenerationSettings(max_new_tokens=arguments.tokens),
            AssistantConfig(num_assistant_tokens=arguments.draft),
            references=references,
        )
        documents.append((row["id"], document))
        line = f"{row['id']}: {document['decode_speedup']:.2f}"
        print(line, file=sys.stderr, flush=True)
    print(f"{pair.target.dtype}, {torch.get_num_threads()} threads\n")
    print(table(documents, references))


if __name__ == "__main__":
    main()
