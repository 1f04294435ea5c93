"""``python -m uag_core.recipe STAGE``: one command a stage, and ``all``.

Every stage reads and writes files below ``--work`` and does only what is not done yet:
``requests/*.jsonl.gz`` and ``answers/*.jsonl.gz`` (shards), ``tokenizer/``, ``run/`` (checkpoint
and log), ``rows-*.jsonl`` and ``report.json``. Delete a file to have it made again.
"""

from __future__ import annotations

import argparse
import json
import math
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from . import evaluate as evaluation
from .answers import write_answers
from .chat import stop_ids, target_folder
from .export import export
from .initialise import initialise
from .kinds import WEIGHTS
from .requests import write_requests
from .soft import SoftTargets
from .store import drop_prompts, read_rows, write_shard
from .tokenizer import prune_target, train_bpe
from .train import TrainConfig, encode, held_out, train, weighted

STAGES = ("requests", "answers", "tokenizer", "train", "evaluate", "export", "all")


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def _load_target(args: argparse.Namespace, dtype: torch.dtype) -> tuple[Any, Any]:
    folder = target_folder(args.target)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    return model.to(_device(args.device)), AutoTokenizer.from_pretrained(folder)


def _shards(args: argparse.Namespace, stage: str) -> list[Path]:
    return [args.work / stage / f"selfplay-{k:04d}.jsonl.gz" for k in range(args.shards)]


def _texts(args: argparse.Namespace) -> list[dict[str, Any]]:
    """All training pairs: those made here and those given, without the evaluation prompts."""
    paths = [p for p in _shards(args, "answers") if p.exists()]
    for given in args.text:
        paths += sorted(given.glob("*.jsonl.gz")) if given.is_dir() else [given]
    prompts = [item["prompt"] for path in args.prompts for item in evaluation.read_prompts(path)]
    rows = [
        row | {"times": _times(args, path.name)}
        for path in sorted(paths)
        for row in read_rows([path])
    ]
    return drop_prompts(rows, prompts)


def _times(args: argparse.Namespace, name: str) -> int:
    """How often an epoch has the pairs of a file; the last pattern that fits its name wins."""
    return next((n for pattern, n in reversed(args.times) if fnmatch(name, pattern)), 1)


def stage_requests(args: argparse.Namespace) -> None:
    todo = [(k, p) for k, p in enumerate(_shards(args, "requests")) if not p.exists()]
    if not todo:
        return
    model, tokenizer = _load_target(args, torch.bfloat16)
    stops = stop_ids(tokenizer, model)
    for k, path in todo:
        rows = write_requests(
            model, tokenizer, count=args.per_shard, seed=args.seed + k, slots=args.slots,
            stops=stops, shares=dict(args.shares),
        )  # fmt: skip
        print(f"requests {path.name}: {write_shard(path, rows)}", flush=True)


def stage_answers(args: argparse.Namespace) -> None:
    todo = [p for p in _shards(args, "answers") if not p.exists()]
    if not todo:
        return
    model, tokenizer = _load_target(args, torch.bfloat16)
    stops = stop_ids(tokenizer, model)
    for path in todo:
        asked = args.work / "requests" / path.name
        if not asked.exists():
            raise SystemExit(f"{asked} is missing: run the stage 'requests' first")
        rows = write_answers(
            model, tokenizer, read_rows([asked]), max_new_tokens=args.answer_tokens,
            slots=args.slots, stops=stops, num_top=args.num_top,
        )  # fmt: skip
        print(f"answers {path.name}: {write_shard(path, rows)}", flush=True)


def stage_tokenizer(args: argparse.Namespace) -> None:
    folder = args.work / "tokenizer"
    if folder.exists():
        return
    texts = [f"{row['u']}\n{row['a']}" for row in _texts(args)]
    if not texts:
        raise SystemExit("there is no text: run 'requests' and 'answers', or give --text")
    if args.tokenizer == "prune":
        target = AutoTokenizer.from_pretrained(target_folder(args.target))
        made = prune_target(target, texts, args.vocabulary)
    else:
        made = train_bpe(texts, args.vocabulary)
    made.save_pretrained(folder)
    print(f"tokenizer: {len(made)} entries", flush=True)


