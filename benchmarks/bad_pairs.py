"""What assistants that cannot help cost: random weights, and one as big as the target.

    python -m benchmarks.bad_pairs [--prompts 3] [--tokens 128] [--repeats 1]

Prints JSON: for each assistant `decode_speedup_same_shape` in exact mode and `decode_speedup` in
the other, per prompt and as a geometric mean. 1 would be an assistant that costs nothing. The
ratios of a prompt come from one comparison; nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from statistics import geometric_mean

import torch

from benchmarks.exactness import varied
from uag_core import AssistantConfig, GenerationSettings, ModelPair
from uag_core.models.handle import LanguageModel


def with_random_weights(lm: LanguageModel, seed: int = 0) -> LanguageModel:
    """The same architecture and tokenizer with weights that were never trained."""
    torch.manual_seed(seed)
    model = type(lm.model)(copy.deepcopy(lm.model.config)).to(lm.model.dtype).eval()
    return LanguageModel.build(
        ref="random weights",
        id="random weights",
        revision=None,
        model=model.to(lm.input_device).requires_grad_(False),
        tokenizer=lm.tokenizer,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--prompts", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--only", choices=("random", "target"), default=None)
    arguments = parser.parse_args()
    embedded = ModelPair(dtype=arguments.dtype)
    target, assistant = embedded.target, embedded.assistant
    assert assistant is not None
    assistants = {"random": lambda: with_random_weights(assistant), "target": lambda: target}
    settings = GenerationSettings(max_new_tokens=arguments.tokens)
    report: dict[str, dict[str, object]] = {}
    for name, make in assistants.items():
        if arguments.only not in (None, name):
            continue
        pair = ModelPair.from_models(target, make())
        for exact in (True, False):
            key = "decode_speedup_same_shape" if exact else "decode_speedup"
            ratios: list[float] = []
            for row in varied(arguments.prompts):
                document = pair.compare(
                    row["prompt"],
                    settings,
                    AssistantConfig(),
                    exact=exact,
                    repeats=arguments.repeats,
                )
                ratios.append(document[key])
                drafted = document["assisted"]["num_draft_rounds"]
                line = f"{name} exact={exact} {row['id']}: {key} {ratios[-1]:.3f}"
                print(f"{line}, {drafted} draft rounds", file=sys.stderr, flush=True)
            report[f"{name}, {'exact' if exact else 'no-exact'}"] = {
                "measure": key,
                "ratios": ratios,
                "geometric_mean": geometric_mean(ratios),
                "worst": min(ratios),
            }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
