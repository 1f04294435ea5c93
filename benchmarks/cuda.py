"""The engine on a GPU at real sizes, in minutes: exactness, host work, distance to the bound.

    python -m benchmarks.cuda [--tokens 96] [--acceptance 0.8] [--compile] [--tiny --device cpu]

Builds a target of the 7B shape and an assistant of a 0.2B shape with random weights, so that
nothing has to be downloaded. An oracle that knows the plain answer replaces the assistant's draft
with one that is right with the chosen probability: the assistant's cost is real, its acceptance is
chosen. Reports per dtype whether assisted ids equal plain ids, host time and waits for the device
per round, and decode speedup over its bound. `--compile` measures the compiled forms as well, under
"compiled" of each dtype, with the seconds that compiling took. `--tiny` checks the script itself
on a CPU.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from uag_core import metrics
from uag_core.config import AssistantConfig, GenerationSettings
from uag_core.decoding.bridges import IdBridge
from uag_core.decoding.compiling import draft_opener, finished, settle
from uag_core.decoding.engines import Engines
from uag_core.decoding.proposers import AssistantProposer, Proposal
from uag_core.events import Event, Finished, Verified
from uag_core.models.handle import LanguageModel
from uag_core.tokenization import TargetLedger

ROWS = 32000
SHAPES: dict[str, dict[str, int]] = {
    "7B": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32},
    "0.2B": {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8},
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4},
    "tinier": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1},
}


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token per byte: enough to name ids."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def random_model(shape: str, dtype: torch.dtype, device: str, seed: int) -> LanguageModel:
    """A Llama of the named shape with random weights, built on the device."""
    heads = max(1, SHAPES[shape]["hidden_size"] // 128)
    config = LlamaConfig(
        **SHAPES[shape],
        vocab_size=ROWS,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=4096,
        initializer_range=0.05,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = LlamaForCausalLM(config).eval().requires_grad_(False)
    finally:
        torch.set_default_dtype(before)
    return LanguageModel.build(
        ref=shape, id=shape, revision=None, model=model, tokenizer=byte_tokenizer()
    )


class Oracle:
    """Pays for the assistant's draft, proposes the plain answer, right with a probability."""

    def __init__(self, inner: AssistantProposer, answer: Sequence[int], acceptance: float) -> None:
        self.name = "oracle"
        self.notices: list[str] = []
        self._inner = inner
        self._answer = answer
        self._acceptance = acceptance
        self._random = random.Random(0)

    def propose(
        self,
        ledger: TargetLedger,
        limit: int,
        draft_limit: int,
        go_on: Callable[[float], bool] | None,
    ) -> Proposal:
        proposal = self._inner.propose(ledger, limit, draft_limit, None)
        done = len(ledger.ids) - ledger.num_prompt
        ids = list(self._answer[done : done + min(limit, len(proposal.draft_ids))])
        for index, token_id in enumerate(ids):
            if self._random.random() >= self._acceptance:
                ids[index] = (token_id + 1) % ROWS
        return replace(proposal, candidate_ids=tuple(ids))

    def commit(self, ids: Sequence[int], pieces: Sequence[bytes]) -> None:
        self._inner.commit(ids, pieces)

    def close(self) -> None:
        self._inner.close()


@contextmanager
def counted_waits(count: list[int]) -> Iterator[None]:
    """Count what waits for the device: reading values back and explicit synchronisation."""
    originals: list[tuple[Any, str, Any]] = [
        (torch.Tensor, "tolist", torch.Tensor.tolist),
        (torch.Tensor, "item", torch.Tensor.item),
        (torch.Tensor, "cpu", torch.Tensor.cpu),
        (torch.cuda, "synchronize", torch.cuda.synchronize),
    ]

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            count[0] += 1
            return function(*args, **kwargs)

        return call

    try:
        for owner, name, function in originals:
            setattr(owner, name, counting(function))
        yield
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)


def run(events: Iterator[Event]) -> tuple[list[Event], tuple[int, ...], float]:
    """The events, the ids and the seconds per token after the first."""
    found = list(events)
    ids = next(event.token_ids for event in found if isinstance(event, Finished))
    return found, ids, metrics.timing(found)["tpot_s"] or 0.0