def _start(args: argparse.Namespace) -> tuple[Any, Any, SoftTargets]:
    """A fresh assistant, its tokenizer, and the map of the target's distributions to it."""
    tokenizer = AutoTokenizer.from_pretrained(args.work / "tokenizer")
    target, target_tokenizer = _load_target(args, torch.float32)
    softener = SoftTargets(target_tokenizer, tokenizer, stop_ids(target_tokenizer, target))
    model = initialise(
        target.cpu(), target_tokenizer, tokenizer, layers=args.layers, ffn=args.ffn, seed=args.seed
    )
    if args.begin_with:
        state = torch.load(args.begin_with, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
    # Documents are short here: plain attention trains faster than the fused one on a CPU.
    model.set_attn_implementation("eager" if _device(args.device).type == "cpu" else "sdpa")
    return model.to(_device(args.device)), tokenizer, softener


def stage_train(args: argparse.Namespace) -> None:
    model, tokenizer, softener = _start(args)
    config = TrainConfig(
        epochs=args.epochs, lr=args.lr, batch_tokens=args.batch_tokens, minutes=args.minutes,
        seed=args.seed,
        min_lr=args.min_lr,
    )  # fmt: skip
    rows = _texts(args)
    training = weighted([row for row in rows if not held_out(row["u"])], args.kinds_weight)
    checking = [row for row in rows if held_out(row["u"])]
    length = config.max_length
    figures = train(
        model, encode(training, tokenizer, length, softener),
        encode(checking, tokenizer, length), config, args.work / "run",
    )  # fmt: skip
    print(json.dumps(figures), flush=True)


def stage_export(args: argparse.Namespace) -> None:
    checkpoint = args.work / "run" / "checkpoint.pt"
    if not checkpoint.exists():
        raise SystemExit(f"{checkpoint} is missing: run the stage 'train' first")
    model, tokenizer, _ = _start(args)
    model.load_state_dict(torch.load(checkpoint, map_location="cpu", weights_only=True)["model"])
    for path in export(model.cpu(), tokenizer, args.out or args.work / "assistant"):
        print(f"{path.name} {path.stat().st_size}", flush=True)


def stage_evaluate(args: argparse.Namespace) -> None:
    assistant = str(args.out or args.work / "assistant")
    args.work.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {}
    for path in args.prompts:
        report[path.stem] = evaluation.evaluate(
            args.target, assistant, evaluation.read_prompts(path), dtype=args.dtype,
            device=args.device, timed=not args.untimed,
            keep=args.work / f"rows-{path.stem}{'-untimed' if args.untimed else ''}.jsonl",
            method=args.method, num_assistant_tokens=args.num_assistant_tokens,
        )  # fmt: skip
        print(json.dumps(report[path.stem]["summary"], indent=1), flush=True)
    args.report = args.report or args.work / "report.json"
    args.report.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _share(text: str) -> tuple[str, float]:
    """A kind of request and its share, from KIND=NUMBER."""
    kind, _, number = text.partition("=")
    if kind not in WEIGHTS:
        raise argparse.ArgumentTypeError(f"unknown kind {kind!r}; known: {', '.join(WEIGHTS)}")
    value = float(number)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"the share of {kind} must be zero or more, not {number}")
    return kind, value


def _repeat(text: str) -> tuple[str, int]:
    """A pattern of file names and a whole number, from PATTERN=NUMBER."""
    pattern, _, number = text.rpartition("=")
    if not pattern or not number.isdecimal():
        raise argparse.ArgumentTypeError(
            f"expected PATTERN=NUMBER, as in 'kinds-*=2', not {text!r}"
        )
    return pattern, int(number)


def parser() -> argparse.ArgumentParser:
    """The arguments, the same for every stage."""
    made = argparse.ArgumentParser(prog="python -m uag_core.recipe", description=__doc__)
    add = made.add_argument
    add("stage", choices=STAGES)
    add("--target", default="embedded/target", help="folder or id of a chat model")
    add("--work", type=Path, required=True, help="folder for shards, checkpoints and reports")
    add("--out", type=Path, help="the exported assistant; default WORK/assistant")
    add("--device", default="auto", help="auto, cpu or cuda[:n]")
    add("--seed", type=int, default=0)
    add("--shards", type=int, default=32, help="shards of training text in all")
    add("--per-shard", type=int, default=448, help="requests a shard")
    add(
        "--shares",
        type=_share,
        nargs="*",
        default=[],
        metavar="KIND=NUMBER",
        help="shares of kinds of request other than the usual ones, such as translation=3",
    )
    add("--slots", type=int, default=64, help="rows generated at once")
    add("--answer-tokens", type=int, default=160)
    add("--num-top", type=int, default=8, help="likeliest ids kept a position, to learn from")
    add("--text", type=Path, nargs="*", default=[], help="more text: .jsonl.gz files or folders")
    add("--prompts", type=Path, nargs="*", default=[], help="evaluation sets, never trained on")
    add("--tokenizer", choices=("prune", "bpe"), default="prune")
    add("--vocabulary", type=int, default=8192)
    add("--layers", type=lambda v: [int(x) for x in v.split(",")], default=[0, 1, 2, 29])
    add("--ffn", type=int, help="feed-forward width; default the target's")
    add("--epochs", type=float, default=3.0)
    add("--lr", type=float, default=1e-3)
    add("--min-lr", type=float, default=0.05, help="where the schedule ends, as a share of --lr")
    add("--kinds-weight", type=int, default=1, help="how often an epoch has what is not chat")
    add(
        "--times",
        type=_repeat,
        nargs="*",
        default=[],
        metavar="PATTERN=NUMBER",
        help="how often an epoch has the pairs of files whose names fit, such as 'kinds-002*=3'",
    )
    add("--batch-tokens", type=int, default=4096)
    add("--begin-with", type=Path, help="a checkpoint.pt of an earlier run to train on from")
    add("--minutes", type=float, help="end training by then")
    add("--dtype", default="bfloat16", help="of the evaluation")
    add("--method", default="uag", help="of the evaluation: uag, lookup or uag+lookup")
    add("--num-assistant-tokens", type=int, help="draft length; default the engine decides")
    add("--untimed", action="store_true", help="counts only, no speedups")
    add("--report", type=Path, help="default WORK/report.json")
    return made


def main(argv: list[str] | None = None) -> None:
    args = parser().parse_args(argv)
    stages = {
        "requests": stage_requests, "answers": stage_answers, "tokenizer": stage_tokenizer,
        "train": stage_train, "export": stage_export, "evaluate": stage_evaluate,
    }  # fmt: skip
    for name in stages if args.stage == "all" else (args.stage,):
        stages[name](args)


if __name__ == "__main__":
    main()