def measure(arguments: argparse.Namespace, dtype: torch.dtype) -> dict[str, Any]:
    """One dtype: the figures of eager runs, and on demand those of compiled ones."""
    big, small = ("tiny", "tinier") if arguments.tiny else ("7B", "0.2B")
    target = random_model(big, dtype, arguments.device, 0)
    assistant = random_model(small, dtype, arguments.device, 1)
    engines = Engines(target, assistant)
    result = figures(arguments, engines, compile=False)
    if arguments.compile:
        result["compiled"] = figures(arguments, engines, compile=True)
    return result


def figures(arguments: argparse.Namespace, engines: Engines, *, compile: bool) -> dict[str, Any]:
    """Exactness, host work and the distance to the bound."""
    rng = random.Random(1)
    prompt = engines.prompt([rng.randrange(ROWS) for _ in range(64)], raw=True, system=None)
    settings = GenerationSettings(max_new_tokens=arguments.tokens, eos_token_ids=())
    config = AssistantConfig(
        num_assistant_tokens=arguments.draft, assistant_dtype="same", compile=compile
    )
    settled = finished(settle(engines, config, True, [prompt], arguments.tokens))
    exact, width, prompt = settled.exact, settled.width, settled.prompts[0]
    for padded in (width, None):  # warm-up
        run(engines.plain(prompt, replace(settings, max_new_tokens=8), exact=exact, width=padded))
    answer, plain = {}, {}
    for name, padded in (("padded", width), ("unpadded", None)):
        _, answer[name], plain[name] = run(
            engines.plain(prompt, settings, exact=exact, width=padded)
        )
    fastest = min(plain.values())

    def oracle() -> Oracle:
        assistant = engines.assistant
        assert assistant is not None
        length = prompt.compiled[1] if prompt.compiled else None
        inner = AssistantProposer(
            assistant,
            IdBridge(assistant.codec, prompt.target_ids),
            capacity=64 + 2 * arguments.tokens,
            target_eos_id=None,
            model=draft_opener(assistant, length)() if length else None,
        )
        return Oracle(inner, answer["padded"], arguments.acceptance)

    def assisted() -> Iterator[Event]:
        return engines.assisted(
            prompt, settings, config, exact=exact, width=width, make_proposer=oracle
        )

    run(assisted())
    waits = [0]
    with counted_waits(waits):
        run(assisted())
    runs = sorted((run(assisted()) for _ in range(arguments.repeats)), key=lambda one: one[2])
    events, ids, tpot = runs[(len(runs) - 1) // 2]
    summary = metrics.summarize(events)
    rounds = [e for e in events if isinstance(e, Verified) and e.round > 1 and e.num_candidates]
    speedup, bound = fastest / tpot, metrics.speedup_bound(events, fastest)
    return {
        "exact": exact,
        "width": width,
        "compile_s": settled.compile_s,
        "notices": settled.notices,
        "identical": ids == answer["padded"],
        "plain_step_ms": {name: 1e3 * value for name, value in plain.items()},
        "verify_ms": 1e3 * median(e.verify_s for e in rounds),
        "draft_ms": 1e3 * median(e.draft_s for e in rounds),
        "host_ms_per_round": 1e3 * median(e.other_s + e.reencode_s for e in rounds),
        "waits_per_round": waits[0] / max(1, summary["num_rounds"]),
        "tokens_per_round": summary["tokens_per_round"],
        "acceptance_rate": summary["acceptance_rate"],
        "decode_speedup": speedup,
        "speedup_bound": bound,
        "share_of_bound": speedup / bound if bound else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--draft", type=int, default=4)
    parser.add_argument("--acceptance", type=float, default=0.8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtypes", default="bfloat16,float16")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--compile", action="store_true", help="compiled forms as well")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, to try the script out")
    arguments = parser.parse_args()
    if arguments.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("This machine has no usable CUDA GPU; --tiny --device cpu tries the script out.")
    start = perf_counter()
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if arguments.device != "cpu" else "cpu",
        "tiny": arguments.tiny,
        "dtypes": {},
    }
    for name in arguments.dtypes.split(","):
        report["dtypes"][name] = measure(arguments, getattr(torch, name))
        print(f"{name}: {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    report["seconds"] = perf_counter() - start
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
